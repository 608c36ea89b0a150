// SPDX-License-Identifier: Apache-2.0
#include "gst/infer_src_pad.h"

#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "gst/allocation.h"
#include "gst/batch_container.h"
#include "gst/container_caps.h"
#include "gst/gst_ptr.h"
#include "gst/infer_element.h"
#include "gst/infer_stream.h"
#include "gst/latency.h"
#include "gst/stream_container.h"

namespace penstock::gst {
namespace {

void send_frame(PenInfer* self, InferStream& stream, InferStream::Frame frame) {
  BufferPtr buffer = std::move(frame.buffer);
  if (!frame.analysed.empty()) {
    // A shallow copy where somebody else (a tee) holds the buffer: other metadata, same memories.
    buffer = make_writable(std::move(buffer));
  }
  for (const InferStream::Analysed& analysed : frame.analysed) {
    const auto attached = write_frame(buffer.get(), analysed.place,
                                      [&](GstBuffer* one) { return analysed.task->attach(one); });
    if (!attached) {
      fail_stream(self, stream, "attaching metadata", attached.error());
      return;
    }
  }
  const GstFlowReturn flow = gst_pad_push(self->srcpad, buffer.release());
  if (flow == GST_FLOW_OK || !stream.end(flow)) return;
  // Upstream is done and asks no more, so the reason would be lost here.
  if (is_failure(flow)) {
    report_downstream(self, stream, flow);
    gst_pad_push_event(self->srcpad, gst_event_new_eos());
  }
}

void answer_query(PenInfer* self, GstQuery* query) {
  if (GST_QUERY_TYPE(query) != GST_QUERY_ALLOCATION) return;
  OpenedInferencePtr opened;
  guint held = 0;
  {
    const ObjectLock lock(self);
    opened = self->core->opened;
    held = static_cast<guint>(frame_limit(self->core->opened_config, *opened->inference)) + 1;
  }
  add_held_frames(query, held, opened->device->id().kind);
}

/// Has the pipeline ask again where the latency hangs on the run time.
void tell_latency(PenInfer* self) {
  {
    const ObjectLock lock(self);
    const auto& format = self->core->format;
    if (format && GST_CLOCK_TIME_IS_VALID(frame_duration(*format))) return;
  }
  gst_element_post_message(GST_ELEMENT(self), gst_message_new_latency(GST_OBJECT(self)));
}

void start_task(PenInfer* self);

void src_loop(gpointer data) {
  auto* self = PEN_INFER(data);
  const auto stream = stream_of(self);
  std::optional<InferStream::Output> output;
  if (stream != nullptr) output = stream->next();
  if (!output) {
    if (stream != nullptr && stream->flow() == GST_FLOW_OK) return;
    gst_pad_pause_task(self->srcpad);
    // Linked again in between: whoever resumed found the task running and did not start it.
    if (stream != nullptr && stream->flow() == GST_FLOW_OK) start_task(self);
    return;
  }
  if (stream->take_run_time_change()) tell_latency(self);
  if (const auto unusable = stream->take_unusable()) {
    warn(self, "reading the model's output", *unusable);
  }
  if (auto* frame = std::get_if<InferStream::Frame>(&*output)) {
    send_frame(self, *stream, std::move(*frame));
  } else if (auto* event = std::get_if<EventPtr>(&*output)) {
    gst_pad_push_event(self->srcpad, event->release());
  } else if (auto* query = std::get_if<InferStream::QueryPtr>(&*output)) {
    const gboolean answered = gst_pad_peer_query(self->srcpad, (*query)->query);
    answer_query(self, (*query)->query);
    const bool ours = GST_QUERY_TYPE((*query)->query) == GST_QUERY_ALLOCATION;
    stream->finish(*query, answered || ours);
  } else if (auto* error = std::get_if<Error>(&*output)) {
    fail_stream(self, *stream, "running inference", *error);
  }
}

void start_task(PenInfer* self) {
  // A flush, or a new link, may come while the pad is being stopped.
  if (gst_pad_is_active(self->srcpad)) gst_pad_start_task(self->srcpad, src_loop, self, nullptr);
}

gboolean src_event(GstPad* pad, GstObject* parent, GstEvent* event) {
  auto* self = PEN_INFER(parent);
  if (GST_EVENT_TYPE(event) == GST_EVENT_RECONFIGURE) {
    // The pad has been linked again: what it refused for want of a peer may go on.
    if (const auto stream = stream_of(self)) {
      resume_src(self, *stream, InferStream::After::kLink);
    }
  }
  return gst_pad_event_default(pad, parent, event);
}

gboolean src_activate_mode(GstPad* pad, GstObject* parent, GstPadMode mode, gboolean active) {
  if (mode != GST_PAD_MODE_PUSH) return FALSE;
  auto* self = PEN_INFER(parent);
  const auto stream = stream_of(self);
  if (!active) {
    if (stream != nullptr) stream->interrupt();
    return gst_pad_stop_task(pad);
  }
  if (stream != nullptr) resume_src(self, *stream, InferStream::After::kFlush);
  return TRUE;
}

gboolean answer_latency(PenInfer* self, GstQuery* query) {
  if (!gst_pad_peer_query(self->sinkpad, query)) return FALSE;
  const auto stream = stream_of(self);
  const ObjectLock lock(self);
  const InferCore& core = *self->core;
  if (core.opened == nullptr) return TRUE;
  const FrameInference& inference = *core.opened->inference;
  LatencyBasis basis;
  basis.frame_duration = core.format ? frame_duration(*core.format) : GST_CLOCK_TIME_NONE;
  basis.workers = static_cast<guint>(inference.workers());
  basis.interval = core.opened_config.interval;
  basis.max_wait = batch_wait_ns(core.opened_config);
  basis.frame_limit = static_cast<guint>(frame_limit(core.opened_config, inference)) + 1;
  if (stream != nullptr) basis.run = static_cast<GstClockTime>(stream->run_time().count());
  add_latency(query, basis);
  return TRUE;
}

gboolean src_query(GstPad* pad, GstObject* parent, GstQuery* query) {
  auto* self = PEN_INFER(parent);
  switch (GST_QUERY_TYPE(query)) {
    case GST_QUERY_CAPS:
      return answer_caps(self, self->sinkpad, query);
    case GST_QUERY_LATENCY:
      return answer_latency(self, query);
    default:
      return gst_pad_query_default(pad, parent, query);
  }
}

}  // namespace

void resume_src(PenInfer* self, InferStream& stream, InferStream::After what) {
  const auto events = stream.resume(what);
  if (!events) return;
  for (const EventPtr& event : *events) gst_pad_store_sticky_event(self->srcpad, event.get());
  start_task(self);
}

GstPad* new_src_pad(GstStaticPadTemplate* pad_template) {
  GstPad* pad = gst_pad_new_from_static_template(pad_template, "src");
  gst_pad_set_event_function(pad, src_event);
  gst_pad_set_query_function(pad, src_query);
  gst_pad_set_activatemode_function(pad, src_activate_mode);
  return pad;
}

}  // namespace penstock::gst
