// SPDX-License-Identifier: Apache-2.0
//
// A tracker element in a real pipeline, fed with the detections of a crowd as GstAnalytics records:
//
//   appsrc ! TRACKER ! fakesink
//
// What it costs is the streaming thread's CPU time from a frame at the element's sink pad to the
// same frame at its source pad.
#pragma once

#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/records/records.h"
#include "penstock/track/testing/crowd.h"

namespace penstock::bench {

struct TrackRun {
  /// By frame: the objects that the element told a track for.
  std::vector<std::vector<Detection>> told;
  double cpu_us = 0;  ///< A frame.
};

/// `element` is a factory's name with properties, as for gst-launch. gst_init() and the
/// registration of Penstock's elements come before.
Result<TrackRun> run_tracker(const std::string& element,
                             const std::vector<testing::CrowdFrame>& crowd,
                             const testing::CrowdOptions& options);

}  // namespace penstock::bench
