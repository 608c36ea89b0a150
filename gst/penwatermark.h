// SPDX-License-Identifier: Apache-2.0
//
// GObject type of `penwatermark`; docs/elements.md describes the element.
#pragma once

#include <gst/base/gstbasetransform.h>

G_BEGIN_DECLS
#define PEN_TYPE_WATERMARK (pen_watermark_get_type())
G_DECLARE_FINAL_TYPE(PenWatermark, pen_watermark, PEN, WATERMARK, GstBaseTransform)
G_END_DECLS
