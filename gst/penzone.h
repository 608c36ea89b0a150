// SPDX-License-Identifier: Apache-2.0
//
// penzone: what tracked objects of one stream do with places in the picture. Frames pass untouched;
// events are messages on the bus, sums the property `stats`. docs/elements.md describes both.
#pragma once

#include <gst/base/gstbasetransform.h>
#include <gst/gst.h>

G_BEGIN_DECLS
#define PEN_TYPE_ZONE (pen_zone_get_type())
G_DECLARE_FINAL_TYPE(PenZone, pen_zone, PEN, ZONE, GstBaseTransform)
G_END_DECLS
