// SPDX-License-Identifier: Apache-2.0
//
// For tests and benchmarks: crowds whose truth is known, what a detector would say of them, and the
// usual figures of how well a tracker did.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/records/records.h"

namespace penstock::testing {

struct CrowdOptions {
  int width = 1280, height = 720;
  int frames = 600;
  int objects = 10;            ///< In the picture at any time, about.
  bool crossings = false;      ///< All walk on a few lanes in both directions, through one another.
  int occlusion_frames = 0;    ///< Objects vanish for 5 to as many, now and then; 0: never.
  float missed = 0;            ///< Part of the visible objects that the detector does not see.
  float false_detections = 0;  ///< Of the number of detections, at random places.
  float jitter = 0.03f;        ///< Standard deviation of a box's sides, parts of its height.
  std::uint32_t seed = 1;
};

struct TrueObject {
  std::int64_t id = 0;
  float x = 0, y = 0, width = 0, height = 0;
};

struct CrowdFrame {
  std::vector<TrueObject> visible;  ///< The truth; hidden objects are not asked for.
  std::vector<Detection> detections;
};

/// The same crowd for the same options on every machine of one standard library.
std::vector<CrowdFrame> make_crowd(const CrowdOptions& options);

/// The CLEAR and identity figures of tracking, boxes matched at an IoU of 0.5.
struct TrackingFigures {
  double mota = 0;
  double idf1 = 0;
  std::uint64_t switches = 0;
};

/// `told[i]` are the tracked objects of frame i: those with a track id count.
TrackingFigures judge(const std::vector<CrowdFrame>& crowd,
                      const std::vector<std::vector<Detection>>& told);

}  // namespace penstock::testing
