// SPDX-License-Identifier: Apache-2.0
//
// What elements share that read and write the records of frames, in place, and no pixel.
#pragma once

#include <gst/base/gstbasetransform.h>

namespace penstock::gst {

/// Pads for frames of any format in whatever memory.
void add_any_video_pads(GstElementClass* klass);

/// The caps' width and height in pixels. FALSE posts an error: they have none.
gboolean read_picture_size(GstBaseTransform* element, const GstCaps* caps, int& width, int& height);

/// What comes behind the event is another stream, or was elsewhere in time. Both kinds are
/// serialized with the frames.
bool begins_anew(const GstEvent* event);

/// Of the frame's begin; GST_CLOCK_TIME_NONE where it has no time. Called while it is transformed.
GstClockTime running_time_of(const GstBaseTransform* element, const GstBuffer* buffer);

}  // namespace penstock::gst
