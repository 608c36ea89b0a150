// SPDX-License-Identifier: Apache-2.0
//
// What a run can analyse, said in a user's words. peninfer refuses the same caps at negotiation
// (contract V01, V02); asking first turns "not-negotiated" into the reason.
#pragma once

#include <gst/gst.h>

#include <string>

#include "penstock/base/error.h"

namespace penstock {

struct VideoShape {
  std::string format;  ///< "I420", "NV12", ...
  int width = 0;
  int height = 0;
  double frame_rate = 0;  ///< 0: unknown or variable.
  bool operator==(const VideoShape&) const = default;
};

enum class Intake {
  kDirect,   ///< As decoded.
  kConvert,  ///< 8-bit, but not 4:2:0: only through a convert stage.
};

/// The way decoded video of these fixed caps takes. kUnsupported names the offending property: odd
/// size, interlacing, more than 8 bits, an HDR transfer, device memory.
Result<Intake> intake_of(const GstCaps* caps);
Result<VideoShape> shape_of(const GstCaps* caps);

}  // namespace penstock
