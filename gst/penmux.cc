// SPDX-License-Identifier: Apache-2.0
#include "gst/penmux.h"

#include <gst/video/video.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "gst/allocation.h"
#include "gst/batch_container.h"
#include "gst/bus_error.h"
#include "gst/element_state.h"
#include "gst/mux_latency.h"
#include "gst/stream_mux.h"
#include "penstock/base/str_format.h"

using namespace penstock;
using namespace penstock::gst;

namespace {

/// The C++ side of a PenMux. Fields marked (O) are guarded by the object lock; `mux` is made and
/// dropped with nobody else there, and what it does is thread-safe.
struct MuxCore {
  guint64 max_wait = 20 * GST_MSECOND;  // (O)
  guint queue_depth = 2;                // (O)
  guint max_streams = 64;               // (O)
  bool stay_open = false;               // (O)
  guint next_number = 0;                // (O) In a pad's name.
  StreamMux::Key next_key = 0;          // (O) Never used again, as names may be.
  guint pads = 0;                       // (O)
  std::shared_ptr<StreamMux> mux;       // (O)
  /// The source pad's task: of the streams, in their order, as last sent. Empty: nothing was.
  std::vector<CapsPtr> sent_caps;
};

enum Property : guint { kMaxWait = 1, kQueueDepth, kMaxStreams, kStayOpen, kStats };

GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE(
    "sink_%u", GST_PAD_SINK, GST_PAD_REQUEST, GST_STATIC_CAPS("video/x-raw(ANY)"));
GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE(
    "src", GST_PAD_SRC, GST_PAD_ALWAYS,
    GST_STATIC_CAPS("multistream/x-analytics-batch(meta:GstAnalyticsBatchMeta)"));

}  // namespace

struct _PenMux {
  GstElement parent;
  GstPad* srcpad;
  MuxCore* core;
};

G_DEFINE_TYPE(PenMux, pen_mux, GST_TYPE_ELEMENT)

namespace {

std::shared_ptr<StreamMux> mux_of(PenMux* self) {
  GST_OBJECT_LOCK(self);
  auto mux = self->core->mux;
  GST_OBJECT_UNLOCK(self);
  return mux;
}

StreamMux::Key key_of(GstPad* pad) { return GPOINTER_TO_UINT(gst_pad_get_element_private(pad)); }

// The sink pads.

GstFlowReturn sink_chain(GstPad* pad, GstObject* parent, GstBuffer* buffer) {
  BufferPtr frame(buffer);
  const auto mux = mux_of(PEN_MUX(parent));
  return mux == nullptr ? GST_FLOW_FLUSHING : mux->push_frame(key_of(pad), std::move(frame));
}

/// Nobody else is left to say why there is no more flow.
void report_downstream(PenMux* self, GstFlowReturn flow) { GST_ELEMENT_FLOW_ERROR(self, flow); }

GstFlowReturn sink_event(GstPad* pad, GstObject* parent, GstEvent* raw) {
  EventPtr event(raw);
  auto* self = PEN_MUX(parent);
  const auto mux = mux_of(self);
  if (mux == nullptr) return GST_FLOW_FLUSHING;
  const GstEventType type = GST_EVENT_TYPE(raw);
  switch (type) {
    case GST_EVENT_FLUSH_START:
      mux->flush(key_of(pad), true);
      return GST_FLOW_OK;
    case GST_EVENT_FLUSH_STOP:
      mux->flush(key_of(pad), false);
      return GST_FLOW_OK;
    default:
      break;
  }
  if (!GST_EVENT_IS_SERIALIZED(raw)) {
    return gst_pad_push_event(self->srcpad, event.release()) ? GST_FLOW_OK : GST_FLOW_ERROR;
  }
  const GstFlowReturn flow = mux->push_event(key_of(pad), std::move(event));
  if (type == GST_EVENT_CAPS) {
    // Another frame rate is another latency.
    gst_element_post_message(GST_ELEMENT(self), gst_message_new_latency(GST_OBJECT(self)));
  }
  return flow;
}

/// Downstream holds so many frames of each stream as it holds containers.
guint held_by_peer(GstPad* srcpad, GstCaps* caps) {
  ContainerStream stream;
  stream.sticky.emplace_back(gst_event_new_caps(caps));
  const CapsPtr container = container_caps({&stream, 1});
  const GstPtr<GstQuery> query(gst_query_new_allocation(container.get(), FALSE));
  if (!gst_pad_peer_query(srcpad, query.get())) return 0;
  guint most = 0;
  for (guint i = 0; i < gst_query_get_n_allocation_pools(query.get()); ++i) {
    guint minimum = 0;
    gst_query_parse_nth_allocation_pool(query.get(), i, nullptr, nullptr, &minimum, nullptr);
    most = std::max(most, minimum);
  }
  return most;
}

/// Of the stream of `pad`, as far as that can be known now. The source pad's task asks, since the
/// answer has its place between the containers: a stream that waited there would keep all others'
/// frames back, and no flush of it could end that.
guint held_downstream(PenMux* self, GstPad* pad, GstCaps* caps) {
  const auto mux = mux_of(self);
  if (mux == nullptr) return 0;
  struct Asked {
    GstPtr<GstPad> srcpad;
    CapsPtr caps;
    guint held = 0;
  };
  auto asked = std::make_shared<Asked>();
  asked->srcpad.reset(GST_PAD(gst_object_ref(self->srcpad)));
  asked->caps.reset(gst_caps_ref(caps));
  const GstFlowReturn flow = mux->ask(
      key_of(pad), [asked] { asked->held = held_by_peer(asked->srcpad.get(), asked->caps.get()); });
  if (flow == GST_FLOW_OK) return asked->held;
  // Upstream asks again when the stream goes on.
  if (GST_PAD_IS_FLUSHING(pad)) gst_pad_push_event(pad, gst_event_new_reconfigure());
  return 0;
}

gboolean answer_allocation(PenMux* self, GstPad* pad, GstQuery* query) {
  GstCaps* caps = nullptr;
  gst_query_parse_allocation(query, &caps, nullptr);
  if (caps == nullptr || gst_caps_get_size(caps) == 0) return FALSE;
  const guint behind = held_downstream(self, pad, caps);
  GST_OBJECT_LOCK(self);
  // And one in the container that is being pushed, and one whose thread waits for its place.
  const guint own = self->core->queue_depth + 2;
  GST_OBJECT_UNLOCK(self);
  const bool system = gst_caps_features_contains(gst_caps_get_features(caps, 0),
                                                 GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY);
  // Frames go on as they are, and whoever takes containers reads the frames' own layout.
  gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
  add_held_frames(query, own + behind, system ? DeviceKind::kCpu : DeviceKind::kSim);
  return TRUE;
}

gboolean sink_query(GstPad* pad, GstObject* parent, GstQuery* query) {
  if (GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION) {
    return answer_allocation(PEN_MUX(parent), pad, query);
  }
  // Others, serialized or not, are of a stream, and the source pad knows containers.
  if (GST_QUERY_IS_SERIALIZED(query)) return FALSE;
  return gst_pad_query_default(pad, parent, query);
}

// The source pad.

bool is_as_sent(const std::vector<CapsPtr>& sent, const StreamMux::Container& container) {
  return std::ranges::equal(sent, container.streams,
                            [](const CapsPtr& caps, const ContainerStream& stream) {
                              return gst_caps_is_equal(caps.get(), caps_of(stream));
                            });
}

void send_caps(PenMux* self, const StreamMux::Container& container) {
  MuxCore& core = *self->core;
  if (is_as_sent(core.sent_caps, container)) return;
  const bool first = core.sent_caps.empty();
  if (first) {
    const std::string id = str_format("penmux-{:08x}", g_random_int());
    gst_pad_push_event(self->srcpad, gst_event_new_stream_start(id.c_str()));
  }
  const CapsPtr caps = container_caps(container.streams);
  gst_pad_push_event(self->srcpad, gst_event_new_caps(caps.get()));
  if (first) {
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_pad_push_event(self->srcpad, gst_event_new_segment(&segment));
  }
  core.sent_caps.clear();
  for (const ContainerStream& stream : container.streams) {
    core.sent_caps.emplace_back(gst_caps_ref(caps_of(stream)));
  }
}

GstFlowReturn send(PenMux* self, StreamMux::Container container) {
  send_caps(self, container);
  const GstClockTime time = container.running_time;
  BufferPtr buffer = make_container(std::move(container.streams));
  GST_BUFFER_PTS(buffer.get()) = time;
  return gst_pad_push(self->srcpad, buffer.release());
}

void src_loop(gpointer data) {
  auto* self = PEN_MUX(data);
  const auto mux = mux_of(self);
  auto output = mux == nullptr ? std::nullopt : mux->next();
  if (output && std::holds_alternative<StreamMux::Container>(*output)) {
    const GstFlowReturn flow = send(self, std::get<StreamMux::Container>(std::move(*output)));
    if (flow == GST_FLOW_OK) return;
    mux->interrupt(flow);
    const bool failed = flow == GST_FLOW_NOT_LINKED || flow < GST_FLOW_EOS;
    if (failed && mux->all_ended()) report_downstream(self, flow);
  } else if (output && std::holds_alternative<StreamMux::QuestionPtr>(*output)) {
    const auto& question = std::get<StreamMux::QuestionPtr>(*output);
    question->ask();
    mux->answered(question);
    return;
  } else if (output) {
    gst_pad_push_event(self->srcpad, gst_event_new_eos());
  }
  gst_pad_pause_task(self->srcpad);
  // Linked again in between: whoever resumed found the task running and did not start it.
  if (mux != nullptr && mux->flow() == GST_FLOW_OK && gst_pad_is_active(self->srcpad)) {
    gst_pad_start_task(self->srcpad, src_loop, self, nullptr);
  }
}

gboolean src_activate_mode(GstPad* pad, GstObject* parent, GstPadMode mode, gboolean active) {
  if (mode != GST_PAD_MODE_PUSH) return FALSE;
  auto* self = PEN_MUX(parent);
  const auto mux = mux_of(self);
  if (mux == nullptr) return active ? FALSE : gst_pad_stop_task(pad);
  if (!active) {
    mux->interrupt();
    return gst_pad_stop_task(pad);
  }
  mux->restart();
  self->core->sent_caps.clear();
  return gst_pad_start_task(pad, src_loop, self, nullptr);
}

gboolean src_event(GstPad* pad, GstObject* parent, GstEvent* event) {
  auto* self = PEN_MUX(parent);
  switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_RECONFIGURE:
      if (const auto mux = mux_of(self); mux != nullptr && mux->relink()) {
        gst_pad_start_task(pad, src_loop, self, nullptr);
      }
      gst_event_unref(event);
      return TRUE;
    case GST_EVENT_SEEK:  // Where to, is each source's own matter.
    case GST_EVENT_QOS:   // And what is late, a stream's.
      gst_event_unref(event);
      return FALSE;
    default:
      return gst_pad_event_default(pad, parent, event);
  }
}

gboolean src_query(GstPad* pad, GstObject* parent, GstQuery* query) {
  auto* self = PEN_MUX(parent);
  switch (GST_QUERY_TYPE(query)) {
    case GST_QUERY_LATENCY: {
      GST_OBJECT_LOCK(self);
      const MuxLatency own{.max_wait = self->core->max_wait,
                           .queue_depth = self->core->queue_depth};
      GST_OBJECT_UNLOCK(self);
      answer_mux_latency(GST_ELEMENT(self), query, own);
      return TRUE;
    }
    case GST_QUERY_CAPS:
      return gst_pad_query_default(pad, parent, query);
    default:
      return FALSE;
  }
}

// Pads that come and go.

struct PadChoice {
  std::string name;
  StreamMux::Key key = 0;
  std::shared_ptr<StreamMux> mux;
};

/// Nothing: max-streams are there, or `name`, if any, is not "sink_N". Needs the object lock.
std::optional<PadChoice> choose_pad(MuxCore& core, const gchar* name) {
  guint number = core.next_number;
  if (name != nullptr) {
    const std::string_view text(name);
    constexpr std::string_view kPrefix = "sink_";
    if (!text.starts_with(kPrefix)) return std::nullopt;
    const auto [end, error] =
        std::from_chars(text.data() + kPrefix.size(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  }
  if (core.pads >= core.max_streams) return std::nullopt;
  core.next_number = std::max(core.next_number, number + 1);
  ++core.pads;
  return PadChoice{str_format("sink_{}", number), core.next_key++, core.mux};
}

void forget_pad(PenMux* self) {
  GST_OBJECT_LOCK(self);
  --self->core->pads;
  GST_OBJECT_UNLOCK(self);
}

GstPad* request_new_pad(GstElement* element, GstPadTemplate* pad_template, const gchar* name,
                        const GstCaps*) {
  auto* self = PEN_MUX(element);
  GST_OBJECT_LOCK(self);
  const auto choice = choose_pad(*self->core, name);
  GST_OBJECT_UNLOCK(self);
  if (!choice) {
    GST_WARNING_OBJECT(self, "no pad '%s': max-streams are there, or the name is not sink_N",
                       name == nullptr ? "sink_%u" : name);
    return nullptr;
  }
  GstPad* pad = gst_pad_new_from_template(pad_template, choice->name.c_str());
  gst_pad_set_element_private(pad, GUINT_TO_POINTER(choice->key));
  gst_pad_set_chain_function(pad, sink_chain);
  gst_pad_set_event_full_function(pad, sink_event);
  gst_pad_set_query_function(pad, sink_query);
  if (choice->mux != nullptr) choice->mux->add(choice->key, choice->name);
  gst_pad_set_active(pad, TRUE);
  if (gst_element_add_pad(element, pad)) {
    // One that was made meanwhile has asked for the pads that there were.
    const auto now = mux_of(self);
    if (now != nullptr && now != choice->mux) now->add(choice->key, choice->name);
    return pad;
  }
  if (choice->mux != nullptr) choice->mux->remove(choice->key);
  forget_pad(self);
  return nullptr;
}

void release_pad(GstElement* element, GstPad* pad) {
  auto* self = PEN_MUX(element);
  if (const auto mux = mux_of(self)) mux->remove(key_of(pad));
  gst_pad_set_active(pad, FALSE);
  gst_element_remove_pad(element, pad);
  forget_pad(self);
  gst_element_post_message(element, gst_message_new_latency(GST_OBJECT(element)));
}

// States and properties.

void start(PenMux* self) {
  GST_OBJECT_LOCK(self);
  MuxCore& core = *self->core;
  core.mux = std::make_shared<StreamMux>(
      StreamMux::Options{.max_wait = Nanoseconds(static_cast<gint64>(core.max_wait)),
                         .queue_depth = core.queue_depth,
                         .stay_open = core.stay_open});
  for (GList* pad = GST_ELEMENT(self)->sinkpads; pad != nullptr; pad = pad->next) {
    core.mux->add(key_of(GST_PAD(pad->data)), GST_OBJECT_NAME(pad->data));
  }
  GST_OBJECT_UNLOCK(self);
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
  auto* self = PEN_MUX(element);
  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED) start(self);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
    if (const auto mux = mux_of(self)) mux->interrupt();
  }
  const auto result = GST_ELEMENT_CLASS(pen_mux_parent_class)->change_state(element, transition);
  const bool stopped =
      transition == GST_STATE_CHANGE_PAUSED_TO_READY ||
      (transition == GST_STATE_CHANGE_READY_TO_PAUSED && result == GST_STATE_CHANGE_FAILURE);
  if (stopped) {
    GST_OBJECT_LOCK(self);
    auto mux = std::move(self->core->mux);
    GST_OBJECT_UNLOCK(self);
  }
  return result;
}

bool set_option(MuxCore& core, guint id, const GValue* value) {
  switch (id) {
    case kMaxWait:
      return core.max_wait = g_value_get_uint64(value), true;
    case kQueueDepth:
      return core.queue_depth = g_value_get_uint(value), true;
    case kMaxStreams:
      return core.max_streams = g_value_get_uint(value), true;
    case kStayOpen:
      return core.stay_open = g_value_get_boolean(value) != FALSE, true;
    default:
      return false;
  }
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  auto* self = PEN_MUX(object);
  set_in_ready(GST_ELEMENT(self), id, spec, [&] { return set_option(*self->core, id, value); });
}

void get_stats(PenMux* self, GValue* value) {
  const auto mux = mux_of(self);
  const StreamMux::Stats stats = mux == nullptr ? StreamMux::Stats{} : mux->stats();
  g_value_take_boxed(
      value, gst_structure_new("penstock-mux-stats", "streams", G_TYPE_UINT, stats.streams,
                               "containers", G_TYPE_UINT64, stats.containers, "partial",
                               G_TYPE_UINT64, stats.partial, "frames", G_TYPE_UINT64, stats.frames,
                               "waiting", G_TYPE_UINT, stats.waiting, nullptr));
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  auto* self = PEN_MUX(object);
  if (id == kStats) return get_stats(self, value);
  GST_OBJECT_LOCK(self);
  const MuxCore& core = *self->core;
  switch (id) {
    case kMaxWait:
      g_value_set_uint64(value, core.max_wait);
      break;
    case kQueueDepth:
      g_value_set_uint(value, core.queue_depth);
      break;
    case kMaxStreams:
      g_value_set_uint(value, core.max_streams);
      break;
    case kStayOpen:
      g_value_set_boolean(value, core.stay_open);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
  GST_OBJECT_UNLOCK(self);
}

void finalize(GObject* object) {
  delete PEN_MUX(object)->core;
  G_OBJECT_CLASS(pen_mux_parent_class)->finalize(object);
}

void install_properties(GObjectClass* klass) {
  const MuxCore initial;
  g_object_class_install_property(
      klass, kMaxWait,
      g_param_spec_uint64("max-wait", "Longest wait",
                          "How long (ns) a frame waits for frames of the other streams", 0,
                          10 * GST_SECOND, initial.max_wait, kReadyProperty));
  g_object_class_install_property(
      klass, kQueueDepth,
      g_param_spec_uint("queue-depth", "Queue depth",
                        "Frames of a stream that may wait; when they do, its source waits", 1, 1024,
                        initial.queue_depth, kReadyProperty));
  g_object_class_install_property(
      klass, kMaxStreams,
      g_param_spec_uint("max-streams", "Streams", "Most sink pads; more are refused", 1,
                        static_cast<guint>(kMostContainerStreams), initial.max_streams,
                        kReadyProperty));
  g_object_class_install_property(
      klass, kStayOpen,
      g_param_spec_boolean("stay-open", "Stay open",
                           "Send no EOS when all streams have ended: others may come",
                           initial.stay_open, kReadyProperty));
  g_object_class_install_property(
      klass, kStats,
      g_param_spec_boxed("stats", "Statistics",
                         "streams (that may still deliver), containers, partial (without a stream "
                         "that was waited for), frames, waiting",
                         GST_TYPE_STRUCTURE,
                         static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
}

}  // namespace

static void pen_mux_class_init(PenMuxClass* klass) {
  auto* object_class = G_OBJECT_CLASS(klass);
  auto* element_class = GST_ELEMENT_CLASS(klass);
  object_class->set_property = set_property;
  object_class->get_property = get_property;
  object_class->finalize = finalize;
  element_class->change_state = change_state;
  element_class->request_new_pad = request_new_pad;
  element_class->release_pad = release_pad;
  install_properties(object_class);
  gst_element_class_add_static_pad_template(element_class, &sink_template);
  gst_element_class_add_static_pad_template(element_class, &src_template);
  gst_element_class_set_static_metadata(element_class, "Penstock stream mux", "Muxer/Video",
                                        "Puts frames of several streams into batch containers",
                                        "The Penstock authors");
}

static void pen_mux_init(PenMux* self) {
  self->core = new MuxCore;
  self->srcpad = gst_pad_new_from_static_template(&src_template, "src");
  gst_pad_set_activatemode_function(self->srcpad, src_activate_mode);
  gst_pad_set_event_function(self->srcpad, src_event);
  gst_pad_set_query_function(self->srcpad, src_query);
  gst_element_add_pad(GST_ELEMENT(self), self->srcpad);
}
