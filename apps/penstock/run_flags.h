// SPDX-License-Identifier: Apache-2.0
//
// The flags of `penstock run`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/penstock/engine_flags.h"

namespace penstock {

struct RunFlags {
  std::string pipeline;  ///< A YAML file instead of the flags below up to `convert`.
  std::vector<std::string> sources;
  std::string model;
  std::string models;
  std::string device = "cpu";
  std::string policy = "throughput";
  std::optional<float> threshold;
  std::optional<float> iou_threshold;
  std::optional<int> workers;
  EngineFlags engine;
  std::vector<std::string> outputs;
  bool track = false;
  std::string zones, lines;  ///< penzone's properties.
  bool convert = false;
  bool read_tensors = false;
  bool quiet = false;
};

}  // namespace penstock
