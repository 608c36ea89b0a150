// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/onnxruntime/ort_runtime.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <mutex>

#include "penstock/base/log.h"
#include "penstock/base/str_format.h"

namespace penstock {
namespace {

ErrorKind kind_of(OrtErrorCode code) {
  switch (code) {
    case ORT_NO_SUCHFILE:
    case ORT_NO_MODEL:
      return ErrorKind::kNotFound;
    case ORT_INVALID_PROTOBUF:
    case ORT_INVALID_GRAPH:
      return ErrorKind::kCorrupt;
    case ORT_NOT_IMPLEMENTED:
      return ErrorKind::kUnsupported;
    default:
      return ErrorKind::kDevice;
  }
}

/// The minor version of "1.29.0", or -1.
int minor_version(std::string_view version) {
  if (!version.starts_with("1.")) return -1;
  int minor = -1;
  std::from_chars(version.data() + 2, version.data() + version.size(), minor);
  return minor;
}

}  // namespace

void ORT_API_CALL forward_ort_log(void*, OrtLoggingLevel severity, const char* category,
                                  const char*, const char* location, const char* message) {
  const auto level =
      severity == ORT_LOGGING_LEVEL_FATAL ? spdlog::level::err : spdlog::level::debug;
  log("onnxruntime").log(level, "{} ({}, {})", message, category, location);
}

Result<std::shared_ptr<OrtRuntime>> OrtRuntime::open(const std::filesystem::path& library) {
  std::string key = library.empty() ? PENSTOCK_ONNXRUNTIME_DEFAULT : library.string();
  if (key.find('/') != std::string::npos) {
    std::error_code error;
    const auto canonical = std::filesystem::canonical(key, error);
    if (!error) key = canonical.string();
  }
  // Leaked on purpose: sessions may end in destructors of static objects.
  static auto& mutex = *new std::mutex;
  static auto& runtimes = *new std::map<std::string, std::weak_ptr<OrtRuntime>>;
  const std::lock_guard lock(mutex);
  std::erase_if(runtimes, [](const auto& entry) { return entry.second.expired(); });
  if (auto runtime = runtimes[key].lock()) return runtime;
  std::shared_ptr<OrtRuntime> runtime(new OrtRuntime);
  PENSTOCK_TRY(runtime->load(key));
  PENSTOCK_TRY(runtime->create_environment());
  runtimes[key] = runtime;
  return runtime;
}

Result<void> OrtRuntime::load(const std::string& library) {
  library_ = library;
  // RTLD_LOCAL: its bundled protobuf, ONNX schemas and so on must not meet anybody else's.
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* cause = ::dlerror();
    std::error_code error;
    // A name without a folder is searched for, and the linker does not say whether it was found.
    const bool there =
        library.find('/') != std::string::npos && std::filesystem::exists(library, error);
    return fail(there ? ErrorKind::kUnsupported : ErrorKind::kNotFound,
                str_format("cannot load ONNX Runtime: {}; configure the path of "
                           "libonnxruntime.so.1 1.{} or later",
                           cause ? cause : library, kOldestMinor));
  }
  using GetApiBase = const OrtApiBase* (*)();
  const auto get_base = reinterpret_cast<GetApiBase>(::dlsym(handle, "OrtGetApiBase"));
  if (get_base == nullptr) {
    return fail(ErrorKind::kUnsupported,
                str_format("'{}' is no ONNX Runtime: it has no OrtGetApiBase", library));
  }
  const OrtApiBase* base = get_base();
  version_ = base->GetVersionString();
  // The library's minor version is the newest API it offers. Asking for a newer one prints a
  // complaint to stderr, so don't.
  const int offered = minor_version(version_);
  if (offered >= kOldestMinor) {
    api_ = base->GetApi(static_cast<std::uint32_t>(std::min<int>(offered, ORT_API_VERSION)));
  }
  if (api_ == nullptr) {
    return fail(ErrorKind::kUnsupported,
                str_format("'{}' is ONNX Runtime {}; 1.{} or later is needed", library, version_,
                           kOldestMinor));
  }
  return {};
}

Result<void> OrtRuntime::create_environment() {
  PENSTOCK_TRY(check(api_->CreateEnvWithCustomLogger(forward_ort_log, nullptr,
                                                     ORT_LOGGING_LEVEL_ERROR, "penstock", &env_),
                     "creating the environment"));
  auto memory = memory_info();
  PENSTOCK_TRY(check(api_->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, out(memory)),
                     "describing CPU memory"));
  // extend_strategy 1 (as requested) instead of doubling: RSS follows use.
  constexpr std::array<const char*, 2> kKeys{"max_mem", "arena_extend_strategy"};
  constexpr std::array<std::size_t, 2> kValues{kArenaLimit, 1};
  OrtHandle<OrtArenaCfg> arena(nullptr, api_->ReleaseArenaCfg);
  PENSTOCK_TRY(check(api_->CreateArenaCfgV2(kKeys.data(), kValues.data(), kKeys.size(), out(arena)),
                     "configuring the arena"));
  return check(api_->CreateAndRegisterAllocator(env_, memory.get(), arena.get()),
               "registering the arena");
}

OrtRuntime::~OrtRuntime() {
  if (env_ != nullptr) api_->ReleaseEnv(env_);
}

Result<void> OrtRuntime::check(OrtStatus* status, const std::string& doing) const {
  if (status == nullptr) return {};
  const ErrorKind kind = kind_of(api_->GetErrorCode(status));
  std::string message = str_format("{}: {}", doing, api_->GetErrorMessage(status));
  api_->ReleaseStatus(status);
  // Messages end in new lines or carry several; an error is one line.
  std::ranges::replace(message, '\n', ' ');
  while (message.ends_with(' ')) message.pop_back();
  return fail(kind, std::move(message));
}

Result<void> OrtRuntime::register_provider_library(const std::filesystem::path& library) {
  std::error_code error;
  const std::string path = std::filesystem::canonical(library, error).string();
  if (error) {
    return fail(ErrorKind::kNotFound,
                str_format("provider library '{}': {}", library.string(), error.message()));
  }
  const std::lock_guard lock(providers_mutex_);
  if (provider_libraries_.contains(path)) return {};
  PENSTOCK_TRY(check(api_->RegisterExecutionProviderLibrary(env_, path.c_str(), path.c_str()),
                     str_format("loading provider library '{}'", path)));
  provider_libraries_.insert(path);
  return {};
}

Result<std::vector<std::string>> OrtRuntime::providers() const {
  char** names = nullptr;
  int count = 0;
  PENSTOCK_TRY(check(api_->GetAvailableProviders(&names, &count), "listing the providers"));
  std::vector<std::string> providers(names, names + count);
  PENSTOCK_TRY(check(api_->ReleaseAvailableProviders(names, count), "releasing the providers"));
  return providers;
}

}  // namespace penstock
