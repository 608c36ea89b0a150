// SPDX-License-Identifier: Apache-2.0
//
// What penwatermark takes and makes (contracts V01-V03, W02).
#pragma once

#include <gst/gst.h>

#include "gst/gst_ptr.h"
#include "gst/video_caps.h"
#include "penstock/base/error.h"

namespace penstock::gst {

/// As accept_caps(), and no side is longer than kMaxDrawnSide.
Result<VideoFormat> accept_watermark_caps(const GstCaps* caps, DeviceId device);

/// What the other pad may have for `caps` on the one at `direction`: BGRA in sRGB for the device's
/// frames and the other way round, of the same size, rate and shape of pixels.
CapsPtr watermark_caps_for(GstPadDirection direction, const GstCaps* caps, DeviceKind device);

}  // namespace penstock::gst
