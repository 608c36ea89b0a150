// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/onnxruntime/ort_model.h"

#include <algorithm>
#include <array>

#include "penstock/base/str_format.h"
#include "penstock/model/onnx_reader.h"
#include "penstock/model/onnxruntime/ort_external_data.h"
#include "penstock/model/onnxruntime/ort_providers.h"
#include "penstock/model/onnxruntime/ort_types.h"
#include "penstock/model/sha256.h"

namespace penstock {
namespace {

constexpr int kMaxThreads = 1024;

}  // namespace

OrtModel::OrtModel(std::shared_ptr<OrtRuntime> runtime)
    : runtime_(std::move(runtime)),
      memory_(runtime_->memory_info()),
      session_(runtime_->session()) {}

Result<std::shared_ptr<const OrtModel>> OrtModel::load(const Manifest& manifest,
                                                       const SessionOptions& options) {
  std::string label = str_format("model '{}' (onnxruntime)", manifest.name);
  auto runtime = OrtRuntime::open(options.engine_library);
  if (!runtime) return std::unexpected(std::move(runtime).error().context(label));
  label = str_format("model '{}' (onnxruntime {}, {})", manifest.name, (*runtime)->version(),
                     manifest.provider);
  std::shared_ptr<OrtModel> model(new OrtModel(*std::move(runtime)));
  if (auto created = model->create(manifest, options); !created) {
    return std::unexpected(std::move(created).error().context(label));
  }
  model->label_ = std::move(label);
  return model;
}

Result<void> OrtModel::create(const Manifest& manifest, const SessionOptions& options) {
  const OrtApi& api = runtime_->api();
  // Read once: what was hashed and looked into is what the engine gets, whatever happens on disk.
  auto bytes = read_model_file(manifest.artefact);
  if (!bytes) return std::unexpected(bytes.error());
  if (!manifest.artefact_sha256.empty()) {
    auto hash = sha256_hex(*bytes);
    if (!hash) return std::unexpected(hash.error());
    if (*hash != manifest.artefact_sha256) {
      return fail(ErrorKind::kCorrupt, str_format("'{}' changed since its manifest was read",
                                                  manifest.artefact.string()));
    }
  }
  auto summary = read_onnx_summary(*bytes);
  if (!summary) {
    return std::unexpected(
        std::move(summary).error().context(str_format("'{}'", manifest.artefact.string())));
  }
  auto external = OrtExternalData::read(*summary, manifest, *bytes);
  if (!external) return std::unexpected(std::move(external).error());

  auto session_options = runtime_->session_options();
  PENSTOCK_TRY(runtime_->check(api.CreateSessionOptions(out(session_options)), "creating options"));
  PENSTOCK_TRY(configure(session_options.get(), manifest, options));
  PENSTOCK_TRY(external->add_to(*runtime_, session_options.get()));
  if (manifest.provider != kCpuProvider) {
    placement_ = std::make_unique<OrtPlacement>();
    PENSTOCK_TRY(placement_->listen(*runtime_, session_options.get()));
  }
  limit_ = std::make_unique<RunLimit>(options.clock != nullptr ? *options.clock : Clock::system(),
                                      options.run_limit);
  PENSTOCK_TRY(within_limit(
      str_format("loading '{}'", manifest.artefact.string()),
      [&] {
        api.ReleaseStatus(api.SessionOptionsSetLoadCancellationFlag(session_options.get(), true));
      },
      [&] {
        return api.CreateSessionFromArray(runtime_->env(), bytes->data(), bytes->size(),
                                          session_options.get(), out(session_));
      }));
  if (placement_) PENSTOCK_TRY(placement_->check(manifest.provider, manifest.cpu_nodes));
  PENSTOCK_TRY(
      runtime_->check(api.CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, out(memory_)),
                      "describing CPU memory"));
  return validate(manifest);
}

Result<void> OrtModel::configure(OrtSessionOptions* target, const Manifest& manifest,
                                 const SessionOptions& options) const {
  const OrtApi& api = runtime_->api();
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("threads is {}, not in 1..{}", options.threads, kMaxThreads));
  }
  const auto check = [this](OrtStatus* status) { return runtime_->check(status, "configuring"); };
  PENSTOCK_TRY(check(api.SetIntraOpNumThreads(target, options.threads)));
  PENSTOCK_TRY(check(api.SetInterOpNumThreads(target, 1)));
  PENSTOCK_TRY(check(api.SetSessionExecutionMode(target, ORT_SEQUENTIAL)));
  PENSTOCK_TRY(check(api.SetSessionGraphOptimizationLevel(target, ORT_ENABLE_ALL)));
  PENSTOCK_TRY(check(api.EnableCpuMemArena(target)));
  std::vector<std::pair<const char*, std::string>> entries{
      // The environment's arena with its limit, instead of an unlimited one a session.
      {"session.use_env_allocators", "1"},
      // A constant of gigabytes that a few bytes of graph describe must not be made while loading.
      {"optimization.constant_folding_max_output_size_in_bytes", "67108864"},
      // External data comes from memory (ort_external_data.h). Should the engine want to open some
      // file all the same, no file can be there; by default it would look in the working directory.
      {"session.model_external_initializers_file_folder_path", "/dev/null"},
  };
  if (options.concurrent_runs > 1) {
    // Threads that spin while another run could use their core cost more than they win.
    entries.emplace_back("session.intra_op.allow_spinning", "0");
  }
  for (const auto& [key, value] : entries) {
    PENSTOCK_TRY(check(api.AddSessionConfigEntry(target, key, value.c_str())));
  }
  return append_provider(*runtime_,
                         {.name = manifest.provider,
                          .options = manifest.provider_options,
                          .library = options.provider_library},
                         target);
}

// Every input of the model is named by the manifest and nothing else; outputs may be a choice.
Result<void> OrtModel::validate(const Manifest& manifest) {
  struct Side {
    OrtSide which;
    const char* word;
    const std::vector<TensorSpec>& specs;
    std::vector<TensorSpec>& target;
  };
  const std::array<Side, 2> sides{{{OrtSide::kInput, "input", manifest.inputs, inputs_},
                                   {OrtSide::kOutput, "output", manifest.outputs, outputs_}}};
  for (const Side& side : sides) {
    auto infos = tensor_infos(*runtime_, session_.get(), side.which);
    if (!infos) return std::unexpected(infos.error());
    for (const TensorSpec& spec : side.specs) {
      const auto info = std::ranges::find(*infos, spec.name, &OrtTensorInfo::name);
      if (info == infos->end()) {
        std::string names;
        for (const OrtTensorInfo& known : *infos) {
          names += (names.empty() ? "'" : ", '") + known.name + "'";
        }
        return fail(ErrorKind::kInvalidArgument,
                    str_format("the manifest's {} '{}' is none of the model's: {}", side.word,
                               spec.name, names));
      }
      if (auto fits = check_spec(spec, *info); !fits) {
        return std::unexpected(std::move(fits).error().context(side.word));
      }
    }
    for (const OrtTensorInfo& info : *infos) {
      if (side.which == OrtSide::kInput &&
          std::ranges::find(side.specs, info.name, &TensorSpec::name) == side.specs.end()) {
        return fail(ErrorKind::kInvalidArgument,
                    str_format("the model's input '{}' is missing in the manifest", info.name));
      }
    }
    side.target = side.specs;
  }
  return {};
}

Result<void> OrtModel::within_limit(const std::string& doing, const std::function<void()>& stop,
                                    const std::function<OrtStatus*()>& work) const {
  const auto watch = limit_->watch(stop);
  auto done = runtime_->check(work(), doing);
  if (done || !watch.has_passed()) return done;
  if (limit_->stopped()) {
    return fail(ErrorKind::kCancelled, str_format("{}: interrupted", doing));
  }
  const auto seconds = std::chrono::duration<double>(limit_->limit()).count();
  return fail(
      ErrorKind::kDevice,
      str_format("{}: took longer than the limit of {:.6g} s and was stopped", doing, seconds));
}

Result<OrtHandle<OrtValue>> OrtModel::wrap(const OrtBuffer& buffer) const {
  auto value = runtime_->value();
  PENSTOCK_TRY(runtime_->check(
      runtime_->api().CreateTensorWithDataAsOrtValue(
          memory_.get(), buffer.bytes.data(), buffer.bytes.size(), buffer.shape.data(),
          buffer.shape.size(), to_ort(buffer.spec->type), out(value)),
      str_format("wrapping '{}'", buffer.spec->name)));
  return value;
}

Result<std::vector<OrtHandle<OrtValue>>> OrtModel::run(std::span<const OrtBuffer> inputs,
                                                       std::span<const OrtBuffer> outputs) const {
  auto binding = runtime_->binding();
  {
    const std::lock_guard lock(bindings_mutex_);
    if (!bindings_.empty()) {
      binding = std::move(bindings_.back());
      bindings_.pop_back();
    }
  }
  if (!binding) {
    PENSTOCK_TRY(runtime_->check(runtime_->api().CreateIoBinding(session_.get(), out(binding)),
                                 "creating a binding"));
  }
  auto values = run_bound(binding.get(), inputs, outputs);
  // Whatever happened, the pooled binding must not remember anybody's memory.
  runtime_->api().ClearBoundInputs(binding.get());
  runtime_->api().ClearBoundOutputs(binding.get());
  const std::lock_guard lock(bindings_mutex_);
  bindings_.push_back(std::move(binding));
  return values;
}

Result<std::vector<OrtHandle<OrtValue>>> OrtModel::run_bound(
    OrtIoBinding* binding, std::span<const OrtBuffer> inputs,
    std::span<const OrtBuffer> outputs) const {
  const OrtApi& api = runtime_->api();
  for (const OrtBuffer& input : inputs) {
    auto value = wrap(input);
    if (!value) return std::unexpected(value.error());
    PENSTOCK_TRY(runtime_->check(api.BindInput(binding, input.spec->name.c_str(), value->get()),
                                 str_format("binding input '{}'", input.spec->name)));
  }
  for (const OrtBuffer& output : outputs) {
    const std::string doing = str_format("binding output '{}'", output.spec->name);
    if (output.bytes.empty()) {
      PENSTOCK_TRY(runtime_->check(
          api.BindOutputToDevice(binding, output.spec->name.c_str(), memory_.get()), doing));
      continue;
    }
    auto value = wrap(output);
    if (!value) return std::unexpected(value.error());
    PENSTOCK_TRY(
        runtime_->check(api.BindOutput(binding, output.spec->name.c_str(), value->get()), doing));
  }
  auto run_options = runtime_->run_options();
  PENSTOCK_TRY(runtime_->check(api.CreateRunOptions(out(run_options)), "creating run options"));
  if (placement_) {
    // The session's log is verbose, for the placement's sake; a run's need not be.
    PENSTOCK_TRY(runtime_->check(
        api.RunOptionsSetRunLogSeverityLevel(run_options.get(), ORT_LOGGING_LEVEL_ERROR),
        "configuring a run"));
  }
  PENSTOCK_TRY(within_limit(
      "running", [&] { api.ReleaseStatus(api.RunOptionsSetTerminate(run_options.get())); },
      [&] { return api.RunWithBinding(session_.get(), run_options.get(), binding); }));

  std::vector<OrtHandle<OrtValue>> made;
  if (std::ranges::none_of(outputs, [](const OrtBuffer& o) { return o.bytes.empty(); })) {
    return made;
  }
  OrtAllocator* allocator = nullptr;
  OrtValue** values = nullptr;
  std::size_t count = 0;
  PENSTOCK_TRY(runtime_->check(api.GetAllocatorWithDefaultOptions(&allocator), "getting memory"));
  PENSTOCK_TRY(runtime_->check(api.GetBoundOutputValues(binding, allocator, &values, &count),
                               "fetching outputs"));
  for (std::size_t i = 0; i < count; ++i) {
    OrtHandle<OrtValue> value(values[i], api.ReleaseValue);
    if (i < outputs.size() && outputs[i].bytes.empty()) made.push_back(std::move(value));
  }
  PENSTOCK_TRY(runtime_->check(api.AllocatorFree(allocator, values), "freeing a list"));
  return made;
}

}  // namespace penstock
