// SPDX-License-Identifier: Apache-2.0
#include "gst/penzone.h"

#include <gst/analytics/analytics.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gst/bus_error.h"
#include "gst/element_state.h"
#include "gst/gst_ptr.h"
#include "gst/object_records.h"
#include "gst/penanalysis_meta.h"
#include "gst/record_transform.h"
#include "gst/zone_messages.h"
#include "penstock/track/zone_text.h"
#include "penstock/track/zones.h"

using namespace penstock;
using namespace penstock::gst;

namespace {

/// The C++ side of a PenZone. Fields marked (O) are guarded by the object lock, the rest is the
/// streaming thread's.
struct ZoneCore {
  std::string zones;          // (O)
  std::string lines;          // (O)
  guint64 forget_after = 0;   // (O) ns
  bool post_messages = true;  // (O)
  ZoneFrame latest;           // (O)
  std::unique_ptr<ZoneCounter> counter;
  bool counts = false;  ///< There are places, so that frames get counts.
  int width = 0, height = 0;
  Nanoseconds time{};  ///< Of the last frame that had one.
};

enum Property : guint { kZones = 1, kLines, kForgetAfter, kPostMessages, kStats };

}  // namespace

struct _PenZone {
  GstBaseTransform parent;
  ZoneCore* core;
};

G_DEFINE_TYPE(PenZone, pen_zone, GST_TYPE_BASE_TRANSFORM)

namespace {

void report(GstBaseTransform* base, const char* operation, const Error& error) {
  post_error(GST_ELEMENT(base), "cpu", operation, error);
}

Result<std::unique_ptr<ZoneCounter>> make_counter(PenZone* self) {
  GST_OBJECT_LOCK(self);
  const std::string zones_text = self->core->zones;
  const std::string lines_text = self->core->lines;
  const guint64 forget_after = self->core->forget_after;
  GST_OBJECT_UNLOCK(self);
  auto zones = parse_zones(zones_text);
  if (!zones) return std::unexpected(std::move(zones).error().context("property 'zones'"));
  auto lines = parse_lines(lines_text);
  if (!lines) return std::unexpected(std::move(lines).error().context("property 'lines'"));
  return ZoneCounter::create({.zones = std::move(*zones),
                              .lines = std::move(*lines),
                              .forget_after = Nanoseconds(static_cast<gint64>(forget_after))});
}

bool has_places(const ZoneFrame& frame) { return !frame.zones.empty() || !frame.lines.empty(); }

gboolean start(GstBaseTransform* base) {
  auto* self = PEN_ZONE(base);
  auto counter = make_counter(self);
  if (!counter) {
    report(base, "reading its properties", counter.error());
    return FALSE;
  }
  self->core->counter = std::move(*counter);
  self->core->time = {};
  ZoneFrame none = self->core->counter->update({}, {}, 1, 1);
  self->core->counts = has_places(none);
  GST_OBJECT_LOCK(self);
  self->core->latest = std::move(none);
  GST_OBJECT_UNLOCK(self);
  return TRUE;
}

gboolean stop(GstBaseTransform* base) {
  PEN_ZONE(base)->core->counter.reset();
  return TRUE;
}

gboolean set_caps(GstBaseTransform* base, GstCaps* caps, GstCaps*) {
  ZoneCore& core = *PEN_ZONE(base)->core;
  return read_picture_size(base, caps, core.width, core.height);
}

gboolean sink_event(GstBaseTransform* base, GstEvent* event) {
  ZoneCore& core = *PEN_ZONE(base)->core;
  if (begins_anew(event) && core.counter != nullptr) {
    core.counter->reset();
    core.time = {};
  }
  return GST_BASE_TRANSFORM_CLASS(pen_zone_parent_class)->sink_event(base, event);
}

std::vector<Detection> tracked_objects(GstAnalyticsRelationMeta* meta) {
  constexpr auto kMost = static_cast<guint64>(std::numeric_limits<std::int64_t>::max());
  std::vector<Detection> objects;
  for (const GstAnalyticsODMtd& record : object_records(meta)) {
    Detection& object = objects.emplace_back(read_object(record));
    const auto id = read_track_id(record);
    if (id && *id < kMost) object.track_id = static_cast<std::int64_t>(*id) + kTrackIdOffset;
  }
  return objects;
}

/// Puts the counts into the frame's PenAnalysisMeta, behind those of a counter before this one.
void add_counts(GstBuffer* buffer, const Analysis& said, const ZoneFrame& frame) {
  // Others may share it.
  auto analysis = std::make_shared<Analysis>(said);
  FrameResult& result = analysis->result;
  for (const ZoneState& zone : frame.zones) {
    result.zones.push_back(
        {.name = zone.name, .inside = zone.inside, .entered = zone.entered, .left = zone.left});
  }
  for (const LineState& line : frame.lines) {
    result.lines.push_back(
        {.name = line.name, .forwards = line.forwards, .backwards = line.backwards});
  }
  replace_analysis(buffer, std::move(analysis));
}

/// A frame that gets counts and that somebody else holds too goes on as a shallow copy; all others
/// as they are.
GstFlowReturn choose_output(GstBaseTransform* base, GstBuffer* input, GstBuffer** output) {
  const ZoneCore& core = *PEN_ZONE(base)->core;
  const bool gets_counts = core.counts && read_analysis(input) != nullptr &&
                           gst_buffer_get_analytics_relation_meta(input) != nullptr;
  *output = gets_counts && !gst_buffer_is_writable(input) ? gst_buffer_copy(input) : input;
  return *output != nullptr ? GST_FLOW_OK : GST_FLOW_ERROR;
}

GstFlowReturn look_at(GstBaseTransform* base, GstBuffer* buffer) {
  auto* self = PEN_ZONE(base);
  ZoneCore& core = *self->core;
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  // Nobody looked for objects in it, so none has gone.
  if (meta == nullptr) return GST_FLOW_OK;
  const GstClockTime time = running_time_of(base, buffer);
  if (GST_CLOCK_TIME_IS_VALID(time)) core.time = Nanoseconds(static_cast<gint64>(time));
  ZoneFrame frame = core.counter->update(tracked_objects(meta), core.time, core.width, core.height);
  std::vector<ZoneEvent> events = std::move(frame.events);
  if (const Analysis* said = read_analysis(buffer); said != nullptr && core.counts) {
    add_counts(buffer, *said, frame);
  }
  GST_OBJECT_LOCK(self);
  const bool post = core.post_messages;
  core.latest = std::move(frame);
  GST_OBJECT_UNLOCK(self);
  if (!post) return GST_FLOW_OK;
  for (const ZoneEvent& event : events) {
    gst_element_post_message(
        GST_ELEMENT(self),
        gst_message_new_element(GST_OBJECT(self), event_structure(event, time).release()));
  }
  return GST_FLOW_OK;
}

std::string text_of(const GValue* value) {
  const gchar* text = g_value_get_string(value);
  return text == nullptr ? "" : text;
}

bool set_option(ZoneCore& core, guint id, const GValue* value) {
  switch (id) {
    case kZones:
      return core.zones = text_of(value), true;
    case kLines:
      return core.lines = text_of(value), true;
    case kForgetAfter:
      return core.forget_after = g_value_get_uint64(value), true;
    case kPostMessages:
      return core.post_messages = g_value_get_boolean(value) != FALSE, true;
    default:
      return false;
  }
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  auto* self = PEN_ZONE(object);
  set_in_ready(GST_ELEMENT(self), id, spec, [&] { return set_option(*self->core, id, value); });
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  auto* self = PEN_ZONE(object);
  ZoneCore& core = *self->core;
  bool known = true;
  GST_OBJECT_LOCK(self);
  switch (id) {
    case kZones:
      g_value_set_string(value, core.zones.c_str());
      break;
    case kLines:
      g_value_set_string(value, core.lines.c_str());
      break;
    case kForgetAfter:
      g_value_set_uint64(value, core.forget_after);
      break;
    case kPostMessages:
      g_value_set_boolean(value, core.post_messages ? TRUE : FALSE);
      break;
    case kStats:
      g_value_take_boxed(value, stats_structure(core.latest).release());
      break;
    default:
      known = false;
  }
  GST_OBJECT_UNLOCK(self);
  if (!known) G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

void finalize(GObject* object) {
  delete PEN_ZONE(object)->core;
  G_OBJECT_CLASS(pen_zone_parent_class)->finalize(object);
}

constexpr guint64 kForgetAfterDefault = 2 * GST_SECOND;

void install_properties(GObjectClass* klass) {
  const auto install = [klass](guint id, GParamSpec* spec) {
    g_object_class_install_property(klass, id, spec);
  };
  install(kZones, g_param_spec_string(
                      "zones", "Zones",
                      "Polygons, as NAME: X,Y X,Y X,Y ... @ LABEL,LABEL; NAME: ..., of 3 to 256 "
                      "corners that do not cross themselves; X and Y are parts of the picture, 0 "
                      "to 1 from its upper left corner; without the @ all labels count",
                      "", kReadyProperty));
  install(kLines, g_param_spec_string(
                      "lines", "Lines",
                      "Lines, as NAME: X,Y X,Y @ LABEL; ...: crossed forwards from the left of the "
                      "way from the first end to the second to its right, as seen",
                      "", kReadyProperty));
  install(kForgetAfter,
          g_param_spec_uint64("forget-after", "Forget after",
                              "Running time (ns) for which an object may be missing before it has "
                              "left where it was last",
                              0, 3600 * GST_SECOND, kForgetAfterDefault, kReadyProperty));
  install(kPostMessages,
          g_param_spec_boolean("post-messages", "Post messages",
                               "Post an element message for every event", TRUE, kReadyProperty));
  install(kStats,
          g_param_spec_boxed("stats", "Statistics", "The sums so far, below", GST_TYPE_STRUCTURE,
                             static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
}

}  // namespace

static void pen_zone_class_init(PenZoneClass* klass) {
  auto* object_class = G_OBJECT_CLASS(klass);
  auto* element_class = GST_ELEMENT_CLASS(klass);
  auto* transform_class = GST_BASE_TRANSFORM_CLASS(klass);
  object_class->set_property = set_property;
  object_class->get_property = get_property;
  object_class->finalize = finalize;
  transform_class->start = start;
  transform_class->stop = stop;
  transform_class->set_caps = set_caps;
  transform_class->sink_event = sink_event;
  transform_class->prepare_output_buffer = choose_output;
  transform_class->transform_ip = look_at;
  install_properties(object_class);
  add_any_video_pads(element_class);
  gst_element_class_set_static_metadata(element_class, "Penstock zones", "Filter/Analyzer/Video",
                                        "Counts tracked objects in zones and across lines",
                                        "The Penstock authors");
}

static void pen_zone_init(PenZone* self) {
  self->core = new ZoneCore;
  self->core->forget_after = kForgetAfterDefault;
  // Memory is only looked at, and a shared frame that gets no counts is not even copied.
  gst_base_transform_set_passthrough(GST_BASE_TRANSFORM(self), TRUE);
}
