// SPDX-License-Identifier: Apache-2.0
//
// peninfer's configuration properties and what they open. GObject properties are declared here
// once, with their documentation, so that gst-inspect, docs and checks agree.
#pragma once

#include <gst/gst.h>

#include <string>

#include "gst/infer_stream.h"
#include "gst/sharing.h"
#include "penstock/base/error.h"
#include "penstock/exec/frame_inference.h"
#include "penstock/media/tiles.h"

namespace penstock::gst {

enum class Roi { kFullFrame, kObjects, kTiles };

struct InferConfig {
  std::string model;
  std::string model_instance;
  std::string models_folder;
  std::string device = "cpu";
  Policy policy = Policy::kThroughput;
  guint batch_size = 1;
  guint64 max_wait_ns = 0;
  gfloat threshold = -1;      ///< -1: the model's own.
  gfloat iou_threshold = -1;  ///< -1: the model's own.
  guint max_objects = kMaxDetections;
  std::string labels;
  guint interval = 1;
  Roi roi = Roi::kFullFrame;
  std::string object_classes;
  guint object_min_size = 0;
  guint reinfer_interval = 1;
  std::string tiles = "2x2";
  guint tile_overlap = 20;
  guint queue_depth = 8;
  std::string engine_library;
  std::string provider_library;
  std::string burst;  ///< Path of a burst server's socket; empty: the engine runs here.
  std::string burst_model;
  bool burst_reconnect = false;
  guint workers = 0;  ///< 0: by policy and cores.
  bool read_tensors = false;
  bool operator==(const InferConfig&) const = default;
};

/// First id that is free for the element's own properties.
inline constexpr guint kFirstOwnProperty = 32;

void install_config_properties(GObjectClass* klass);
/// False when `id` is not a configuration property.
bool set_config_property(InferConfig& config, guint id, const GValue* value);
bool get_config_property(const InferConfig& config, guint id, GValue* value);

/// How long a partial batch is made to wait: max-wait where another element's frame may join it. A
/// stream has one frame at most in a batch, so alone it would only ever wait in vain.
guint64 batch_wait_ns(const InferConfig& config);

/// Opens device and model. The device comes by GstContext where one of that id is offered, and
/// `sim` only ever does. Elements of a pipeline with the same model-instance share the inference.
/// `held` is what the element had open so far, if anything: it is let go of before another model is
/// loaded, so that no two fill the device, and is kept where it serves the new configuration too.
Result<OpenedInferencePtr> open_inference(GstElement* element, const InferConfig& config,
                                          OpenedInferencePtr held);

/// What of a frame goes through the model: a stream's lanes, tasks and counts.
void choose_regions(const InferConfig& config, const Manifest& manifest,
                    InferStream::Options& options);

}  // namespace penstock::gst
