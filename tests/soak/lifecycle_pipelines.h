// SPDX-License-Identifier: Apache-2.0
//
// Pipelines of every shape that peninfer knows, each with tracker, zones and watermark behind it,
// at random sizes and settings: what `soak lifecycle` starts and stops.
#pragma once

#include <gst/gst.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "gst/gst_ptr.h"

namespace penstock {

enum class PipelineShape {
  kSingle,      ///< One source.
  kContainers,  ///< Up to three, through penmux and pendemux, perhaps with a second stage.
  kObjects,     ///< One, with a second stage that looks at what the first has found.
  kTiles,       ///< One, in tiles.
};
inline constexpr int kShapes = 4;
const char* to_string(PipelineShape shape);

/// A detector that finds two things in every picture, and a second stage. In a folder of its own.
class LifecycleModels {
 public:
  LifecycleModels();
  ~LifecycleModels();
  LifecycleModels(const LifecycleModels&) = delete;
  LifecycleModels& operator=(const LifecycleModels&) = delete;

  const std::string& detector() const { return detector_; }
  const std::string& second() const { return second_; }

 private:
  std::filesystem::path folder_;
  std::string detector_, second_;
};

struct LifecyclePipeline {
  gst::GstPtr<GstElement> pipeline;  ///< In NULL; null when GStreamer could not make it.
  std::vector<GstElement*> sources;  ///< The pipeline's.
};

/// `device` is "cpu" or "sim"; with "sim" the pipeline needs the device's context.
LifecyclePipeline make_lifecycle_pipeline(PipelineShape shape, const std::string& device,
                                          const LifecycleModels& models, std::mt19937& random);

}  // namespace penstock
