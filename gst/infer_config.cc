// SPDX-License-Identifier: Apache-2.0
#include "gst/infer_config.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "gst/element_state.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

enum Property : guint {
  kModel = 1,
  kModelInstance,
  kModelsFolder,
  kDevice,
  kPolicy,
  kBatchSize,
  kMaxWait,
  kThreshold,
  kIouThreshold,
  kMaxObjects,
  kLabels,
  kInterval,
  kRoi,
  kQueueDepth,
  kEngineLibrary,
  kWorkers,
  kReadTensors,
  kProviderLibrary,
};

GType policy_type() {
  static const GEnumValue values[] = {
      {int(Policy::kThroughput), "One single-threaded worker per core", "throughput"},
      {int(Policy::kLatency), "One worker whose runs use all cores", "latency"},
      {0, nullptr, nullptr}};
  static const GType type = g_enum_register_static("PenInferPolicy", values);
  return type;
}

GType roi_type() {
  static const GEnumValue values[] = {{int(Roi::kFullFrame), "The whole frame", "full-frame"},
                                      {0, nullptr, nullptr}};
  static const GType type = g_enum_register_static("PenInferRoi", values);
  return type;
}

constexpr auto kFlags = kReadyProperty;

void add_string(GObjectClass* klass, guint id, const char* name, const char* nick,
                const char* blurb, const char* value = nullptr) {
  g_object_class_install_property(klass, id, g_param_spec_string(name, nick, blurb, value, kFlags));
}

std::string string_of(const GValue* value) {
  const gchar* text = g_value_get_string(value);
  return text == nullptr ? "" : text;
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  while (true) {
    const auto comma = list.find(',');
    std::string_view part = list.substr(0, comma);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.emplace_back(part);
    if (comma == std::string_view::npos) return parts;
    list.remove_prefix(comma + 1);
  }
}

Result<DevicePtr> find_device(GstElement* element, const std::string& name) {
  const auto id = parse_device_id(name);
  if (!id) return std::unexpected(id.error());
  const ContextPtr context = find_context(element, kDeviceContext);
  if (DevicePtr offered = device_of(context.get()); offered && offered->id() == *id) {
    return offered;
  }
  if (id->kind == DeviceKind::kSim) {
    return fail(ErrorKind::kUnsupported, "device 'sim' exists only in the test plugin");
  }
  return open_device(*id);
}

Result<Manifest> find_manifest(const InferConfig& config) {
  if (config.model.empty()) {
    return fail(ErrorKind::kInvalidArgument, "property 'model' is not set");
  }
  const auto path = find_model(config.model, models_folder(config.models_folder));
  if (!path) return std::unexpected(path.error());
  auto manifest = load_manifest(*path);
  if (!manifest || config.labels.empty()) return manifest;
  std::vector<std::string> labels = split(config.labels);
  if (!manifest->labels.empty() && labels.size() != manifest->labels.size()) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("property 'labels' names {} classes, the model has {}", labels.size(),
                           manifest->labels.size()));
  }
  manifest->labels = std::move(labels);
  return manifest;
}

/// Requests that the executor lets one stream have waiting. Below what the element has promised to
/// hold, a deep queue would stay empty; the element's own budget bounds it from above.
std::size_t source_share(const InferConfig& config) {
  return std::max<std::size_t>(InferenceOptions{}.source_share, config.queue_depth);
}

/// Everything that decides what an inference computes and how; elements may share it only if equal.
std::string settings_of(const InferConfig& config) {
  return str_format(
      "model={} device={} policy={} batch-size={} max-wait={} threshold={} iou-threshold={} "
      "max-objects={} labels={} engine-library={} provider-library={} models-folder={} workers={} "
      "queue-depth={} read-tensors={}",
      config.model, config.device, config.policy == Policy::kLatency ? "latency" : "throughput",
      config.batch_size, config.max_wait_ns, config.threshold, config.iou_threshold,
      config.max_objects, config.labels, config.engine_library, config.provider_library,
      config.models_folder, config.workers, source_share(config), config.read_tensors);
}

}  // namespace

void install_config_properties(GObjectClass* klass) {
  const InferConfig initial;
  const auto install = [klass](guint id, GParamSpec* spec) {
    g_object_class_install_property(klass, id, spec);
  };
  add_string(
      klass, kModel, "model", "Model",
      "Prepared model: a name in the models folder, or the path of a manifest or its folder");
  add_string(klass, kModelInstance, "model-instance", "Model instance",
             "Elements of a pipeline with the same non-empty name share one loaded model");
  add_string(klass, kModelsFolder, "models-folder", "Models folder",
             "Where model names are looked up (empty: the user's data folder)");
  add_string(klass, kDevice, "device", "Device",
             "Device of frames and inference: cpu, cuda:0, hip:0", initial.device.c_str());
  install(kPolicy, g_param_spec_enum("policy", "Policy", "What the workers are arranged for",
                                     policy_type(), int(initial.policy), kFlags));
  install(kBatchSize, g_param_spec_uint("batch-size", "Batch size",
                                        "Largest number of frames, of different streams, in a run",
                                        1, 64, initial.batch_size, kFlags));
  install(kMaxWait, g_param_spec_uint64("max-wait", "Maximum wait",
                                        "How long a partial batch waits for frames of other "
                                        "elements of the model-instance, in ns",
                                        0, 10 * GST_SECOND, initial.max_wait_ns, kFlags));
  install(kThreshold,
          g_param_spec_float("threshold", "Threshold",
                             "Smallest confidence of a reported object (-1: the model's own)", -1,
                             1, initial.threshold, kFlags));
  install(kIouThreshold,
          g_param_spec_float("iou-threshold", "IoU threshold",
                             "Overlap above which the weaker of two boxes of a class is dropped "
                             "(-1: the model's own)",
                             -1, 1, initial.iou_threshold, kFlags));
  install(kMaxObjects,
          g_param_spec_uint("max-objects", "Maximum objects", "Most objects reported a frame", 1,
                            kMaxDetections, initial.max_objects, kFlags));
  add_string(klass, kLabels, "labels", "Labels",
             "Comma-separated class names instead of the model's (same number)");
  install(kInterval, g_param_spec_uint("interval", "Interval",
                                       "Infer every N-th frame; the others pass without objects", 1,
                                       G_MAXINT, initial.interval, kFlags));
  install(kRoi, g_param_spec_enum("roi", "Region of interest", "What of a frame is looked at",
                                  roi_type(), int(initial.roi), kFlags));
  install(kQueueDepth, g_param_spec_uint("queue-depth", "Queue depth",
                                         "Frames held beside the ones that are being inferred; a "
                                         "full queue blocks upstream",
                                         1, 1024, initial.queue_depth, kFlags));
  add_string(klass, kEngineLibrary, "engine-library", "Engine library",
             "Path of the inference engine's library (empty: the build's default)");
  add_string(klass, kProviderLibrary, "provider-library", "Provider library",
             "Path of the library of an execution provider that is not built into the engine; the "
             "model's manifest names the provider (empty: none is loaded)");
  install(kWorkers, g_param_spec_uint("workers", "Workers",
                                      "Threads that run frames through the model (0: by policy and "
                                      "the cores that this process may use)",
                                      0, 256, initial.workers, kFlags));
  install(kReadTensors,
          g_param_spec_boolean("read-tensors", "Read tensors",
                               "Read the outputs of a raw model back, at most 256 KiB a frame, "
                               "instead of only leaving them on the device",
                               initial.read_tensors, kFlags));
}

bool set_config_property(InferConfig& config, guint id, const GValue* value) {
  switch (id) {
    case kModel:
      config.model = string_of(value);
      return true;
    case kModelInstance:
      config.model_instance = string_of(value);
      return true;
    case kModelsFolder:
      config.models_folder = string_of(value);
      return true;
    case kDevice:
      config.device = string_of(value);
      return true;
    case kPolicy:
      config.policy = static_cast<Policy>(g_value_get_enum(value));
      return true;
    case kBatchSize:
      config.batch_size = g_value_get_uint(value);
      return true;
    case kMaxWait:
      config.max_wait_ns = g_value_get_uint64(value);
      return true;
    case kThreshold:
      config.threshold = g_value_get_float(value);
      return true;
    case kIouThreshold:
      config.iou_threshold = g_value_get_float(value);
      return true;
    case kMaxObjects:
      config.max_objects = g_value_get_uint(value);
      return true;
    case kLabels:
      config.labels = string_of(value);
      return true;
    case kInterval:
      config.interval = g_value_get_uint(value);
      return true;
    case kRoi:
      config.roi = static_cast<Roi>(g_value_get_enum(value));
      return true;
    case kQueueDepth:
      config.queue_depth = g_value_get_uint(value);
      return true;
    case kEngineLibrary:
      config.engine_library = string_of(value);
      return true;
    case kProviderLibrary:
      config.provider_library = string_of(value);
      return true;
    case kWorkers:
      config.workers = g_value_get_uint(value);
      return true;
    case kReadTensors:
      config.read_tensors = g_value_get_boolean(value) != FALSE;
      return true;
    default:
      return false;
  }
}

bool get_config_property(const InferConfig& config, guint id, GValue* value) {
  const auto set = [value](const std::string& text) { g_value_set_string(value, text.c_str()); };
  switch (id) {
    case kModel:
      return set(config.model), true;
    case kModelInstance:
      return set(config.model_instance), true;
    case kModelsFolder:
      return set(config.models_folder), true;
    case kDevice:
      return set(config.device), true;
    case kPolicy:
      return g_value_set_enum(value, int(config.policy)), true;
    case kBatchSize:
      return g_value_set_uint(value, config.batch_size), true;
    case kMaxWait:
      return g_value_set_uint64(value, config.max_wait_ns), true;
    case kThreshold:
      return g_value_set_float(value, config.threshold), true;
    case kIouThreshold:
      return g_value_set_float(value, config.iou_threshold), true;
    case kMaxObjects:
      return g_value_set_uint(value, config.max_objects), true;
    case kLabels:
      return set(config.labels), true;
    case kInterval:
      return g_value_set_uint(value, config.interval), true;
    case kRoi:
      return g_value_set_enum(value, int(config.roi)), true;
    case kQueueDepth:
      return g_value_set_uint(value, config.queue_depth), true;
    case kEngineLibrary:
      return set(config.engine_library), true;
    case kProviderLibrary:
      return set(config.provider_library), true;
    case kWorkers:
      return g_value_set_uint(value, config.workers), true;
    case kReadTensors:
      return g_value_set_boolean(value, config.read_tensors ? TRUE : FALSE), true;
    default:
      return false;
  }
}

guint64 batch_wait_ns(const InferConfig& config) {
  const bool others_may_join = !config.model_instance.empty() && config.batch_size > 1;
  return others_may_join ? config.max_wait_ns : 0;
}

Result<OpenedInferencePtr> open_inference(GstElement* element, const InferConfig& config,
                                          OpenedInferencePtr held) {
  const auto negative_but_not_own = [](float value) { return value < 0 && value != -1; };
  if (negative_but_not_own(config.threshold) || negative_but_not_own(config.iou_threshold)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("threshold {} and iou-threshold {} must be within 0..1, or -1",
                           config.threshold, config.iou_threshold));
  }
  const auto open = [&]() -> Result<OpenedInferencePtr> {
    const auto device = find_device(element, config.device);
    if (!device) return std::unexpected(device.error());
    const auto manifest = find_manifest(config);
    if (!manifest) return std::unexpected(manifest.error());
    InferenceOptions options;
    options.policy = config.policy;
    options.workers = static_cast<int>(config.workers);
    // As the default is: room for the shares of eight elements.
    options.queue_depth = options.queue_depth / options.source_share * source_share(config);
    options.source_share = source_share(config);
    options.batch_size = static_cast<int>(config.batch_size);
    options.max_wait = Nanoseconds(batch_wait_ns(config));
    options.decode.threshold = config.threshold < 0 ? manifest->threshold : config.threshold;
    options.decode.iou_threshold =
        config.iou_threshold < 0 ? manifest->iou_threshold : config.iou_threshold;
    options.decode.max_objects = static_cast<int>(config.max_objects);
    options.decode.read_tensors = config.read_tensors;
    options.engine_library = config.engine_library;
    options.provider_library = config.provider_library;
    auto inference = FrameInference::open(*device, *manifest, options);
    if (!inference) return std::unexpected(inference.error());
    return std::make_shared<OpenedInference>(*device, std::move(*inference));
  };
  if (config.model_instance.empty()) {
    held.reset();
    return open();
  }
  return shared_registry(element)->open(config.model_instance, settings_of(config), std::move(held),
                                        open);
}

}  // namespace penstock::gst
