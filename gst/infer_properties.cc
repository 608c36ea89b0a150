// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "gst/element_state.h"
#include "gst/infer_config.h"

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
  kObjectClasses,
  kObjectMinSize,
  kReinferInterval,
  kTiles,
  kTileOverlap,
  kBurst,
  kBurstModel,
  kBurstReconnect,
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
  static const GEnumValue values[] = {
      {int(Roi::kFullFrame), "The whole frame", "full-frame"},
      {int(Roi::kObjects), "Each object that the frame's metadata has", "objects"},
      {int(Roi::kTiles), "Each tile of a grid that covers the frame", "tiles"},
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

}  // namespace

void install_config_properties(GObjectClass* klass) {
  const InferConfig initial;
  const auto install = [klass](guint id, GParamSpec* spec) {
    g_object_class_install_property(klass, id, spec);
  };
  add_string(klass, kModel, "model", "Model",
             "A name in models-folder, or the path of a manifest.json or its folder; must be set");
  add_string(klass, kModelInstance, "model-instance", "Model instance",
             "Elements of one pipeline with the same name share one loaded model; their settings "
             "must be the same");
  add_string(klass, kModelsFolder, "models-folder", "Models folder",
             "Where names are looked up; empty: $XDG_DATA_HOME/penstock/models, else "
             "~/.local/share/penstock/models");
  add_string(
      klass, kDevice, "device", "Device",
      "Where frames lie and the model runs: cpu, cuda[:N], hip[:N]; never changed by the element",
      initial.device.c_str());
  install(
      kPolicy,
      g_param_spec_enum(
          "policy", "Policy",
          "throughput: one single-threaded worker a core; latency: one worker that uses all cores",
          policy_type(), int(initial.policy), kFlags));
  install(kBatchSize,
          g_param_spec_uint(
              "batch-size", "Batch size",
              "Most frames in a run, each of another stream: of use with containers and a shared "
              "model-instance. With roi other than full-frame also regions of one frame",
              1, 64, initial.batch_size, kFlags));
  install(kMaxWait, g_param_spec_uint64("max-wait", "Maximum wait",
                                        "How long (ns) an incomplete batch waits for frames of "
                                        "other elements; without model-instance nothing waits",
                                        0, 10 * GST_SECOND, initial.max_wait_ns, kFlags));
  install(kThreshold, g_param_spec_float("threshold", "Threshold",
                                         "Smallest confidence of an object; -1: the model's own",
                                         -1, 1, initial.threshold, kFlags));
  install(
      kIouThreshold,
      g_param_spec_float("iou-threshold", "IoU threshold",
                         "Overlap above which the weaker of two boxes of a class is dropped, or of "
                         "any two where the manifest says class_agnostic; -1: the model's own",
                         -1, 1, initial.iou_threshold, kFlags));
  install(kMaxObjects, g_param_spec_uint("max-objects", "Maximum objects",
                                         "Most objects a frame, the surest first; with roi=objects "
                                         "also the most that are looked at",
                                         1, kMaxDetections, initial.max_objects, kFlags));
  add_string(klass, kLabels, "labels", "Labels",
             "Other names for the model's classes, comma-separated, one for each; empty: its own");
  install(kInterval, g_param_spec_uint("interval", "Interval",
                                       "Infer the first frame of a stream and every N-th after it; "
                                       "the others pass without metadata",
                                       1, G_MAXINT, initial.interval, kFlags));
  install(kRoi, g_param_spec_enum("roi", "Region of interest",
                                  "What of a frame is looked at: all of it, each object that its "
                                  "metadata has, or each tile of a grid",
                                  roi_type(), int(initial.roi), kFlags));
  add_string(klass, kObjectClasses, "object-classes", "Object classes",
             "roi=objects: labels of the objects that are looked at, comma-separated; empty: all");
  install(kObjectMinSize,
          g_param_spec_uint(
              "object-min-size", "Minimum object size",
              "roi=objects: least width and height, in pixels, of an object that is looked at", 0,
              kMaxFrameSide, initial.object_min_size, kFlags));
  install(kReinferInterval, g_param_spec_uint("reinfer-interval", "Interval of looking again",
                                              "roi=objects: after how many frames an object with a "
                                              "track id is looked at again; 0: never",
                                              0, G_MAXINT, initial.reinfer_interval, kFlags));
  add_string(klass, kTiles, "tiles", "Tiles", "roi=tiles: columns x rows of the grid, each 1..16",
             initial.tiles.c_str());
  install(
      kTileOverlap,
      g_param_spec_uint("tile-overlap", "Overlap of tiles",
                        "roi=tiles: per cent of a tile's side that it shares with each neighbour",
                        0, TileGrid::kMaxOverlap, initial.tile_overlap, kFlags));
  install(kQueueDepth,
          g_param_spec_uint("queue-depth", "Queue depth",
                            "Frames held besides those that are inferred; when they are used up, "
                            "upstream waits. All of them may wait for inference at once. Above 8, "
                            "elements that share a model-instance must agree on it",
                            1, 1024, initial.queue_depth, kFlags));
  add_string(klass, kEngineLibrary, "engine-library", "Engine library",
             "The ONNX Runtime to load, a path; empty: the build's");
  add_string(klass, kProviderLibrary, "provider-library", "Provider library",
             "The library of an execution provider that is not built into ONNX Runtime, a path; "
             "the model's manifest names the provider, never the library");
  add_string(klass, kBurst, "burst", "Burst",
             "Run the model in the process that serves bursts at this Unix socket (penstock burst "
             "serve); tensors cross in shared memory; empty: in this process");
  add_string(klass, kBurstModel, "burst-model", "Burst's model",
             "The name under which the server has the model; empty: the manifest's. It must be the "
             "same artefact, by its hash");
  install(kBurstReconnect,
          g_param_spec_boolean("burst-reconnect", "Burst reconnects",
                               "When the server goes, frames wait until it is back, a minute at "
                               "most, and a warning is posted; otherwise it is an error at once",
                               initial.burst_reconnect, kFlags));
  install(kWorkers,
          g_param_spec_uint(
              "workers", "Workers",
              "Runs at the same time; 0: by policy and the cores that the process may use, by its "
              "affinity and the cpu.max of its control groups (cgroup v2), rounded up",
              0, 256, initial.workers, kFlags));
  install(kReadTensors,
          g_param_spec_boolean("read-tensors", "Read tensors",
                               "Models of task raw: read their outputs back, at most 256 KiB a "
                               "frame; other models have nothing of the kind",
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
    case kObjectClasses:
      config.object_classes = string_of(value);
      return true;
    case kObjectMinSize:
      config.object_min_size = g_value_get_uint(value);
      return true;
    case kReinferInterval:
      config.reinfer_interval = g_value_get_uint(value);
      return true;
    case kTiles:
      config.tiles = string_of(value);
      return true;
    case kTileOverlap:
      config.tile_overlap = g_value_get_uint(value);
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
    case kBurst:
      config.burst = string_of(value);
      return true;
    case kBurstModel:
      config.burst_model = string_of(value);
      return true;
    case kBurstReconnect:
      config.burst_reconnect = g_value_get_boolean(value) != FALSE;
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
    case kObjectClasses:
      return set(config.object_classes), true;
    case kObjectMinSize:
      return g_value_set_uint(value, config.object_min_size), true;
    case kReinferInterval:
      return g_value_set_uint(value, config.reinfer_interval), true;
    case kTiles:
      return set(config.tiles), true;
    case kTileOverlap:
      return g_value_set_uint(value, config.tile_overlap), true;
    case kQueueDepth:
      return g_value_set_uint(value, config.queue_depth), true;
    case kEngineLibrary:
      return set(config.engine_library), true;
    case kProviderLibrary:
      return set(config.provider_library), true;
    case kBurst:
      return set(config.burst), true;
    case kBurstModel:
      return set(config.burst_model), true;
    case kBurstReconnect:
      return g_value_set_boolean(value, config.burst_reconnect ? TRUE : FALSE), true;
    case kWorkers:
      return g_value_set_uint(value, config.workers), true;
    case kReadTensors:
      return g_value_set_boolean(value, config.read_tensors ? TRUE : FALSE), true;
    default:
      return false;
  }
}

}  // namespace penstock::gst
