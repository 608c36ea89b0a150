// SPDX-License-Identifier: Apache-2.0
#include "bench/raw_inference.h"

#include <dlfcn.h>
#include <onnxruntime_c_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/str_format.h"

namespace penstock::bench {
namespace {

struct Bound {
  std::vector<std::vector<float>> memory;
  std::vector<OrtValue*> values;
  OrtIoBinding* binding = nullptr;
};

std::vector<std::int64_t> fixed_shape(const TensorSpec& spec) {
  std::vector<std::int64_t> shape;
  for (const Dimension& dim : spec.dims) shape.push_back(dim.minimum);
  return shape;
}

class OrtRaw final : public RawInference {
 public:
  ~OrtRaw() override {
    for (Bound& bound : bound_) {
      if (bound.binding != nullptr) api_->ReleaseIoBinding(bound.binding);
      for (OrtValue* value : bound.values) api_->ReleaseValue(value);
    }
    if (memory_ != nullptr) api_->ReleaseMemoryInfo(memory_);
    if (session_ != nullptr) api_->ReleaseSession(session_);
    if (options_ != nullptr) api_->ReleaseSessionOptions(options_);
    if (env_ != nullptr) api_->ReleaseEnv(env_);
  }

  Result<void> load(const std::filesystem::path& library, const Manifest& manifest, int workers) {
    void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return fail(ErrorKind::kNotFound, ::dlerror());
    const auto base = reinterpret_cast<const OrtApiBase* (*)()>(::dlsym(handle, "OrtGetApiBase"));
    api_ = base != nullptr ? base()->GetApi(ORT_API_VERSION) : nullptr;
    if (api_ == nullptr) {
      return fail(ErrorKind::kUnsupported,
                  str_format("'{}' has no API of version {}", library.string(), ORT_API_VERSION));
    }
    PENSTOCK_TRY(check(api_->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "limit", &env_)));
    PENSTOCK_TRY(check(api_->CreateSessionOptions(&options_)));
    PENSTOCK_TRY(check(api_->SetIntraOpNumThreads(options_, 1)));
    PENSTOCK_TRY(check(api_->SetInterOpNumThreads(options_, 1)));
    PENSTOCK_TRY(check(api_->SetSessionGraphOptimizationLevel(options_, ORT_ENABLE_ALL)));
    PENSTOCK_TRY(check(api_->CreateSession(env_, manifest.artefact.c_str(), options_, &session_)));
    PENSTOCK_TRY(check(api_->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory_)));
    bound_.resize(std::size_t(workers));
    for (Bound& bound : bound_) PENSTOCK_TRY(bind(bound, manifest));
    return {};
  }

  Result<void> run(int worker) override {
    return check(api_->RunWithBinding(session_, nullptr, bound_[std::size_t(worker)].binding));
  }

 private:
  Result<void> check(OrtStatus* status) {
    if (status == nullptr) return {};
    std::string text = api_->GetErrorMessage(status);
    api_->ReleaseStatus(status);
    return fail(ErrorKind::kDevice, std::move(text));
  }

  Result<void> bind(Bound& bound, const Manifest& manifest) {
    PENSTOCK_TRY(check(api_->CreateIoBinding(session_, &bound.binding)));
    // Values of the size of a normalised picture's, from a fixed sequence.
    std::uint32_t state = 1;
    const auto next = [&state] {
      state = state * 1664525 + 1013904223;
      return float(state >> 8) / float(1 << 24) * 4 - 2;
    };
    for (const TensorSpec& spec : manifest.inputs) {
      OrtValue* value = nullptr;
      PENSTOCK_TRY(make(bound, spec, &value));
      for (float& element : bound.memory.back()) element = next();
      PENSTOCK_TRY(check(api_->BindInput(bound.binding, spec.name.c_str(), value)));
    }
    for (const TensorSpec& spec : manifest.outputs) {
      OrtValue* value = nullptr;
      PENSTOCK_TRY(make(bound, spec, &value));
      PENSTOCK_TRY(check(api_->BindOutput(bound.binding, spec.name.c_str(), value)));
    }
    return {};
  }

  Result<void> make(Bound& bound, const TensorSpec& spec, OrtValue** value) {
    const std::vector<std::int64_t> shape = fixed_shape(spec);
    std::size_t count = 1;
    for (std::int64_t side : shape) count *= std::size_t(side);
    bound.memory.emplace_back(count);
    PENSTOCK_TRY(check(api_->CreateTensorWithDataAsOrtValue(
        memory_, bound.memory.back().data(), count * sizeof(float), shape.data(), shape.size(),
        ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, value)));
    bound.values.push_back(*value);
    return {};
  }

  const OrtApi* api_ = nullptr;
  OrtEnv* env_ = nullptr;
  OrtSessionOptions* options_ = nullptr;
  OrtSession* session_ = nullptr;
  OrtMemoryInfo* memory_ = nullptr;
  std::vector<Bound> bound_;
};

}  // namespace

Result<std::unique_ptr<RawInference>> RawInference::open(const std::filesystem::path& library,
                                                         const Manifest& manifest, int workers) {
  auto raw = std::make_unique<OrtRaw>();
  PENSTOCK_TRY(raw->load(library, manifest, workers));
  return raw;
}

}  // namespace penstock::bench
