// SPDX-License-Identifier: Apache-2.0
#include "gst/mux_latency.h"

#include <algorithm>

#include "gst/gst_ptr.h"

namespace penstock::gst {
namespace {

struct Sum {
  MuxLatency own;
  gboolean live = FALSE;
  GstClockTime minimum = 0;
  GstClockTime maximum = GST_CLOCK_TIME_NONE;  ///< Without limit.
};

void add(Sum& sum, GstPad* pad) {
  const GstPtr<GstQuery> query(gst_query_new_latency());
  if (!gst_pad_peer_query(pad, query.get())) return;
  gboolean live = FALSE;
  GstClockTime minimum = 0;
  GstClockTime maximum = GST_CLOCK_TIME_NONE;
  gst_query_parse_latency(query.get(), &live, &minimum, &maximum);
  if (!live) return;
  sum.live = TRUE;
  sum.minimum = std::max(sum.minimum, minimum);
  sum.maximum = std::min(sum.maximum, buffered_maximum(maximum, pad, sum.own.queue_depth));
}

}  // namespace

GstClockTime frame_duration_of(const GstCaps* caps) {
  if (caps == nullptr || gst_caps_is_empty(caps) || gst_caps_is_any(caps)) {
    return GST_CLOCK_TIME_NONE;
  }
  int numerator = 0;
  int denominator = 1;
  if (!gst_structure_get_fraction(gst_caps_get_structure(caps, 0), "framerate", &numerator,
                                  &denominator) ||
      numerator <= 0) {
    return GST_CLOCK_TIME_NONE;
  }
  return gst_util_uint64_scale_int(GST_SECOND, denominator, numerator);
}

GstClockTime buffered_maximum(GstClockTime maximum, GstPad* pad, guint queue_depth) {
  if (!GST_CLOCK_TIME_IS_VALID(maximum)) return GST_CLOCK_TIME_NONE;
  const CapsPtr caps(gst_pad_get_current_caps(pad));
  GstClockTime frame = frame_duration_of(caps.get());
  // How long the frames last that may wait is not known, so nothing is claimed of them.
  if (!GST_CLOCK_TIME_IS_VALID(frame)) frame = 0;
  GstClockTime queued = 0;
  GstClockTime all = 0;
  // What can't be counted is no limit.
  if (__builtin_mul_overflow(frame, GstClockTime{queue_depth}, &queued) ||
      __builtin_add_overflow(maximum, queued, &all)) {
    return GST_CLOCK_TIME_NONE;
  }
  return all;
}

void answer_mux_latency(GstElement* mux, GstQuery* query, const MuxLatency& own) {
  Sum sum{.own = own};
  gst_element_foreach_sink_pad(
      mux,
      [](GstElement*, GstPad* pad, gpointer data) -> gboolean {
        add(*static_cast<Sum*>(data), pad);
        return TRUE;
      },
      &sum);
  const GstClockTime wait = sum.live ? own.max_wait : 0;
  gst_query_set_latency(query, sum.live, sum.minimum + wait, sum.maximum);
}

}  // namespace penstock::gst
