// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/onnxruntime/ort_session.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "penstock/base/str_format.h"
#include "penstock/model/onnxruntime/ort_model.h"
#include "penstock/model/onnxruntime/ort_providers.h"
#include "penstock/model/onnxruntime/ort_types.h"
#include "penstock/model/onnxruntime/output_pool.h"

namespace penstock {
namespace {

using Symbols = std::map<std::string, std::int64_t, std::less<>>;
/// What ONNX Runtime allocated, between the run and the ownership copy.
using MadeValues = std::vector<OrtHandle<OrtValue>>;

/// Everything that one run touches. Jobs share it, so it outlives the Session on a device that runs
/// them later.
struct RunState {
  std::shared_ptr<const OrtModel> model;
  std::vector<Tensor> inputs;  ///< In the model's order.
  std::vector<Tensor> outputs;
  std::vector<bool> dynamic;  ///< By output: ONNX Runtime allocates.
  MadeValues made;            ///< Of the dynamic ones, in order.
};

std::vector<OrtBuffer> buffers(const std::vector<TensorSpec>& specs,
                               const std::vector<Tensor>& tensors, const Access& access) {
  std::vector<OrtBuffer> out;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    out.push_back({&specs[i], tensors[i].shape, {}});
    if (tensors[i].data.storage) out.back().bytes = access.bytes(tensors[i].data);
  }
  return out;
}

/// The output's shape where its dimensions are fixed or bound by the inputs.
std::optional<Shape> known_shape(const TensorSpec& spec, const Symbols& symbols) {
  Shape shape;
  for (const Dimension& dim : spec.dims) {
    if (dim.is_fixed()) {
      shape.push_back(dim.minimum);
      continue;
    }
    const auto bound = symbols.find(dim.symbol);
    if (dim.symbol.empty() || bound == symbols.end()) return std::nullopt;
    shape.push_back(bound->second);
  }
  return shape;
}

class OrtSessionImpl final : public Session {
 public:
  OrtSessionImpl(DevicePtr device, std::shared_ptr<const OrtModel> model, std::size_t budget)
      : device_(std::move(device)),
        model_(std::move(model)),
        pool_(OutputPool::create(device_, budget)) {}
  ~OrtSessionImpl() override { pool_->retire(); }

  const std::vector<TensorSpec>& inputs() const override { return model_->inputs(); }
  const std::vector<TensorSpec>& outputs() const override { return model_->outputs(); }

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) override {
    auto state = std::make_shared<RunState>();
    state->model = model_;
    if (auto bound = bind(inputs, *state); !bound) {
      return std::unexpected(std::move(bound).error().context(model_->label()));
    }
    std::vector<Device::Owner> uses;
    std::vector<Fence> after;
    for (const Tensor& input : state->inputs) {
      uses.push_back(input.data.storage);
      after.push_back(input.ready);
    }
    for (const Tensor& output : state->outputs) {
      if (output.data.storage) uses.push_back(output.data.storage);
    }
    std::vector<Tensor> results = state->outputs;
    auto fence = device_->submit(std::move(uses), std::move(after), run_job(state));
    if (!fence) return std::unexpected(std::move(fence).error().context(model_->label()));
    for (Tensor& result : results) result.ready = *fence;
    if (std::ranges::contains(state->dynamic, true)) {
      PENSTOCK_TRY(fence->wait());  // its error already says which model
      if (auto taken = take_over(*fence, state, results); !taken) {
        return std::unexpected(std::move(taken).error().context(model_->label()));
      }
    }
    return results;
  }

  void interrupt() override { model_->interrupt(); }

 private:
  Result<void> bind(std::span<const Tensor> inputs, RunState& state) {
    Symbols symbols;
    auto ordered = check_inputs(inputs, symbols);
    if (!ordered) return std::unexpected(ordered.error());
    state.inputs = *std::move(ordered);
    return bind_outputs(symbols, state);
  }

  /// Contract M03; answers the inputs in the model's order.
  Result<std::vector<Tensor>> check_inputs(std::span<const Tensor> inputs, Symbols& symbols) const {
    if (inputs.size() != model_->inputs().size()) {
      return fail(ErrorKind::kInvalidArgument, str_format("{} inputs were given, the model has {}",
                                                          inputs.size(), model_->inputs().size()));
    }
    std::vector<Tensor> ordered;
    for (const TensorSpec& spec : model_->inputs()) {
      const auto found = std::ranges::find(inputs, spec.name, &Tensor::name);
      if (found == inputs.end()) {
        return fail(ErrorKind::kInvalidArgument, str_format("input '{}' is missing", spec.name));
      }
      PENSTOCK_TRY(check(*found, spec, device_->id()));
      for (std::size_t i = 0; i < spec.dims.size(); ++i) {
        const std::string& symbol = spec.dims[i].symbol;
        if (symbol.empty()) continue;
        const auto [bound, is_new] = symbols.emplace(symbol, found->shape[i]);
        if (!is_new && bound->second != found->shape[i]) {
          return fail(ErrorKind::kInvalidArgument,
                      str_format("input '{}': dimension {} is {}, but '{}' is already {}",
                                 spec.name, i, found->shape[i], symbol, bound->second));
        }
      }
      ordered.push_back(*found);
    }
    return ordered;
  }

  Result<void> bind_outputs(const Symbols& symbols, RunState& state) {
    for (const TensorSpec& spec : model_->outputs()) {
      Tensor& output = state.outputs.emplace_back(
          Tensor{.name = spec.name, .type = spec.type, .shape = {}, .data = {}, .ready = {}});
      const auto shape = known_shape(spec, symbols);
      state.dynamic.push_back(!shape);
      if (!shape) continue;
      output.shape = *shape;
      PENSTOCK_TRY(allocate(output));
    }
    return {};
  }

  Result<void> allocate(Tensor& output) {
    const auto bytes = byte_size(output.type, output.shape);
    if (!bytes) return std::unexpected(bytes.error());
    // A tensor without elements still has an owner.
    auto storage = pool_->acquire(std::max<std::size_t>(*bytes, 1));
    if (!storage) {
      return std::unexpected(
          std::move(storage).error().context(str_format("output '{}'", output.name)));
    }
    output.data = {*std::move(storage), 0, *bytes};
    return {};
  }

  static Device::Job run_job(std::shared_ptr<RunState> shared) {
    return [shared = std::move(shared)](const Access& access) mutable -> Result<void> {
      // Let go when the job ends, not when the device gets round to destroying the closure.
      const auto state = std::move(shared);
      const OrtModel& model = *state->model;
      auto made = model.run(buffers(model.inputs(), state->inputs, access),
                            buffers(model.outputs(), state->outputs, access));
      state->inputs.clear();
      state->outputs.clear();
      if (!made) return std::unexpected(std::move(made).error().context(model.label()));
      state->made = *std::move(made);
      return {};
    };
  }

  /// Outputs of shapes that only the run could tell: waits for it, then copies each once into
  /// memory that the result owns (contract M04).
  Result<void> take_over(const Fence& fence, const std::shared_ptr<RunState>& state,
                         std::vector<Tensor>& results) {
    std::size_t next = 0;
    std::vector<StorageRegion> targets;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!state->dynamic[i]) continue;
      auto info = tensor_info(model_->runtime(), state->made.at(next++).get());
      if (!info) return std::unexpected(info.error());
      PENSTOCK_TRY(accept_shape(model_->outputs()[i], *info, results[i]));
      PENSTOCK_TRY(allocate(results[i]));
      targets.push_back(results[i].data);
    }
    std::vector<Device::Owner> uses;
    for (const StorageRegion& target : targets) uses.push_back(target.storage);
    auto copied = device_->submit(std::move(uses), {fence}, copy_job(state, targets, device_));
    if (!copied) return std::unexpected(copied.error());
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (state->dynamic[i]) results[i].ready = *copied;
    }
    return {};
  }

  static Result<void> accept_shape(const TensorSpec& spec, const OrtTensorInfo& info,
                                   Tensor& result) {
    bool fits = info.type == spec.type && info.dims.size() == spec.dims.size();
    for (std::size_t i = 0; fits && i < info.dims.size(); ++i) {
      // No elements (nothing found, say) is an answer that no range names.
      fits = spec.dims[i].accepts(info.dims[i]) || (info.dims[i] == 0 && !spec.dims[i].is_fixed());
    }
    if (!fits) {
      return fail(ErrorKind::kDevice, str_format("output '{}' came as {}, not as its manifest says",
                                                 spec.name, to_string(info.dims)));
    }
    result.shape = info.dims;
    return {};
  }

  static Device::Job copy_job(std::shared_ptr<RunState> shared, std::vector<StorageRegion> regions,
                              const DevicePtr& device) {
    // Weak: the device waits for its jobs when it goes, and must not wait for itself.
    return [shared = std::move(shared), regions = std::move(regions),
            weak = std::weak_ptr(device)](const Access& access) mutable -> Result<void> {
      const auto state = std::move(shared);
      const auto targets = std::move(regions);
      const OrtRuntime& runtime = state->model->runtime();
      std::size_t bytes = 0;
      for (std::size_t i = 0; i < targets.size(); ++i) {
        if (targets[i].size == 0) continue;
        void* data = nullptr;
        PENSTOCK_TRY(runtime.check(runtime.api().GetTensorMutableData(state->made[i].get(), &data),
                                   "reading an output"));
        std::memcpy(access.bytes(targets[i]).data(), data, targets[i].size);
        bytes += targets[i].size;
      }
      if (const auto owner = weak.lock()) {
        owner->ledger().record(CopyClass::kTensor, "model/onnxruntime", bytes, targets.size());
      }
      return {};
    };
  }

  const DevicePtr device_;
  const std::shared_ptr<const OrtModel> model_;
  const std::shared_ptr<OutputPool> pool_;
};

}  // namespace

Result<std::shared_ptr<Session>> open_onnxruntime_session(DevicePtr device,
                                                          const Manifest& manifest,
                                                          const SessionOptions& options) {
  if (device->id().kind != DeviceKind::kCpu && device->id().kind != DeviceKind::kSim) {
    return fail(ErrorKind::kUnsupported,
                str_format("model '{}' (onnxruntime): device {} has no ONNX Runtime binding yet",
                           manifest.name, to_string(device->id())));
  }
  auto model = OrtModel::load(manifest, options);
  if (!model) return std::unexpected(model.error());
  return std::make_shared<OrtSessionImpl>(std::move(device), *std::move(model),
                                          options.output_budget);
}

Result<std::vector<std::string>> onnxruntime_providers(const std::filesystem::path& library) {
  auto runtime = OrtRuntime::open(library);
  if (!runtime) return std::unexpected(runtime.error());
  return offered_providers(**runtime);
}

Result<std::string> onnxruntime_version(const std::filesystem::path& library) {
  auto runtime = OrtRuntime::open(library);
  if (!runtime) return std::unexpected(runtime.error());
  return (*runtime)->version();
}

}  // namespace penstock
