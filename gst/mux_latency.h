// SPDX-License-Identifier: Apache-2.0
//
// What penmux answers to LATENCY and ALLOCATION queries (contract L05).
#pragma once

#include <gst/gst.h>

namespace penstock::gst {

struct MuxLatency {
  GstClockTime max_wait = 0;  ///< For frames of other streams.
  guint queue_depth = 1;      ///< Frames of a stream that may wait.
};

/// Asks what is before each sink pad of `mux`. Live if one of them is; the minimum is the largest
/// of the live ones and max_wait, the maximum the smallest that a stream can buffer. A source that
/// does not answer has no part in it: nobody waits for it.
void answer_mux_latency(GstElement* mux, GstQuery* query, const MuxLatency& own);

/// The smallest frame rate's duration, NONE where the caps have none.
GstClockTime frame_duration_of(const GstCaps* caps);

/// `maximum` of what is before `pad`, and how long the `queue_depth` frames last that may wait at
/// it, as far as its caps tell. NONE is no limit.
GstClockTime buffered_maximum(GstClockTime maximum, GstPad* pad, guint queue_depth);

}  // namespace penstock::gst
