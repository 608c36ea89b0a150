// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/onnxruntime/ort_providers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <span>
#include <string_view>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

/// The options as the API takes them; points into `choice`.
struct KeysAndValues {
  std::vector<const char*> keys;
  std::vector<const char*> values;
  explicit KeysAndValues(const ProviderChoice& choice) {
    for (const auto& [key, value] : choice.options) {
      keys.push_back(key.c_str());
      values.push_back(value.c_str());
    }
  }
  std::size_t size() const { return keys.size(); }
};

Result<std::span<const OrtEpDevice* const>> provider_devices(const OrtRuntime& runtime) {
  const OrtEpDevice* const* devices = nullptr;
  std::size_t count = 0;
  PENSTOCK_TRY(runtime.check(runtime.api().GetEpDevices(runtime.env(), &devices, &count),
                             "listing the devices of providers"));
  return std::span(devices, count);
}

/// The first device of the plugin's provider; null when none is its.
Result<const OrtEpDevice*> plugin_device(const OrtRuntime& runtime, const std::string& name) {
  const auto devices = provider_devices(runtime);
  if (!devices) return std::unexpected(devices.error());
  for (const OrtEpDevice* device : *devices) {
    if (runtime.api().EpDevice_EpName(device) == name) return device;
  }
  return nullptr;
}

Result<void> append_cuda(const OrtRuntime& runtime, const KeysAndValues& options,
                         OrtSessionOptions* target, const std::string& doing) {
  const OrtApi& api = runtime.api();
  OrtHandle<OrtCUDAProviderOptionsV2> cuda(nullptr, api.ReleaseCUDAProviderOptions);
  PENSTOCK_TRY(runtime.check(api.CreateCUDAProviderOptions(out(cuda)), doing));
  PENSTOCK_TRY(runtime.check(api.UpdateCUDAProviderOptions(cuda.get(), options.keys.data(),
                                                           options.values.data(), options.size()),
                             doing));
  return runtime.check(api.SessionOptionsAppendExecutionProvider_CUDA_V2(target, cuda.get()),
                       doing);
}

Result<void> append_tensorrt(const OrtRuntime& runtime, const KeysAndValues& options,
                             OrtSessionOptions* target, const std::string& doing) {
  const OrtApi& api = runtime.api();
  OrtHandle<OrtTensorRTProviderOptionsV2> trt(nullptr, api.ReleaseTensorRTProviderOptions);
  PENSTOCK_TRY(runtime.check(api.CreateTensorRTProviderOptions(out(trt)), doing));
  PENSTOCK_TRY(
      runtime.check(api.UpdateTensorRTProviderOptions(trt.get(), options.keys.data(),
                                                      options.values.data(), options.size()),
                    doing));
  return runtime.check(api.SessionOptionsAppendExecutionProvider_TensorRT_V2(target, trt.get()),
                       doing);
}

Result<void> append_dnnl(const OrtRuntime& runtime, const KeysAndValues& options,
                         OrtSessionOptions* target, const std::string& doing) {
  const OrtApi& api = runtime.api();
  OrtHandle<OrtDnnlProviderOptions> dnnl(nullptr, api.ReleaseDnnlProviderOptions);
  PENSTOCK_TRY(runtime.check(api.CreateDnnlProviderOptions(out(dnnl)), doing));
  PENSTOCK_TRY(runtime.check(api.UpdateDnnlProviderOptions(dnnl.get(), options.keys.data(),
                                                           options.values.data(), options.size()),
                             doing));
  return runtime.check(api.SessionOptionsAppendExecutionProvider_Dnnl(target, dnnl.get()), doing);
}

/// The one provider with a structure of its own and no way to fill it by names.
Result<void> append_migraphx(const OrtRuntime& runtime, const ProviderChoice& choice,
                             OrtSessionOptions* target, const std::string& doing) {
  OrtMIGraphXProviderOptions options{};
  options.migraphx_mem_limit = SIZE_MAX;
  const std::array<std::pair<std::string_view, int*>, 4> known{
      {{"device_id", &options.device_id},
       {"migraphx_fp16_enable", &options.migraphx_fp16_enable},
       {"migraphx_fp8_enable", &options.migraphx_fp8_enable},
       {"migraphx_int8_enable", &options.migraphx_int8_enable}}};
  for (const auto& [key, value] : choice.options) {
    const auto found = std::ranges::find(known, key, &std::pair<std::string_view, int*>::first);
    const char* end = value.data() + value.size();
    if (found == known.end() ||
        std::from_chars(value.data(), end, *found->second) != std::from_chars_result{end, {}}) {
      return fail(
          ErrorKind::kInvalidArgument,
          str_format("{}: '{}' = '{}' is no option of it with a number; it has device_id and "
                     "migraphx_fp16_enable, _fp8_enable and _int8_enable",
                     doing, key, value));
    }
  }
  return runtime.check(
      runtime.api().SessionOptionsAppendExecutionProvider_MIGraphX(target, &options), doing);
}

Result<void> append_built_in(const OrtRuntime& runtime, const ProviderChoice& choice,
                             OrtSessionOptions* target) {
  const KeysAndValues options(choice);
  const std::string doing = str_format("adding {}", choice.name);
  if (choice.name == "CUDAExecutionProvider") return append_cuda(runtime, options, target, doing);
  if (choice.name == "TensorrtExecutionProvider") {
    return append_tensorrt(runtime, options, target, doing);
  }
  if (choice.name == "DnnlExecutionProvider") return append_dnnl(runtime, options, target, doing);
  if (choice.name == "MIGraphXExecutionProvider") {
    return append_migraphx(runtime, choice, target, doing);
  }
  // The general call knows the others by their names without the suffix, two in other letters.
  std::string name = choice.name.substr(0, choice.name.find("ExecutionProvider"));
  if (name == "Xnnpack") name = "XNNPACK";
  if (name == "WebGpu") name = "WebGPU";
  return runtime.check(
      runtime.api().SessionOptionsAppendExecutionProvider(target, name.c_str(), options.keys.data(),
                                                          options.values.data(), options.size()),
      doing);
}

}  // namespace

Result<void> append_provider(OrtRuntime& runtime, const ProviderChoice& choice,
                             OrtSessionOptions* target) {
  if (!choice.library.empty()) PENSTOCK_TRY(runtime.register_provider_library(choice.library));
  const auto built_in = runtime.providers();
  if (!built_in) return std::unexpected(built_in.error());
  if (choice.name == kCpuProvider) {
    // Always there, and always last.
    if (choice.options.empty()) return {};
    return fail(ErrorKind::kInvalidArgument,
                str_format("{} has no options; the manifest gives '{}'", choice.name,
                           choice.options.front().first));
  }
  if (choice.library.empty() && std::ranges::contains(*built_in, choice.name)) {
    return append_built_in(runtime, choice, target);
  }
  const auto device = plugin_device(runtime, choice.name);
  if (!device) return std::unexpected(device.error());
  if (*device == nullptr) {
    std::string names;
    const auto offered = offered_providers(runtime);
    if (!offered) return std::unexpected(offered.error());
    for (const std::string& name : *offered) names += (names.empty() ? "" : ", ") + name;
    return fail(ErrorKind::kNotFound, str_format("'{}' does not offer {}; it has: {}",
                                                 runtime.library(), choice.name, names));
  }
  const KeysAndValues options(choice);
  return runtime.check(runtime.api().SessionOptionsAppendExecutionProvider_V2(
                           target, runtime.env(), &*device, 1, options.keys.data(),
                           options.values.data(), options.size()),
                       str_format("adding {}", choice.name));
}

Result<std::vector<std::string>> offered_providers(const OrtRuntime& runtime) {
  auto names = runtime.providers();
  if (!names) return names;
  const auto devices = provider_devices(runtime);
  if (!devices) return std::unexpected(devices.error());
  for (const OrtEpDevice* device : *devices) {
    std::string name = runtime.api().EpDevice_EpName(device);
    if (!std::ranges::contains(*names, name)) names->push_back(std::move(name));
  }
  return names;
}

}  // namespace penstock
