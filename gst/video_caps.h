// SPDX-License-Identifier: Apache-2.0
//
// What video peninfer takes on each device (contract V01-V03), decided on the caps' own fields.
// GstVideoInfo is not asked about colour: it invents BT.601 for small frames that declare nothing.
#pragma once

#include <gst/video/video.h>

#include "gst/gst_ptr.h"
#include "penstock/base/error.h"
#include "penstock/media/colorimetry.h"
#include "penstock/media/video_frame.h"
#include "penstock/memory/device_id.h"

namespace penstock::gst {

/// Caps feature of frames in simulated device memory; made by the test plugin only.
inline constexpr char kSimMemoryFeature[] = "memory:PenstockSim";
/// Largest width and height of a frame (V03).
inline constexpr int kMaxFrameSide = 32766;

struct VideoFormat {
  PixelFormat format = PixelFormat::kI420;
  int width = 0;
  int height = 0;
  Colorimetry color;
  GstClockTime frame_duration = GST_CLOCK_TIME_NONE;  ///< NONE: variable or unknown rate.
  GstVideoInfo info;                                  ///< For strides and offsets only.
};

/// Formats and memory of a device, without sizes and colour: what a caps query is answered with.
CapsPtr device_caps(DeviceKind kind);

/// kUnsupported names the first offending field and what it would have to be. `caps` is fixed.
Result<VideoFormat> accept_caps(const GstCaps* caps, DeviceId device);

}  // namespace penstock::gst
