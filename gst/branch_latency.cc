// SPDX-License-Identifier: Apache-2.0
#include "gst/branch_latency.h"

#include <algorithm>

#include "gst/gst_ptr.h"
#include "gst/mux_latency.h"

namespace penstock::gst {
namespace {

struct Sum {
  BranchLatency own;
  gboolean live = FALSE;
  GstClockTime slowest = 0;
  GstClockTime primary = 0;
  GstClockTime maximum = GST_CLOCK_TIME_NONE;  ///< Without limit.
  guint pads = 0;
};

void add(Sum& sum, GstPad* pad) {
  ++sum.pads;
  const GstPtr<GstQuery> query(gst_query_new_latency());
  if (!gst_pad_peer_query(pad, query.get())) return;
  gboolean live = FALSE;
  GstClockTime minimum = 0;
  GstClockTime maximum = GST_CLOCK_TIME_NONE;
  gst_query_parse_latency(query.get(), &live, &minimum, &maximum);
  if (!live) return;
  sum.live = TRUE;
  sum.slowest = std::max(sum.slowest, minimum);
  if (pad == sum.own.primary) sum.primary = minimum;
  sum.maximum = std::min(sum.maximum, buffered_maximum(maximum, pad, sum.own.queue_depth));
}

}  // namespace

bool answer_branch_latency(GstElement* element, GstQuery* query, const BranchLatency& own) {
  Sum sum{.own = own};
  gst_element_foreach_sink_pad(
      element,
      [](GstElement*, GstPad* pad, gpointer data) -> gboolean {
        add(*static_cast<Sum*>(data), pad);
        return TRUE;
      },
      &sum);
  const bool waits_for_all = !GST_CLOCK_TIME_IS_VALID(own.wait) || sum.pads < 2;
  const GstClockTime bounded = waits_for_all ? sum.slowest : sum.primary + own.wait;
  gst_query_set_latency(query, sum.live, sum.live ? bounded : 0, sum.maximum);
  return sum.live != FALSE;
}

}  // namespace penstock::gst
