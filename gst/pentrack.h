// SPDX-License-Identifier: Apache-2.0
//
// pentrack: ids that last for the objects of one stream, in place. It reads the object records of
// frames and adds tracking records; it never looks at pixels, so frames may lie in any memory.
// docs/elements.md describes properties, metadata and behaviour.
#pragma once

#include <gst/base/gstbasetransform.h>
#include <gst/gst.h>

G_BEGIN_DECLS
#define PEN_TYPE_TRACK (pen_track_get_type())
G_DECLARE_FINAL_TYPE(PenTrack, pen_track, PEN, TRACK, GstBaseTransform)
G_END_DECLS
