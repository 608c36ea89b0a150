// SPDX-License-Identifier: Apache-2.0
#include "gst/peninfer.h"

#include <gst/video/video.h>

#include <memory>
#include <optional>
#include <utility>

#include "gst/allocation.h"
#include "gst/bus_error.h"
#include "gst/detection_relations.h"
#include "gst/gst_ptr.h"
#include "gst/infer_config.h"
#include "gst/infer_stats.h"
#include "gst/infer_stream.h"
#include "gst/latency.h"
#include "gst/video_caps.h"

GST_DEBUG_CATEGORY_STATIC(pen_infer_debug);
#define GST_CAT_DEFAULT pen_infer_debug

using namespace penstock;
using namespace penstock::gst;

namespace {

enum : guint { kStats = kFirstOwnProperty };

/// The C++ side of a PenInfer. Fields marked (O) are guarded by the object lock.
struct Core {
  InferConfig config;                   // (O)
  InferConfig opened_config;            // State-change thread only.
  OpenedInferencePtr opened;            // (O)
  std::shared_ptr<InferStream> stream;  // (O)
  std::optional<VideoFormat> format;    // (O) Of the frames that come in.
  bool refused = false;                 // Sink thread: the caps' error is on the bus already.
};

GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
                            GST_STATIC_CAPS("video/x-raw, format={NV12,I420}; "
                                            "video/x-raw(memory:PenstockSim), format=NV12"));
GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS,
                            GST_STATIC_CAPS("video/x-raw, format={NV12,I420}; "
                                            "video/x-raw(memory:PenstockSim), format=NV12"));

}  // namespace

struct _PenInfer {
  GstElement parent;
  GstPad* sinkpad;
  GstPad* srcpad;
  Core* core;
};

G_DEFINE_TYPE(PenInfer, pen_infer, GST_TYPE_ELEMENT)

namespace {

class ObjectLock {
 public:
  explicit ObjectLock(PenInfer* self) : self_(self) { GST_OBJECT_LOCK(self_); }
  ObjectLock(const ObjectLock&) = delete;
  ObjectLock& operator=(const ObjectLock&) = delete;
  ~ObjectLock() { GST_OBJECT_UNLOCK(self_); }

 private:
  PenInfer* self_;
};

std::shared_ptr<InferStream> stream_of(PenInfer* self) {
  const ObjectLock lock(self);
  return self->core->stream;
}

std::string device_name(PenInfer* self) {
  const ObjectLock lock(self);
  return self->core->config.device;
}

/// The configured device, `cpu` while the property holds nonsense (which READY refuses).
DeviceId device_id(PenInfer* self) {
  return parse_device_id(device_name(self)).value_or(DeviceId{});
}

std::size_t frame_limit(const InferConfig& config, const FrameInference& inference) {
  return std::size_t{config.queue_depth} + static_cast<std::size_t>(inference.workers());
}

void report(PenInfer* self, const char* operation, const Error& error) {
  post_error(GST_ELEMENT(self), device_name(self), operation, error);
}

// ---- Sink pad
// -------------------------------------------------------------------------------------

/// Sees caps events before the pad's own check, which asks ACCEPT_CAPS and on refusal says no more
/// than "not-negotiated". Here the refusal gets its reason.
GstPadProbeReturn name_refused_caps(GstPad*, GstPadProbeInfo* info, gpointer user_data) {
  auto* self = PEN_INFER(user_data);
  GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
  if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return GST_PAD_PROBE_OK;
  GstCaps* caps = nullptr;
  gst_event_parse_caps(event, &caps);
  const auto accepted = accept_caps(caps, device_id(self));
  // Caps are sticky: refused ones come again with every frame, and are said once.
  const bool said = std::exchange(self->core->refused, !accepted);
  if (!accepted && !said) report(self, "negotiating caps", accepted.error());
  return GST_PAD_PROBE_OK;
}

void src_loop(gpointer data);

GstFlowReturn sink_chain(GstPad*, GstObject* parent, GstBuffer* raw) {
  auto* self = PEN_INFER(parent);
  BufferPtr buffer(raw);
  const auto stream = stream_of(self);
  if (stream == nullptr) return GST_FLOW_FLUSHING;
  if (self->core->refused) return GST_FLOW_NOT_NEGOTIATED;
  std::optional<VideoFormat> format;
  {
    const ObjectLock lock(self);
    format = self->core->format;
  }
  if (!format) {
    report(self, "receiving a frame", Error(ErrorKind::kUnsupported, "no caps came before it"));
    return GST_FLOW_NOT_NEGOTIATED;
  }
  const auto flow = stream->push_frame(std::move(buffer), *format);
  if (flow) return *flow;
  report(self, "taking a frame", flow.error());
  return GST_FLOW_ERROR;
}

gboolean sink_event(GstPad* pad, GstObject* parent, GstEvent* raw) {
  auto* self = PEN_INFER(parent);
  EventPtr event(raw);
  const auto stream = stream_of(self);
  switch (GST_EVENT_TYPE(raw)) {
    case GST_EVENT_FLUSH_START: {
      // Downstream first: that ends a push which the task may be blocked in.
      const gboolean sent = gst_pad_push_event(self->srcpad, event.release());
      if (stream != nullptr) stream->interrupt();
      gst_pad_pause_task(self->srcpad);
      return sent;
    }
    case GST_EVENT_FLUSH_STOP: {
      const gboolean sent = gst_pad_push_event(self->srcpad, event.release());
      if (stream == nullptr) return sent;
      stream->resume();
      gst_pad_start_task(self->srcpad, src_loop, self, nullptr);
      return sent;
    }
    case GST_EVENT_CAPS: {
      GstCaps* caps = nullptr;
      gst_event_parse_caps(raw, &caps);
      const auto accepted = accept_caps(caps, device_id(self));
      if (!accepted) return FALSE;  // Said by name_refused_caps().
      const ObjectLock lock(self);
      self->core->format = *accepted;
      break;
    }
    default:
      break;
  }
  if (!GST_EVENT_IS_SERIALIZED(raw)) return gst_pad_event_default(pad, parent, event.release());
  return stream != nullptr && stream->push_event(std::move(event));
}

/// What may come in or go out: the device's caps, as far as the other side takes them too.
CapsPtr possible_caps(PenInfer* self, GstPad* other, GstCaps* filter) {
  CapsPtr own = device_caps(device_id(self).kind);
  CapsPtr peer(gst_pad_peer_query_caps(other, own.get()));
  CapsPtr caps(gst_caps_intersect_full(peer.get(), own.get(), GST_CAPS_INTERSECT_FIRST));
  if (filter == nullptr) return caps;
  return CapsPtr(gst_caps_intersect_full(filter, caps.get(), GST_CAPS_INTERSECT_FIRST));
}

gboolean answer_caps(PenInfer* self, GstPad* other, GstQuery* query) {
  GstCaps* filter = nullptr;
  gst_query_parse_caps(query, &filter);
  const CapsPtr caps = possible_caps(self, other, filter);
  gst_query_set_caps_result(query, caps.get());
  return TRUE;
}

gboolean sink_query(GstPad* pad, GstObject* parent, GstQuery* query) {
  auto* self = PEN_INFER(parent);
  switch (GST_QUERY_TYPE(query)) {
    case GST_QUERY_CAPS:
      return answer_caps(self, self->srcpad, query);
    case GST_QUERY_ACCEPT_CAPS: {
      GstCaps* caps = nullptr;
      gst_query_parse_accept_caps(query, &caps);
      gst_query_set_accept_caps_result(query, accept_caps(caps, device_id(self)).has_value());
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

// ---- Source pad
// -----------------------------------------------------------------------------------

void send_frame(PenInfer* self, InferStream& stream, InferStream::Frame frame) {
  BufferPtr buffer = std::move(frame.buffer);
  if (frame.analysis != nullptr) {
    // A shallow copy where somebody else (a tee) holds the buffer: other metadata, same memories.
    buffer.reset(gst_buffer_make_writable(buffer.release()));
    if (const auto added = attach_relations(buffer.get(), frame.analysis->result.objects); !added) {
      stream.end(GST_FLOW_ERROR);
      report(self, "attaching metadata", added.error());
      return;
    }
    attach_analysis(buffer.get(), std::move(frame.analysis));
  }
  const GstFlowReturn flow = gst_pad_push(self->srcpad, buffer.release());
  if (flow == GST_FLOW_OK || !stream.end(flow)) return;
  // Upstream is done and asks no more, so the reason would be lost here.
  if (flow == GST_FLOW_NOT_LINKED || flow <= GST_FLOW_EOS) {
    if (flow != GST_FLOW_EOS) GST_ELEMENT_FLOW_ERROR(self, flow);
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

void src_loop(gpointer data) {
  auto* self = PEN_INFER(data);
  const auto stream = stream_of(self);
  std::optional<InferStream::Output> output;
  if (stream != nullptr) output = stream->next();
  if (!output) {
    if (stream == nullptr || stream->flow() != GST_FLOW_OK) gst_pad_pause_task(self->srcpad);
    return;
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
    report(self, "running inference", *error);
  }
}

gboolean src_activate_mode(GstPad* pad, GstObject* parent, GstPadMode mode, gboolean active) {
  if (mode != GST_PAD_MODE_PUSH) return FALSE;
  auto* self = PEN_INFER(parent);
  const auto stream = stream_of(self);
  if (!active) {
    if (stream != nullptr) stream->interrupt();
    return gst_pad_stop_task(pad);
  }
  if (stream != nullptr) stream->resume();
  return gst_pad_start_task(pad, src_loop, self, nullptr);
}

gboolean answer_latency(PenInfer* self, GstQuery* query) {
  if (!gst_pad_peer_query(self->sinkpad, query)) return FALSE;
  const ObjectLock lock(self);
  const Core& core = *self->core;
  if (core.opened == nullptr) return TRUE;
  const FrameInference& inference = *core.opened->inference;
  LatencyBasis basis;
  basis.frame_duration = core.format ? core.format->frame_duration : GST_CLOCK_TIME_NONE;
  basis.workers = static_cast<guint>(inference.workers());
  basis.interval = core.opened_config.interval;
  basis.max_wait = core.opened_config.max_wait_ns;
  basis.frame_limit = static_cast<guint>(frame_limit(core.opened_config, inference)) + 1;
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

// ---- State
// ----------------------------------------------------------------------------------------

bool open_model(PenInfer* self) {
  InferConfig config;
  {
    const ObjectLock lock(self);
    config = self->core->config;
  }
  if (self->core->opened != nullptr && self->core->opened_config == config) return true;
  auto opened = open_inference(GST_ELEMENT(self), config);
  if (!opened) {
    const std::string operation = "opening model '" + config.model + "'";
    post_error(GST_ELEMENT(self), config.device, operation, opened.error());
    return false;
  }
  OpenedInferencePtr previous;
  {
    const ObjectLock lock(self);
    previous = std::exchange(self->core->opened, std::move(*opened));
    self->core->opened_config = config;
  }
  return true;
}

void start_stream(PenInfer* self) {
  const ObjectLock lock(self);
  Core& core = *self->core;
  core.format.reset();
  core.refused = false;
  core.stream = std::make_shared<InferStream>(InferStream::Options{
      std::shared_ptr<SharedBatchExecutor>(core.opened, &core.opened->inference->executor()),
      core.opened->device->id(), frame_limit(core.opened_config, *core.opened->inference),
      core.opened_config.interval});
}

void stop_stream(PenInfer* self) {
  std::shared_ptr<InferStream> stream;
  const ObjectLock lock(self);
  stream.swap(self->core->stream);
}

void close_model(PenInfer* self) {
  OpenedInferencePtr opened;
  {
    const ObjectLock lock(self);
    opened.swap(self->core->opened);
  }
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
  auto* self = PEN_INFER(element);
  switch (transition) {
    case GST_STATE_CHANGE_NULL_TO_READY:
      if (!open_model(self)) return GST_STATE_CHANGE_FAILURE;
      break;
    case GST_STATE_CHANGE_READY_TO_PAUSED:
      // Properties may have changed in READY.
      if (!open_model(self)) return GST_STATE_CHANGE_FAILURE;
      start_stream(self);
      break;
    case GST_STATE_CHANGE_PAUSED_TO_READY:
      if (const auto stream = stream_of(self)) stream->interrupt();
      break;
    default:
      break;
  }
  const GstStateChangeReturn result =
      GST_ELEMENT_CLASS(pen_infer_parent_class)->change_state(element, transition);
  switch (transition) {
    case GST_STATE_CHANGE_READY_TO_PAUSED:
      if (result == GST_STATE_CHANGE_FAILURE) stop_stream(self);
      break;
    case GST_STATE_CHANGE_PAUSED_TO_READY:
      stop_stream(self);
      break;
    case GST_STATE_CHANGE_READY_TO_NULL:
      close_model(self);
      break;
    default:
      break;
  }
  return result;
}

// ---- Properties
// -----------------------------------------------------------------------------------

/// Above READY, or on the way there.
bool is_running(GstElement* element) {
  return GST_STATE(element) > GST_STATE_READY || GST_STATE_NEXT(element) > GST_STATE_READY;
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  auto* self = PEN_INFER(object);
  GST_OBJECT_LOCK(self);
  if (is_running(GST_ELEMENT(self))) {
    GST_OBJECT_UNLOCK(self);
    g_warning("%s: property '%s' can only be set in NULL and READY", GST_OBJECT_NAME(self),
              spec->name);
    return;
  }
  const bool known = set_config_property(self->core->config, id, value);
  GST_OBJECT_UNLOCK(self);
  if (!known) G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  auto* self = PEN_INFER(object);
  if (id == kStats) {
    std::shared_ptr<InferStream> stream;
    OpenedInferencePtr opened;
    {
      const ObjectLock lock(self);
      stream = self->core->stream;
      opened = self->core->opened;
    }
    g_value_take_boxed(value,
                       make_stats(stream.get(), opened ? opened->device.get() : nullptr).release());
    return;
  }
  const ObjectLock lock(self);
  if (!get_config_property(self->core->config, id, value)) {
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

void finalize(GObject* object) {
  delete PEN_INFER(object)->core;
  G_OBJECT_CLASS(pen_infer_parent_class)->finalize(object);
}

}  // namespace

static void pen_infer_class_init(PenInferClass* klass) {
  auto* object_class = G_OBJECT_CLASS(klass);
  auto* element_class = GST_ELEMENT_CLASS(klass);
  object_class->set_property = set_property;
  object_class->get_property = get_property;
  object_class->finalize = finalize;
  element_class->change_state = change_state;
  install_config_properties(object_class);
  g_object_class_install_property(
      object_class, kStats,
      g_param_spec_boxed(
          "stats", "Statistics", "Frames, queue, held frames and the device's copy ledger so far",
          GST_TYPE_STRUCTURE, static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
  gst_element_class_add_static_pad_template(element_class, &sink_template);
  gst_element_class_add_static_pad_template(element_class, &src_template);
  gst_element_class_set_static_metadata(
      element_class, "Penstock inference", "Filter/Analyzer/Video",
      "Detects objects on video frames, in the frames' own memory", "The Penstock authors");
  GST_DEBUG_CATEGORY_INIT(pen_infer_debug, "peninfer", 0, "Penstock inference");
}

static void pen_infer_init(PenInfer* self) {
  self->core = new Core;
  self->sinkpad = gst_pad_new_from_static_template(&sink_template, "sink");
  gst_pad_set_chain_function(self->sinkpad, sink_chain);
  gst_pad_set_event_function(self->sinkpad, sink_event);
  gst_pad_set_query_function(self->sinkpad, sink_query);
  gst_pad_set_activatemode_function(self->sinkpad, sink_activate_mode);
  gst_pad_add_probe(self->sinkpad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, name_refused_caps, self,
                    nullptr);
  gst_element_add_pad(GST_ELEMENT(self), self->sinkpad);

  self->srcpad = gst_pad_new_from_static_template(&src_template, "src");
  gst_pad_set_query_function(self->srcpad, src_query);
  gst_pad_set_activatemode_function(self->srcpad, src_activate_mode);
  gst_element_add_pad(GST_ELEMENT(self), self->srcpad);
}
