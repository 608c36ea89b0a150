// SPDX-License-Identifier: Apache-2.0
//
// What peninfer adds to a LATENCY reply (contract L05).
#pragma once

#include <gst/gst.h>

namespace penstock::gst {

struct LatencyBasis {
  GstClockTime frame_duration = GST_CLOCK_TIME_NONE;
  guint workers = 1;
  guint interval = 1;
  GstClockTime max_wait = 0;  ///< For a batch to fill.
  guint frame_limit = 1;      ///< Most frames held.
  GstClockTime run = 0;       ///< Of a frame, measured; 0: none so far.
};

/// Minimum: an element that keeps up with its stream has a run take up to workers x interval frame
/// durations, and may have to wait one more for a worker, but no longer than the frames that may be
/// held last; before that its batch may wait for max_wait, whatever is held. A sink that allows
/// less drops frames. Maximum: the frames that may be held; where that is below the minimum,
/// upstream is blocked and a live pipeline says so. With an unknown frame rate the measured run
/// stands for what the frames allow: it and max_wait are added to the minimum, and to the maximum
/// how long the held frames take at least, run / (workers x interval) each. Before the first run
/// only max_wait is known.
void add_latency(GstQuery* query, const LatencyBasis& basis);

}  // namespace penstock::gst
