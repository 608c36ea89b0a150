// SPDX-License-Identifier: Apache-2.0
//
// OrtRuntime: an ONNX Runtime library loaded at run time, its C API and its environment. ONNX
// Runtime wants one environment a process, so open() gives all users of one library the same
// OrtRuntime; it goes with the last user. The library itself stays loaded (its threads and
// thread-local destructors do not survive dlclose).
//
//   auto runtime = OrtRuntime::open({});
//   OrtHandle<OrtSessionOptions> options = (*runtime)->session_options();
//   PENSTOCK_TRY((*runtime)->check((*runtime)->api().CreateSessionOptions(out(options)), "..."));
//
// Nothing of ONNX Runtime throws through this: its C API answers with OrtStatus.
#pragma once

#include <onnxruntime_c_api.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "penstock/base/error.h"

namespace penstock {

/// An owned ONNX Runtime object and the API function that releases it.
template <typename T>
using OrtHandle = std::unique_ptr<T, void (*)(T*)>;

/// Adapts an OrtHandle to the API's `T** out` parameters for the length of one call.
template <typename T>
class OrtOut {
 public:
  explicit OrtOut(OrtHandle<T>& handle) : handle_(handle) {}
  OrtOut(const OrtOut&) = delete;
  OrtOut& operator=(const OrtOut&) = delete;
  ~OrtOut() { handle_.reset(raw_); }
  operator T**() { return &raw_; }  // NOLINT: the point of this class

 private:
  OrtHandle<T>& handle_;
  T* raw_ = nullptr;
};
template <typename T>
OrtOut<T> out(OrtHandle<T>& handle) {
  return OrtOut<T>(handle);
}

/// An OrtLoggingFunction that writes into our log. ONNX Runtime logs each failing call and also
/// returns its message as a status, which becomes our Error; so its errors are only worth a debug
/// line, and a user sees each failure once.
void ORT_API_CALL forward_ort_log(void* unused, OrtLoggingLevel severity, const char* category,
                                  const char* logid, const char* location, const char* message);

class OrtRuntime {
 public:
  /// The oldest library whose API suffices, as minor version (1.23).
  static constexpr int kOldestMinor = 23;
  /// Upper bound of what all sessions of a process take from ONNX Runtime's CPU arena. A model that
  /// asks for more fails its run instead of taking the machine down.
  static constexpr std::size_t kArenaLimit = std::size_t{4} << 30;

  /// Loads `library` (empty: the build's default). kNotFound when it cannot be loaded, kUnsupported
  /// when it is no ONNX Runtime or too old.
  static Result<std::shared_ptr<OrtRuntime>> open(const std::filesystem::path& library);

  ~OrtRuntime();
  OrtRuntime(const OrtRuntime&) = delete;
  OrtRuntime& operator=(const OrtRuntime&) = delete;

  const OrtApi& api() const { return *api_; }
  OrtEnv* env() const { return env_; }
  const std::string& version() const { return version_; }  ///< "1.29.0"
  const std::string& library() const { return library_; }

  /// Takes over `status`: an Error with "`doing`: cause", or success for null.
  Result<void> check(OrtStatus* status, const std::string& doing) const;

  /// Loads a plugin provider's library into the environment, which keeps it: once a path, however
  /// often it is asked for. kNotFound: no such file.
  Result<void> register_provider_library(const std::filesystem::path& library);

  /// Names of the execution providers that this library was built with.
  Result<std::vector<std::string>> providers() const;

  /// Empty handles, to be filled through out().
  OrtHandle<OrtSession> session() const { return {nullptr, api_->ReleaseSession}; }
  OrtHandle<OrtSessionOptions> session_options() const {
    return {nullptr, api_->ReleaseSessionOptions};
  }
  OrtHandle<OrtMemoryInfo> memory_info() const { return {nullptr, api_->ReleaseMemoryInfo}; }
  OrtHandle<OrtValue> value() const { return {nullptr, api_->ReleaseValue}; }
  OrtHandle<OrtIoBinding> binding() const { return {nullptr, api_->ReleaseIoBinding}; }
  OrtHandle<OrtRunOptions> run_options() const { return {nullptr, api_->ReleaseRunOptions}; }
  OrtHandle<OrtTypeInfo> type_info() const { return {nullptr, api_->ReleaseTypeInfo}; }
  OrtHandle<OrtTensorTypeAndShapeInfo> shape_info() const {
    return {nullptr, api_->ReleaseTensorTypeAndShapeInfo};
  }

 private:
  OrtRuntime() = default;
  Result<void> load(const std::string& library);
  Result<void> create_environment();

  const OrtApi* api_ = nullptr;
  OrtEnv* env_ = nullptr;
  std::string version_;
  std::string library_;
  std::mutex providers_mutex_;
  std::set<std::string> provider_libraries_;  ///< Registered with env_, by canonical path.
};

}  // namespace penstock
