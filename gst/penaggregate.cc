// SPDX-License-Identifier: Apache-2.0
#include "gst/penaggregate.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "gst/aggregate_element.h"
#include "gst/aggregate_sink_pad.h"
#include "gst/aggregate_src_pad.h"
#include "gst/branch_join.h"
#include "gst/bus_error.h"
#include "gst/element_state.h"
#include "penstock/base/str_format.h"

using namespace penstock;
using namespace penstock::gst;

namespace {

enum Property : guint { kMaxWait = 1, kQueueDepth, kMaxRecords, kMissing, kStats };

GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE(
    "sink_%u", GST_PAD_SINK, GST_PAD_REQUEST, GST_STATIC_CAPS("video/x-raw(ANY)"));
GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS,
                                                            GST_STATIC_CAPS("video/x-raw(ANY)"));

}  // namespace

G_DEFINE_TYPE(PenAggregate, pen_aggregate, GST_TYPE_ELEMENT)

namespace {

// Pads that come and go.

/// Nothing: `name`, if any, is not "sink_N". Needs the object lock.
std::optional<BranchJoin::Pad> choose_pad(AggregateCore& core, const gchar* name) {
  guint number = core.next_number;
  if (name != nullptr) {
    const std::string_view text(name);
    constexpr std::string_view kPrefix = "sink_";
    if (!text.starts_with(kPrefix)) return std::nullopt;
    const auto [end, error] =
        std::from_chars(text.data() + kPrefix.size(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  }
  core.next_number = std::max(core.next_number, number + 1);
  return BranchJoin::Pad{.key = core.next_key++,
                         .name = str_format("sink_{}", number),
                         .primary = number == 0,
                         .from_start = false};
}

GstPad* request_new_pad(GstElement* element, GstPadTemplate* pad_template, const gchar* name,
                        const GstCaps*) {
  auto* self = PEN_AGGREGATE(element);
  GST_OBJECT_LOCK(self);
  const auto choice = choose_pad(*self->core, name);
  GST_OBJECT_UNLOCK(self);
  if (!choice) {
    GST_WARNING_OBJECT(self, "no pad '%s': the name is not sink_N", name);
    return nullptr;
  }
  GstPad* pad = new_aggregate_sink_pad(pad_template, *choice);
  // Before it can be linked: what comes then has its place.
  const auto join = join_of(self);
  if (join != nullptr) join->add(*choice);
  gst_pad_set_active(pad, TRUE);
  if (!gst_element_add_pad(element, pad)) {
    if (join != nullptr) join->remove(choice->key);
    return nullptr;
  }
  // One that was made meanwhile has asked for the pads that there were.
  const auto now = join_of(self);
  if (now != nullptr && now != join) now->add(*choice);
  if (now != nullptr && choice->primary && now->runs()) resume_src(self, {});
  return pad;
}

void release_pad(GstElement* element, GstPad* pad) {
  auto* self = PEN_AGGREGATE(element);
  if (const auto join = join_of(self)) join->remove(key_of(pad));
  gst_pad_set_active(pad, FALSE);
  gst_element_remove_pad(element, pad);
  gst_element_post_message(element, gst_message_new_latency(GST_OBJECT(element)));
}

// States and properties.

bool start(PenAggregate* self) {
  GST_OBJECT_LOCK(self);
  AggregateCore& core = *self->core;
  auto join = std::make_shared<BranchJoin>(
      BranchJoin::Options{.max_wait = Nanoseconds(static_cast<gint64>(core.max_wait)),
                          .queue_depth = core.queue_depth,
                          .missing = core.missing});
  bool has_primary = false;
  for (GList* entry = GST_ELEMENT(self)->sinkpads; entry != nullptr; entry = entry->next) {
    GstPad* pad = GST_PAD(entry->data);
    has_primary = has_primary || is_primary(pad);
    join->add({.key = key_of(pad),
               .name = GST_OBJECT_NAME(pad),
               .primary = is_primary(pad),
               .from_start = true});
  }
  if (has_primary) core.join = std::move(join);
  GST_OBJECT_UNLOCK(self);
  if (has_primary) return true;
  post_error(GST_ELEMENT(self), "cpu", "starting",
             Error(ErrorKind::kInvalidArgument,
                   str_format("no pad '{}' was requested, whose frames go on", kPrimaryPad)));
  return false;
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
  auto* self = PEN_AGGREGATE(element);
  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED && !start(self)) {
    return GST_STATE_CHANGE_FAILURE;
  }
  if (const auto join = join_of(self)) {
    if (transition == GST_STATE_CHANGE_PAUSED_TO_PLAYING) join->set_playing(true);
    if (transition == GST_STATE_CHANGE_PLAYING_TO_PAUSED) join->set_playing(false);
    if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) join->stop(GST_FLOW_FLUSHING);
  }
  const auto result =
      GST_ELEMENT_CLASS(pen_aggregate_parent_class)->change_state(element, transition);
  const bool stopped =
      transition == GST_STATE_CHANGE_PAUSED_TO_READY ||
      (transition == GST_STATE_CHANGE_READY_TO_PAUSED && result == GST_STATE_CHANGE_FAILURE);
  if (stopped) {
    GST_OBJECT_LOCK(self);
    auto join = std::move(self->core->join);
    GST_OBJECT_UNLOCK(self);
  }
  return result;
}

GType missing_type() {
  static const GEnumValue values[] = {
      {int(BranchJoin::Missing::kError), "It is an error", "error"},
      {int(BranchJoin::Missing::kPass), "The frame goes on without, and is counted", "pass"},
      {0, nullptr, nullptr}};
  static const GType type = g_enum_register_static("PenAggregateMissing", values);
  return type;
}

bool set_option(AggregateCore& core, guint id, const GValue* value) {
  switch (id) {
    case kMaxWait:
      return core.max_wait = g_value_get_uint64(value), true;
    case kQueueDepth:
      return core.queue_depth = g_value_get_uint(value), true;
    case kMaxRecords:
      return core.max_records = g_value_get_uint(value), true;
    case kMissing:
      return core.missing = static_cast<BranchJoin::Missing>(g_value_get_enum(value)), true;
    default:
      return false;
  }
}

bool get_option(const AggregateCore& core, guint id, GValue* value) {
  switch (id) {
    case kMaxWait:
      return g_value_set_uint64(value, core.max_wait), true;
    case kQueueDepth:
      return g_value_set_uint(value, core.queue_depth), true;
    case kMaxRecords:
      return g_value_set_uint(value, core.max_records), true;
    case kMissing:
      return g_value_set_enum(value, int(core.missing)), true;
    default:
      return false;
  }
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  auto* self = PEN_AGGREGATE(object);
  set_in_ready(GST_ELEMENT(self), id, spec, [&] { return set_option(*self->core, id, value); });
}

void get_stats(PenAggregate* self, GValue* value) {
  const auto join = join_of(self);
  const BranchJoin::Stats stats = join == nullptr ? BranchJoin::Stats{} : join->stats();
  g_value_take_boxed(
      value, gst_structure_new("penstock-aggregate-stats", "frames", G_TYPE_UINT64, stats.frames,
                               "joined", G_TYPE_UINT64, stats.joined, "missing", G_TYPE_UINT64,
                               stats.missing, "late", G_TYPE_UINT64, stats.late, "waiting",
                               G_TYPE_UINT, stats.waiting, nullptr));
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  auto* self = PEN_AGGREGATE(object);
  if (id == kStats) return get_stats(self, value);
  GST_OBJECT_LOCK(self);
  const bool known = get_option(*self->core, id, value);
  GST_OBJECT_UNLOCK(self);
  if (!known) G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

void finalize(GObject* object) {
  delete PEN_AGGREGATE(object)->core;
  G_OBJECT_CLASS(pen_aggregate_parent_class)->finalize(object);
}

void install_properties(GObjectClass* klass) {
  const AggregateCore initial;
  g_object_class_install_property(
      klass, kMaxWait,
      g_param_spec_uint64(
          "max-wait", "Longest wait",
          "How long (ns) a frame waits for the branches while it is the oldest. For live sources "
          "with missing=pass it is latency: set it to what the slowest branch takes",
          0, 3600 * GST_SECOND, initial.max_wait, kReadyProperty));
  g_object_class_install_property(
      klass, kQueueDepth,
      g_param_spec_uint("queue-depth", "Queue depth",
                        "Frames of a pad that may wait; when they do, upstream waits. At least "
                        "what the slowest branch has in work",
                        1, 1024, initial.queue_depth, kReadyProperty));
  g_object_class_install_property(
      klass, kMaxRecords,
      g_param_spec_uint("max-records", "Records",
                        "Most GstAnalytics records of a joined frame; more are an error", 1, 16384,
                        initial.max_records, kReadyProperty));
  g_object_class_install_property(
      klass, kMissing,
      g_param_spec_enum("missing", "Missing frames",
                        "What a frame comes to that a branch left out, or is too late with: an "
                        "error, or it goes on without, and is counted",
                        missing_type(), int(initial.missing), kReadyProperty));
  g_object_class_install_property(
      klass, kStats,
      g_param_spec_boxed("stats", "Statistics",
                         "frames that went on, frames of branches that were joined to them, "
                         "missing ones, late ones that were dropped, waiting",
                         GST_TYPE_STRUCTURE,
                         static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
}

}  // namespace

static void pen_aggregate_class_init(PenAggregateClass* klass) {
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
  gst_element_class_set_static_metadata(element_class, "Penstock aggregator", "Muxer/Video",
                                        "Joins the metadata of several branches of one frame",
                                        "The Penstock authors");
}

static void pen_aggregate_init(PenAggregate* self) {
  self->core = new AggregateCore;
  self->srcpad = new_aggregate_src_pad(&src_template);
  gst_element_add_pad(GST_ELEMENT(self), self->srcpad);
}
