// SPDX-License-Identifier: Apache-2.0
#include "gst/latency.h"

#include <algorithm>

namespace penstock::gst {

void add_latency(GstQuery* query, const LatencyBasis& basis) {
  gboolean live = FALSE;
  GstClockTime minimum = 0, maximum = GST_CLOCK_TIME_NONE;
  gst_query_parse_latency(query, &live, &minimum, &maximum);
  const guint64 running = guint64{basis.workers} * basis.interval;
  GstClockTime least = basis.run + basis.max_wait;
  GstClockTime most = basis.run * basis.frame_limit / running;
  if (GST_CLOCK_TIME_IS_VALID(basis.frame_duration)) {
    most = basis.frame_duration * basis.frame_limit;
    least = std::min(basis.frame_duration * (running + 1), most) + basis.max_wait;
  }
  if (GST_CLOCK_TIME_IS_VALID(maximum)) maximum += most;
  gst_query_set_latency(query, live, minimum + least, maximum);
}

}  // namespace penstock::gst
