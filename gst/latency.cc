// SPDX-License-Identifier: Apache-2.0
#include "gst/latency.h"

#include <algorithm>

namespace penstock::gst {

void add_latency(GstQuery* query, const LatencyBasis& basis) {
  gboolean live = FALSE;
  GstClockTime minimum = 0, maximum = GST_CLOCK_TIME_NONE;
  gst_query_parse_latency(query, &live, &minimum, &maximum);
  if (!GST_CLOCK_TIME_IS_VALID(basis.frame_duration)) {
    gst_query_set_latency(query, live, minimum + basis.max_wait, GST_CLOCK_TIME_NONE);
    return;
  }
  const GstClockTime most = basis.frame_duration * basis.frame_limit;
  const guint64 frames = guint64{basis.workers} * basis.interval + 1;
  const GstClockTime least = std::min(basis.frame_duration * frames, most) + basis.max_wait;
  if (GST_CLOCK_TIME_IS_VALID(maximum)) maximum += most;
  gst_query_set_latency(query, live, minimum + least, maximum);
}

}  // namespace penstock::gst
