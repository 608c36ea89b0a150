// SPDX-License-Identifier: Apache-2.0
#include "gst/infer_sink_pad.h"

#include <memory>
#include <optional>
#include <utility>

#include "gst/caps_refusal.h"
#include "gst/container_caps.h"
#include "gst/gst_ptr.h"
#include "gst/infer_element.h"
#include "gst/infer_src_pad.h"
#include "gst/infer_stream.h"

namespace penstock::gst {
namespace {

/// Takes nothing more, and says why; frames that were taken before still leave.
void refuse(PenInfer* self, InferStream& stream, const char* operation, const Error& error) {
  report(self, stream, operation, error);
  self->core->refused = true;
}

CapsRefusal refusal_of(PenInfer* self) {
  return {.accept = [self](const GstCaps* caps) -> Result<void> {
            PENSTOCK_TRY(accept_input(caps, device_id(self)));
            return {};
          },
          .refuse =
              [self](const Error& error) {
                if (const auto stream = stream_of(self)) {
                  refuse(self, *stream, "negotiating caps", error);
                }
              }};
}

GstFlowReturn sink_chain(GstPad*, GstObject* parent, GstBuffer* raw) {
  auto* self = PEN_INFER(parent);
  BufferPtr buffer(raw);
  const auto stream = stream_of(self);
  if (stream == nullptr) return GST_FLOW_FLUSHING;
  if (self->core->refused) return GST_FLOW_NOT_NEGOTIATED;
  std::optional<InputFormat> format;
  {
    const ObjectLock lock(self);
    format = self->core->format;
  }
  if (!format) {
    refuse(self, *stream, "receiving a frame",
           Error(ErrorKind::kUnsupported, "no caps came before it"));
    return GST_FLOW_NOT_NEGOTIATED;
  }
  return stream->push_frame(std::move(buffer), *format);
}

void set_format(PenInfer* self, InputFormat format) {
  GstClockTime before = GST_CLOCK_TIME_NONE, after = GST_CLOCK_TIME_NONE;
  {
    const ObjectLock lock(self);
    auto& current = self->core->format;
    if (current) before = frame_duration(*current);
    after = frame_duration(format);
    current = std::move(format);
  }
  // What the element adds is counted in frames, so the pipeline has to ask again.
  if (before != after) {
    gst_element_post_message(GST_ELEMENT(self), gst_message_new_latency(GST_OBJECT(self)));
  }
}

GstFlowReturn flow_of(gboolean sent) { return sent ? GST_FLOW_OK : GST_FLOW_ERROR; }

/// With a flow as answer: after a plain FALSE the pad would take downstream's EOS or NOT_LINKED for
/// an error of the stream.
GstFlowReturn sink_event(GstPad* pad, GstObject* parent, GstEvent* raw) {
  auto* self = PEN_INFER(parent);
  EventPtr event(raw);
  const GstEventType type = GST_EVENT_TYPE(raw);
  const auto stream = stream_of(self);
  switch (type) {
    case GST_EVENT_FLUSH_START: {
      // Downstream first: that ends a push which the task may be blocked in.
      const gboolean sent = gst_pad_push_event(self->srcpad, event.release());
      if (stream != nullptr) stream->interrupt();
      gst_pad_pause_task(self->srcpad);
      return flow_of(sent);
    }
    case GST_EVENT_FLUSH_STOP: {
      const gboolean sent = gst_pad_push_event(self->srcpad, event.release());
      if (stream != nullptr) resume_src(self, *stream, InferStream::After::kFlush);
      return flow_of(sent);
    }
    case GST_EVENT_CAPS: {
      GstCaps* caps = nullptr;
      gst_event_parse_caps(raw, &caps);
      auto accepted = accept_input(caps, device_id(self));
      if (!accepted) return GST_FLOW_NOT_NEGOTIATED;  // Said by refusal_of().
      set_format(self, *std::move(accepted));
      break;
    }
    default:
      break;
  }
  if (!GST_EVENT_IS_SERIALIZED(raw)) {
    return flow_of(gst_pad_event_default(pad, parent, event.release()));
  }
  if (stream == nullptr) return GST_FLOW_FLUSHING;
  // The end still passes: a source that does not mind the refusal says nothing else, and what is
  // behind would wait for it for ever.
  if (self->core->refused && type != GST_EVENT_EOS) return GST_FLOW_NOT_NEGOTIATED;
  const GstFlowReturn flow = stream->push_event(std::move(event));
  // No data follows an EOS that could bring downstream's failure to light.
  if (type == GST_EVENT_EOS && is_failure(flow)) report_downstream(self, *stream, flow);
  return flow;
}

gboolean sink_query(GstPad* pad, GstObject* parent, GstQuery* query) {
  auto* self = PEN_INFER(parent);
  switch (GST_QUERY_TYPE(query)) {
    case GST_QUERY_CAPS:
      return answer_caps(self, self->srcpad, query);
    case GST_QUERY_ACCEPT_CAPS: {
      GstCaps* caps = nullptr;
      gst_query_parse_accept_caps(query, &caps);
      gst_query_set_accept_caps_result(query, accept_input(caps, device_id(self)).has_value());
      return TRUE;
    }
    default:
      break;
  }
  if (!GST_QUERY_IS_SERIALIZED(query)) return gst_pad_query_default(pad, parent, query);
  const auto stream = stream_of(self);
  return stream != nullptr && stream->run_query(query);
}

gboolean sink_activate_mode(GstPad*, GstObject* parent, GstPadMode mode, gboolean active) {
  if (mode != GST_PAD_MODE_PUSH) return FALSE;
  const auto stream = stream_of(PEN_INFER(parent));
  if (!active && stream != nullptr) stream->interrupt();
  return TRUE;
}

}  // namespace

GstPad* new_sink_pad(PenInfer* self, GstStaticPadTemplate* pad_template) {
  GstPad* pad = gst_pad_new_from_static_template(pad_template, "sink");
  gst_pad_set_chain_function(pad, sink_chain);
  gst_pad_set_event_full_function(pad, sink_event);
  gst_pad_set_query_function(pad, sink_query);
  gst_pad_set_activatemode_function(pad, sink_activate_mode);
  name_refused_caps(pad, refusal_of(self));
  return pad;
}

}  // namespace penstock::gst
