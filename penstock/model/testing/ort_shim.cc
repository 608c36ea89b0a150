// SPDX-License-Identifier: Apache-2.0
//
// A simulated library of ONNX Runtime: the real one (named by PENSTOCK_SHIM_ORT) that claims to
// have more execution providers than it has, and writes down how they are asked for. None of them
// runs anything: all runs on the CPU, whatever placement a test has it report. Tests only.
#include <dlfcn.h>
#include <onnxruntime_c_api.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

// Leaked on purpose: the library stays loaded until the process ends.
std::string& calls() {
  static auto& text = *new std::string;
  return text;
}

void record(const char* name, const char* const* keys, const char* const* values, size_t count) {
  calls() += name;
  for (size_t i = 0; i < count; ++i) calls() += std::string(" ") + keys[i] + "=" + values[i];
  calls() += "\n";
}

const OrtApi* real = nullptr;
OrtApi simulated;

constexpr std::array kProviders{"TensorrtExecutionProvider", "CUDAExecutionProvider",
                                "MIGraphXExecutionProvider", "OpenVINOExecutionProvider",
                                "XnnpackExecutionProvider",  "DnnlExecutionProvider",
                                "CPUExecutionProvider"};

OrtStatus* ORT_API_CALL providers(char*** names, int* count) noexcept {
  *names = const_cast<char**>(kProviders.data());
  *count = static_cast<int>(kProviders.size());
  return nullptr;
}
OrtStatus* ORT_API_CALL release_providers(char**, int) noexcept { return nullptr; }

OrtStatus* ORT_API_CALL append(OrtSessionOptions*, const char* name, const char* const* keys,
                               const char* const* values, size_t count) noexcept {
  record(name, keys, values, count);
  return nullptr;
}

// The options of providers that have an object for them; only its address matters.
int options_object = 0;
template <typename T>
OrtStatus* ORT_API_CALL create(T** out) noexcept {
  *out = reinterpret_cast<T*>(&options_object);
  return nullptr;
}
template <typename T>
OrtStatus* ORT_API_CALL update(T*, const char* const* keys, const char* const* values,
                               size_t count) noexcept {
  record("options", keys, values, count);
  return nullptr;
}
template <typename T>
void ORT_API_CALL release(T*) noexcept {}

OrtStatus* ORT_API_CALL append_cuda(OrtSessionOptions*, const OrtCUDAProviderOptionsV2*) noexcept {
  record("CUDA", nullptr, nullptr, 0);
  return nullptr;
}
OrtStatus* ORT_API_CALL append_tensorrt(OrtSessionOptions*,
                                        const OrtTensorRTProviderOptionsV2*) noexcept {
  record("TensorRT", nullptr, nullptr, 0);
  return nullptr;
}
OrtStatus* ORT_API_CALL append_dnnl(OrtSessionOptions*, const OrtDnnlProviderOptions*) noexcept {
  record("Dnnl", nullptr, nullptr, 0);
  return nullptr;
}
OrtStatus* ORT_API_CALL append_migraphx(OrtSessionOptions*,
                                        const OrtMIGraphXProviderOptions* options) noexcept {
  const std::string device = std::to_string(options->device_id);
  const std::string half = std::to_string(options->migraphx_fp16_enable);
  const std::array keys{"device_id", "fp16"};
  const std::array values{device.c_str(), half.c_str()};
  record("MIGraphX", keys.data(), values.data(), keys.size());
  return nullptr;
}

// What the next session says of its nodes' placement, a line each, in the place of the truth.
std::string& placement() {
  static auto& lines = *new std::string;
  return lines;
}
struct Listener {
  OrtLoggingFunction function = nullptr;
  void* self = nullptr;
};
Listener listener;

OrtStatus* ORT_API_CALL listen(OrtSessionOptions* options, OrtLoggingFunction function,
                               void* self) noexcept {
  if (placement().empty()) return real->SetUserLoggingFunction(options, function, self);
  listener = {function, self};
  return nullptr;
}

OrtStatus* ORT_API_CALL register_library(OrtEnv*, const char* name, const char*) noexcept {
  calls() += std::string("register ") + name + "\n";
  return nullptr;
}

// What happens just before a session is made, when all is said that the engine is told by.
struct Call {
  void (*function)(void*) = nullptr;
  void* self = nullptr;
};
Call before_session;

OrtStatus* ORT_API_CALL create_session(const OrtEnv* env, const void* model, size_t size,
                                       const OrtSessionOptions* options,
                                       OrtSession** session) noexcept {
  if (before_session.function != nullptr) before_session.function(before_session.self);
  OrtStatus* status = real->CreateSessionFromArray(env, model, size, options, session);
  std::string_view lines = placement();
  while (status == nullptr && listener.function != nullptr && !lines.empty()) {
    const std::string line(lines.substr(0, lines.find('\n')));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    listener.function(listener.self, ORT_LOGGING_LEVEL_VERBOSE, "onnxruntime", "",
                      "session_state.cc:1 VerifyEachNodeIsAssignedToAnEp", line.c_str());
  }
  listener = {};
  return status;
}

const OrtApi* ORT_API_CALL get_api(uint32_t version) noexcept;
const char* ORT_API_CALL get_version() noexcept { return "1.23.0"; }
constexpr OrtApiBase kBase{get_api, get_version};

const OrtApi* ORT_API_CALL get_api(uint32_t version) noexcept {
  const char* path = std::getenv("PENSTOCK_SHIM_ORT");
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return nullptr;
  const auto get_base = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
  if (get_base == nullptr) return nullptr;
  real = get_base()->GetApi(version);
  if (real == nullptr) return nullptr;
  simulated = *real;
  simulated.GetAvailableProviders = providers;
  simulated.ReleaseAvailableProviders = release_providers;
  simulated.SessionOptionsAppendExecutionProvider = append;
  simulated.CreateCUDAProviderOptions = create<OrtCUDAProviderOptionsV2>;
  simulated.UpdateCUDAProviderOptions = update<OrtCUDAProviderOptionsV2>;
  simulated.ReleaseCUDAProviderOptions = release<OrtCUDAProviderOptionsV2>;
  simulated.SessionOptionsAppendExecutionProvider_CUDA_V2 = append_cuda;
  simulated.CreateTensorRTProviderOptions = create<OrtTensorRTProviderOptionsV2>;
  simulated.UpdateTensorRTProviderOptions = update<OrtTensorRTProviderOptionsV2>;
  simulated.ReleaseTensorRTProviderOptions = release<OrtTensorRTProviderOptionsV2>;
  simulated.SessionOptionsAppendExecutionProvider_TensorRT_V2 = append_tensorrt;
  simulated.CreateDnnlProviderOptions = create<OrtDnnlProviderOptions>;
  simulated.UpdateDnnlProviderOptions = update<OrtDnnlProviderOptions>;
  simulated.ReleaseDnnlProviderOptions = release<OrtDnnlProviderOptions>;
  simulated.SessionOptionsAppendExecutionProvider_Dnnl = append_dnnl;
  simulated.SessionOptionsAppendExecutionProvider_MIGraphX = append_migraphx;
  simulated.RegisterExecutionProviderLibrary = register_library;
  simulated.SetUserLoggingFunction = listen;
  simulated.CreateSessionFromArray = create_session;
  return &simulated;
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) const OrtApiBase* ORT_API_CALL OrtGetApiBase() noexcept {
  return &kBase;
}
/// What was asked for since the last call, one line each; valid until the next.
__attribute__((visibility("default"))) const char* ort_shim_take_calls() {
  static auto& taken = *new std::string;
  taken = calls();
  calls().clear();
  return taken.c_str();
}
/// To be called before each session is made; null: nothing.
__attribute__((visibility("default"))) void ort_shim_before_session(void (*function)(void*),
                                                                    void* self) {
  before_session = {function, self};
}
/// What sessions say of their nodes' placement from now on; "": the truth.
__attribute__((visibility("default"))) void ort_shim_place(const char* lines) {
  placement() = lines;
}
}
