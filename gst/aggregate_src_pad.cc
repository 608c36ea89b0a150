// SPDX-License-Identifier: Apache-2.0
#include "gst/aggregate_src_pad.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "gst/aggregate_element.h"
#include "gst/batch_container.h"
#include "gst/branch_latency.h"
#include "gst/bus_error.h"
#include "gst/join_metadata.h"

namespace penstock::gst {
namespace {

void start_task(PenAggregate* self);

/// Nobody else is left to say why there is no more flow.
void report_downstream(PenAggregate* self, GstFlowReturn flow) {
  GST_ELEMENT_FLOW_ERROR(self, flow);
}

bool is_failure(GstFlowReturn flow) { return flow == GST_FLOW_NOT_LINKED || flow < GST_FLOW_EOS; }

Result<BufferPtr> with_all_metadata(PenAggregate* self, BranchJoin::Joined joined) {
  const auto sized = [](const BranchJoin::Frame& frame) {
    return SizedFrame{frame.pad, frame.buffer.get(), frame.width, frame.height};
  };
  std::vector<SizedFrame> branches;
  for (const BranchJoin::Frame& branch : joined.branches) branches.push_back(sized(branch));
  const bool some = std::ranges::any_of(
      branches, [](const SizedFrame& branch) { return has_findings(branch.buffer); });
  if (!some) return std::move(joined.primary.buffer);
  // A shallow copy where somebody else (a tee) holds it: other metadata, same memories.
  joined.primary.buffer = make_writable(std::move(joined.primary.buffer));
  GST_OBJECT_LOCK(self);
  const guint most_records = self->core->max_records;
  GST_OBJECT_UNLOCK(self);
  PENSTOCK_TRY(join_metadata(sized(joined.primary), branches, most_records));
  return std::move(joined.primary.buffer);
}

void fail_join(PenAggregate* self, BranchJoin& join, const Error& error) {
  const bool unseen = join.has_ended();
  post_error(GST_ELEMENT(self), "cpu", "joining branches", error);
  join.fail();
  // Upstream asks no more: who is behind would wait for ever.
  if (unseen) gst_pad_push_event(self->srcpad, gst_event_new_eos());
}

void send(PenAggregate* self, BranchJoin& join, BranchJoin::Joined joined) {
  auto buffer = with_all_metadata(self, std::move(joined));
  if (!buffer) return fail_join(self, join, buffer.error());
  const GstFlowReturn flow = gst_pad_push(self->srcpad, buffer->release());
  if (flow == GST_FLOW_OK) return;
  if (flow == GST_FLOW_FLUSHING) {
    // The flush comes to the pads, too, one after the other: an answer to a branch that has had it
    // already would end that.
    gst_pad_pause_task(self->srcpad);
    return;
  }
  const bool unseen = join.has_ended();
  join.stop(flow);
  if (unseen && is_failure(flow)) report_downstream(self, flow);
}

void answer_query(PenAggregate* self, BranchJoin& join, const BranchJoin::QueryPtr& query) {
  gboolean answered = gst_pad_peer_query(self->srcpad, query->query);
  if (GST_QUERY_TYPE(query->query) == GST_QUERY_ALLOCATION) {
    answered = add_own_frames(self, query->query);
  }
  join.finish(query, answered != FALSE);
}

void src_loop(gpointer data) {
  auto* self = PEN_AGGREGATE(data);
  const auto join = join_of(self);
  std::optional<BranchJoin::Output> output;
  if (join != nullptr) output = join->next();
  if (!output) {
    if (join != nullptr && join->runs()) return;
    gst_pad_pause_task(self->srcpad);
    // Whoever resumed in between found the task running and did not start it.
    if (join != nullptr && join->runs()) start_task(self);
    return;
  }
  if (auto* joined = std::get_if<BranchJoin::Joined>(&*output)) {
    send(self, *join, std::move(*joined));
  } else if (auto* event = std::get_if<EventPtr>(&*output)) {
    gst_pad_push_event(self->srcpad, event->release());
  } else if (auto* query = std::get_if<BranchJoin::QueryPtr>(&*output)) {
    answer_query(self, *join, *query);
  } else if (auto* error = std::get_if<Error>(&*output)) {
    fail_join(self, *join, *error);
  }
}

void start_task(PenAggregate* self) {
  // A flush, or a new link, may come while the pad is being stopped.
  if (gst_pad_is_active(self->srcpad)) gst_pad_start_task(self->srcpad, src_loop, self, nullptr);
}

gboolean src_activate_mode(GstPad* pad, GstObject* parent, GstPadMode mode, gboolean active) {
  if (mode != GST_PAD_MODE_PUSH) return FALSE;
  auto* self = PEN_AGGREGATE(parent);
  const auto join = join_of(self);
  if (!active) {
    if (join != nullptr) join->stop(GST_FLOW_FLUSHING);
    return gst_pad_stop_task(pad);
  }
  if (join == nullptr) return FALSE;
  join->restart();
  return gst_pad_start_task(pad, src_loop, self, nullptr);
}

gboolean src_event(GstPad* pad, GstObject* parent, GstEvent* event) {
  auto* self = PEN_AGGREGATE(parent);
  switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_QOS:  // One pad's elements would drop frames that the others deliver.
      gst_event_unref(event);
      return FALSE;
    case GST_EVENT_RECONFIGURE:
      // The pad has been linked again: what stopped for want of a peer may go on, here and before.
      if (const auto join = join_of(self)) {
        const auto events = join->relink();
        if (events) {
          resume_src(self, *events);
        } else if (join->runs()) {
          start_task(self);
        }
      }
      return gst_pad_event_default(pad, parent, event);
    case GST_EVENT_LATENCY:
      return gst_pad_event_default(pad, parent, event);
    default:
      break;
  }
  // All else, seeks too, goes the primary's way, which has a common source with the others.
  const GstPtr<GstPad> primary = primary_pad(self);
  if (primary != nullptr) return gst_pad_push_event(primary.get(), event);
  gst_event_unref(event);
  return FALSE;
}

gboolean answer_latency(PenAggregate* self, GstQuery* query) {
  const GstPtr<GstPad> primary = primary_pad(self);
  GST_OBJECT_LOCK(self);
  const AggregateCore& core = *self->core;
  const BranchLatency own{
      .primary = primary.get(),
      .wait = core.missing == BranchJoin::Missing::kPass ? core.max_wait : GST_CLOCK_TIME_NONE,
      .queue_depth = core.queue_depth};
  const auto join = core.join;
  GST_OBJECT_UNLOCK(self);
  const bool live = answer_branch_latency(GST_ELEMENT(self), query, own);
  if (join != nullptr) join->set_live(live);
  return TRUE;
}

gboolean src_query(GstPad* pad, GstObject* parent, GstQuery* query) {
  auto* self = PEN_AGGREGATE(parent);
  const GstPtr<GstPad> primary = primary_pad(self);
  switch (GST_QUERY_TYPE(query)) {
    case GST_QUERY_LATENCY:
      return answer_latency(self, query);
    case GST_QUERY_CAPS:
      return answer_caps(pad, primary.get(), query);
    case GST_QUERY_ACCEPT_CAPS:
      return gst_pad_query_default(pad, parent, query);
    default:
      return primary != nullptr && gst_pad_peer_query(primary.get(), query);
  }
}

}  // namespace

void resume_src(PenAggregate* self, const std::vector<EventPtr>& events) {
  for (const EventPtr& event : events) gst_pad_store_sticky_event(self->srcpad, event.get());
  start_task(self);
}

GstPad* new_aggregate_src_pad(GstStaticPadTemplate* pad_template) {
  GstPad* pad = gst_pad_new_from_static_template(pad_template, "src");
  gst_pad_set_activatemode_function(pad, src_activate_mode);
  gst_pad_set_event_function(pad, src_event);
  gst_pad_set_query_function(pad, src_query);
  return pad;
}

}  // namespace penstock::gst
