// SPDX-License-Identifier: Apache-2.0
//
// GObject type of `penwatermark`; docs/elements.md describes the element.
#pragma once

#include <gst/base/gstbasetransform.h>

G_BEGIN_DECLS
#define PEN_TYPE_WATERMARK (pen_watermark_get_type())
G_DECLARE_FINAL_TYPE(PenWatermark, pen_watermark, PEN, WATERMARK, GstBaseTransform)
G_END_DECLS

namespace penstock {
class Clock;
}

namespace penstock::gst {

/// The clock by which the element tells that output frames are held for long; in NULL and READY
/// only. Tests give one that they move.
void set_watermark_clock(PenWatermark* element, Clock& clock);

}  // namespace penstock::gst
