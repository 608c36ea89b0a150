// SPDX-License-Identifier: Apache-2.0
#include "gst/penwatermark.h"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "gst/allocation.h"
#include "gst/bus_error.h"
#include "gst/caps_refusal.h"
#include "gst/device_choice.h"
#include "gst/element_clock.h"
#include "gst/element_state.h"
#include "gst/ledger_list.h"
#include "gst/watermark_caps.h"
#include "gst/watermark_config.h"
#include "gst/watermark_stream.h"

using namespace penstock;
using namespace penstock::gst;

namespace {

/// The C++ side of a PenWatermark. Fields marked (O) are guarded by the object lock, the rest is
/// the streaming thread's.
struct WatermarkCore {
  WatermarkConfig config;                   // (O)
  std::shared_ptr<WatermarkStream> stream;  // (O)
  std::shared_ptr<OutputSlots> slots;       // (O) Of the stream, from before it to after it.
  OverlayStyle style;
  bool refused = false;  ///< Caps that were refused, and said so.
};

constexpr guint kStats = kFirstFreeWatermarkProperty;

GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
                            GST_STATIC_CAPS("video/x-raw, format={NV12,I420}; "
                                            "video/x-raw(memory:PenstockSim), format=NV12"));
GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE(
    "src", GST_PAD_SRC, GST_PAD_ALWAYS,
    GST_STATIC_CAPS("video/x-raw, format=BGRA; video/x-raw(memory:PenstockSim), format=BGRA"));

}  // namespace

struct _PenWatermark {
  GstBaseTransform parent;
  WatermarkCore* core;
};

G_DEFINE_TYPE(PenWatermark, pen_watermark, GST_TYPE_BASE_TRANSFORM)

namespace {

WatermarkConfig config_of(PenWatermark* self) {
  GST_OBJECT_LOCK(self);
  WatermarkConfig config = self->core->config;
  GST_OBJECT_UNLOCK(self);
  return config;
}

std::shared_ptr<WatermarkStream> stream_of(PenWatermark* self) {
  GST_OBJECT_LOCK(self);
  auto stream = self->core->stream;
  GST_OBJECT_UNLOCK(self);
  return stream;
}

std::shared_ptr<OutputSlots> slots_of(PenWatermark* self) {
  GST_OBJECT_LOCK(self);
  auto slots = self->core->slots;
  GST_OBJECT_UNLOCK(self);
  return slots;
}

/// The configured device, `cpu` while the property holds nonsense (which start() refuses).
DeviceId device_id(PenWatermark* self) {
  return parse_device_id(config_of(self).device).value_or(DeviceId{});
}

void report(PenWatermark* self, const char* operation, const Error& error) {
  post_error(GST_ELEMENT(self), config_of(self).device, operation, error);
}

Result<std::shared_ptr<WatermarkStream>> make_stream(PenWatermark* self,
                                                     const WatermarkConfig& config) {
  auto zones = zones_of(config);
  if (!zones) return std::unexpected(std::move(zones).error());
  // Also for what no picture has shown yet.
  if (auto tried = Overlay::create(style_of(config), 2, 2); !tried) {
    return std::unexpected(std::move(tried).error());
  }
  auto device = find_device(GST_ELEMENT(self), config.device);
  if (!device) return std::unexpected(std::move(device).error());
  auto compositor = Compositor::create(*device);
  if (!compositor) return std::unexpected(std::move(compositor).error());
  const auto warn = [self, name = config.device](const char* operation) {
    return [self, name, operation](const Error& error) {
      post_warning(GST_ELEMENT(self), name, operation, error);
    };
  };
  auto slots = std::make_shared<OutputSlots>(element_clock(GST_ELEMENT(self)));
  GST_OBJECT_LOCK(self);
  self->core->slots = slots;
  GST_OBJECT_UNLOCK(self);
  return std::make_shared<WatermarkStream>(
      *std::move(device), *std::move(compositor), std::move(slots), *std::move(zones),
      WatermarkEvents{.on_late = warn("making an output frame"), .on_dropped = warn("drawing")});
}

gboolean start(GstBaseTransform* base) {
  auto* self = PEN_WATERMARK(base);
  const WatermarkConfig config = config_of(self);
  auto stream = make_stream(self, config);
  if (!stream) {
    report(self, "starting", stream.error());
    return FALSE;
  }
  self->core->style = style_of(config);
  self->core->refused = false;
  GST_OBJECT_LOCK(self);
  self->core->stream = *std::move(stream);
  GST_OBJECT_UNLOCK(self);
  return TRUE;
}

gboolean stop(GstBaseTransform* base) {
  auto* self = PEN_WATERMARK(base);
  GST_OBJECT_LOCK(self);
  auto stream = std::move(self->core->stream);
  self->core->stream = nullptr;
  GST_OBJECT_UNLOCK(self);
  return TRUE;
}

/// Ends the wait of the streaming thread, so that it lets go of its lock.
GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
    if (const auto slots = slots_of(PEN_WATERMARK(element))) slots->end();
  }
  return GST_ELEMENT_CLASS(pen_watermark_parent_class)->change_state(element, transition);
}

CapsRefusal refusal_of(PenWatermark* self) {
  return {.accept = [self](const GstCaps* caps) -> Result<void> {
            PENSTOCK_TRY(accept_watermark_caps(caps, device_id(self)));
            return {};
          },
          .refuse =
              [self](const Error& error) {
                if (stream_of(self) == nullptr || self->core->refused) return;
                self->core->refused = true;
                report(self, "negotiating caps", error);
              }};
}

GstCaps* transform_caps(GstBaseTransform* base, GstPadDirection direction, GstCaps* caps,
                        GstCaps* filter) {
  CapsPtr other = watermark_caps_for(direction, caps, device_id(PEN_WATERMARK(base)).kind);
  if (filter == nullptr) return other.release();
  return gst_caps_intersect_full(filter, other.get(), GST_CAPS_INTERSECT_FIRST);
}

gboolean accept(GstBaseTransform* base, GstPadDirection direction, GstCaps* caps) {
  if (direction == GST_PAD_SINK) {
    return accept_watermark_caps(caps, device_id(PEN_WATERMARK(base))).has_value();
  }
  return GST_BASE_TRANSFORM_CLASS(pen_watermark_parent_class)->accept_caps(base, direction, caps);
}

gboolean set_caps(GstBaseTransform* base, GstCaps* in, GstCaps*) {
  auto* self = PEN_WATERMARK(base);
  const auto stream = stream_of(self);
  const auto format = accept_watermark_caps(in, device_id(self));
  if (stream == nullptr || !format) return FALSE;  // Said by refusal_of().
  if (const auto set = stream->set_format(*format, self->core->style); !set) {
    report(self, "negotiating caps", set.error());
    return FALSE;
  }
  self->core->refused = false;
  return TRUE;
}

gboolean unit_size(GstBaseTransform*, GstCaps* caps, gsize* size) {
  GstVideoInfo info;
  if (!gst_video_info_from_caps(&info, caps)) return FALSE;
  *size = GST_VIDEO_INFO_SIZE(&info);
  return TRUE;
}

gboolean propose_allocation(GstBaseTransform* base, GstQuery*, GstQuery* query) {
  const DeviceKind device = device_id(PEN_WATERMARK(base)).kind;
  // Where jobs outlive a flush, their frames do; each has a slot.
  const guint held = device == DeviceKind::kCpu ? 1 : guint{OutputSlots::kSlots} + 1;
  gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
  add_held_frames(query, held, device);
  return TRUE;
}

/// Output frames are the element's own, whatever downstream offers.
gboolean decide_allocation(GstBaseTransform*, GstQuery* query) {
  while (gst_query_get_n_allocation_pools(query) > 0) {
    gst_query_remove_nth_allocation_pool(query, 0);
  }
  return TRUE;
}

gboolean sink_event(GstBaseTransform* base, GstEvent* event) {
  if (const auto slots = slots_of(PEN_WATERMARK(base))) {
    if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_START) slots->interrupt();
    if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) slots->resume();
  }
  return GST_BASE_TRANSFORM_CLASS(pen_watermark_parent_class)->sink_event(base, event);
}

/// Makes the whole output; transform() has nothing left to do.
GstFlowReturn draw(GstBaseTransform* base, GstBuffer* input, GstBuffer** output) {
  auto* self = PEN_WATERMARK(base);
  const auto stream = stream_of(self);
  if (stream == nullptr) return GST_FLOW_FLUSHING;
  auto drawn = stream->draw(input);
  if (!drawn) {
    report(self, "drawing a frame", drawn.error());
    return GST_FLOW_ERROR;
  }
  *output = drawn->release();
  return *output == nullptr ? GST_FLOW_FLUSHING : GST_FLOW_OK;
}

GstFlowReturn nothing_left(GstBaseTransform*, GstBuffer*, GstBuffer*) { return GST_FLOW_OK; }

GstStructure* make_stats(const WatermarkStream* stream) {
  const WatermarkStream::Stats stats =
      stream != nullptr ? stream->stats() : WatermarkStream::Stats{};
  const auto slots = stream != nullptr ? guint(stream->slots().held()) : 0u;
  GstStructure* made = gst_structure_new(
      "penstock-stats", "frames", G_TYPE_UINT64, guint64(stats.frames), "commands", G_TYPE_UINT64,
      guint64(stats.commands), "dropped", G_TYPE_UINT64, guint64(stats.dropped), "misplaced",
      G_TYPE_UINT64, guint64(stats.misplaced), "slots-held", G_TYPE_UINT, slots, nullptr);
  set_ledger(made, stream != nullptr ? &stream->ledger() : nullptr);
  return made;
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  auto* self = PEN_WATERMARK(object);
  set_in_ready(GST_ELEMENT(self), id, spec,
               [&] { return set_watermark_property(self->core->config, id, value); });
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  auto* self = PEN_WATERMARK(object);
  if (id == kStats) {
    g_value_take_boxed(value, make_stats(stream_of(self).get()));
    return;
  }
  GST_OBJECT_LOCK(self);
  const bool known = get_watermark_property(self->core->config, id, value);
  GST_OBJECT_UNLOCK(self);
  if (!known) G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

void finalize(GObject* object) {
  delete PEN_WATERMARK(object)->core;
  G_OBJECT_CLASS(pen_watermark_parent_class)->finalize(object);
}

}  // namespace

static void pen_watermark_class_init(PenWatermarkClass* klass) {
  auto* object_class = G_OBJECT_CLASS(klass);
  auto* element_class = GST_ELEMENT_CLASS(klass);
  auto* transform_class = GST_BASE_TRANSFORM_CLASS(klass);
  object_class->set_property = set_property;
  object_class->get_property = get_property;
  object_class->finalize = finalize;
  element_class->change_state = change_state;
  transform_class->start = start;
  transform_class->stop = stop;
  transform_class->transform_caps = transform_caps;
  transform_class->accept_caps = accept;
  transform_class->set_caps = set_caps;
  transform_class->get_unit_size = unit_size;
  transform_class->propose_allocation = propose_allocation;
  transform_class->decide_allocation = decide_allocation;
  transform_class->sink_event = sink_event;
  transform_class->prepare_output_buffer = draw;
  transform_class->transform = nothing_left;
  install_watermark_properties(object_class);
  g_object_class_install_property(
      object_class, kStats,
      g_param_spec_boxed("stats", "Statistics",
                         "frames, commands and those dropped or misplaced, slots-held, ledger",
                         GST_TYPE_STRUCTURE,
                         static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
  gst_element_class_add_static_pad_template(element_class, &sink_template);
  gst_element_class_add_static_pad_template(element_class, &src_template);
  gst_element_class_set_static_metadata(element_class, "Penstock watermark", "Filter/Effect/Video",
                                        "Draws what was found in frames on BGRA copies of them",
                                        "The Penstock authors");
}

static void pen_watermark_init(PenWatermark* self) {
  self->core = new WatermarkCore;
  name_refused_caps(GST_BASE_TRANSFORM_SINK_PAD(self), refusal_of(self));
}
