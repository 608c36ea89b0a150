// SPDX-License-Identifier: Apache-2.0
#include "gst/aggregate_sink_pad.h"

#include <gst/video/video.h>

#include <memory>
#include <utility>

#include "gst/aggregate_element.h"
#include "gst/aggregate_src_pad.h"

namespace penstock::gst {
namespace {

GstFlowReturn sink_chain(GstPad* pad, GstObject* parent, GstBuffer* buffer) {
  BufferPtr frame(buffer);
  const auto join = join_of(PEN_AGGREGATE(parent));
  return join == nullptr ? GST_FLOW_FLUSHING : join->push_frame(key_of(pad), std::move(frame));
}

void flush(PenAggregate* self, BranchJoin& join, GstPad* pad, EventPtr event) {
  const bool begins = GST_EVENT_TYPE(event.get()) == GST_EVENT_FLUSH_START;
  // A branch's ends here: what goes on is the primary's.
  if (!is_primary(pad)) {
    if (begins) return join.begin_flush(key_of(pad));
    join.end_flush(key_of(pad));
    return;
  }
  // Downstream first: that ends a push which the task may be blocked in.
  gst_pad_push_event(self->srcpad, event.release());
  if (begins) {
    join.begin_flush(key_of(pad));
    gst_pad_pause_task(self->srcpad);
  } else {
    resume_src(self, join.end_flush(key_of(pad)));
  }
}

GstFlowReturn sink_event(GstPad* pad, GstObject* parent, GstEvent* raw) {
  EventPtr event(raw);
  auto* self = PEN_AGGREGATE(parent);
  const auto join = join_of(self);
  if (join == nullptr) return GST_FLOW_FLUSHING;
  const GstEventType type = GST_EVENT_TYPE(raw);
  if (type == GST_EVENT_FLUSH_START || type == GST_EVENT_FLUSH_STOP) {
    flush(self, *join, pad, std::move(event));
    return GST_FLOW_OK;
  }
  if (!GST_EVENT_IS_SERIALIZED(raw)) {
    if (is_primary(pad)) gst_pad_push_event(self->srcpad, event.release());
    return GST_FLOW_OK;
  }
  const GstFlowReturn flow = join->push_event(key_of(pad), std::move(event));
  if (type == GST_EVENT_CAPS) {
    // Another frame rate is another latency.
    gst_element_post_message(GST_ELEMENT(self), gst_message_new_latency(GST_OBJECT(self)));
  }
  return flow;
}

gboolean sink_query(GstPad* pad, GstObject* parent, GstQuery* query) {
  auto* self = PEN_AGGREGATE(parent);
  const bool primary = is_primary(pad);
  if (GST_QUERY_TYPE(query) == GST_QUERY_CAPS) {
    return answer_caps(pad, primary ? self->srcpad : nullptr, query);
  }
  if (!GST_QUERY_IS_SERIALIZED(query)) {
    return GST_QUERY_TYPE(query) == GST_QUERY_ACCEPT_CAPS || primary
               ? gst_pad_query_default(pad, parent, query)
               : FALSE;
  }
  if (primary) {
    const auto join = join_of(self);
    return join != nullptr && join->run_query(key_of(pad), query);
  }
  if (GST_QUERY_TYPE(query) != GST_QUERY_ALLOCATION) return FALSE;
  // A branch's pixels are read by nobody from here on, so they may lie anyhow.
  gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
  return add_own_frames(self, query);
}

}  // namespace

GstPad* new_aggregate_sink_pad(GstPadTemplate* pad_template, const BranchJoin::Pad& choice) {
  GstPad* pad = gst_pad_new_from_template(pad_template, choice.name.c_str());
  gst_pad_set_element_private(pad, GUINT_TO_POINTER(choice.key));
  gst_pad_set_chain_function(pad, sink_chain);
  gst_pad_set_event_full_function(pad, sink_event);
  gst_pad_set_query_function(pad, sink_query);
  return pad;
}

}  // namespace penstock::gst
