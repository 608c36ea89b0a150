// SPDX-License-Identifier: Apache-2.0
#include "gst/zone_messages.h"

#include <vector>

namespace penstock::gst {
namespace {

const char* name_of(ZoneEventKind kind) {
  switch (kind) {
    case ZoneEventKind::kEntered:
      return "entered";
    case ZoneEventKind::kLeft:
      return "left";
    case ZoneEventKind::kCrossedForwards:
      return "crossed-forwards";
    case ZoneEventKind::kCrossedBackwards:
      return "crossed-backwards";
  }
  return "";
}

guint64 ns(Nanoseconds value) { return static_cast<guint64>(value.count()); }

/// A list in the making.
class List {
 public:
  List() { g_value_init(&list_, GST_TYPE_LIST); }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() {
    if (G_IS_VALUE(&list_)) g_value_unset(&list_);
  }
  void add(GstStructure* taken) {
    GValue value = G_VALUE_INIT;
    g_value_init(&value, GST_TYPE_STRUCTURE);
    g_value_take_boxed(&value, taken);
    gst_value_list_append_and_take_value(&list_, &value);
  }
  /// Ends as a field.
  void become(GstStructure* structure, const char* field) {
    gst_structure_take_value(structure, field, &list_);
  }

 private:
  GValue list_ = G_VALUE_INIT;
};

void set_labels(GstStructure* structure, const char* field, const std::vector<LabelCount>& counts) {
  List list;
  for (const LabelCount& entry : counts) {
    list.add(gst_structure_new("penstock-label", "label", G_TYPE_STRING, entry.label.c_str(),
                               "count", G_TYPE_UINT64, guint64(entry.count), nullptr));
  }
  list.become(structure, field);
}

}  // namespace

GstPtr<GstStructure> event_structure(const ZoneEvent& event, GstClockTime running_time) {
  GstPtr<GstStructure> made(
      gst_structure_new("penzone", "event", G_TYPE_STRING, name_of(event.kind), "place",
                        G_TYPE_STRING, event.place.c_str(), "track-id", G_TYPE_UINT64,
                        guint64(event.track_id - kTrackIdOffset), "label", G_TYPE_STRING,
                        event.label.c_str(), "running-time", G_TYPE_UINT64, running_time, nullptr));
  if (event.kind == ZoneEventKind::kLeft) {
    gst_structure_set(made.get(), "dwell", G_TYPE_UINT64, ns(event.dwell), nullptr);
  }
  return made;
}

GstPtr<GstStructure> stats_structure(const ZoneFrame& frame) {
  GstPtr<GstStructure> made(gst_structure_new_empty("penstock-zones"));
  List zones, lines;
  for (const ZoneState& zone : frame.zones) {
    GstStructure* entry = gst_structure_new(
        "penstock-zone", "name", G_TYPE_STRING, zone.name.c_str(), "inside", G_TYPE_UINT64,
        guint64(zone.inside), "entered", G_TYPE_UINT64, guint64(zone.entered), "left",
        G_TYPE_UINT64, guint64(zone.left), "longest-dwell", G_TYPE_UINT64, ns(zone.longest_dwell),
        "total-dwell", G_TYPE_UINT64, ns(zone.total_dwell), nullptr);
    set_labels(entry, "inside-labels", zone.inside_labels);
    zones.add(entry);
  }
  for (const LineState& line : frame.lines) {
    GstStructure* entry = gst_structure_new(
        "penstock-line", "name", G_TYPE_STRING, line.name.c_str(), "forwards", G_TYPE_UINT64,
        guint64(line.forwards), "backwards", G_TYPE_UINT64, guint64(line.backwards), nullptr);
    set_labels(entry, "forward-labels", line.forward_labels);
    set_labels(entry, "backward-labels", line.backward_labels);
    lines.add(entry);
  }
  zones.become(made.get(), "zones");
  lines.become(made.get(), "lines");
  return made;
}

}  // namespace penstock::gst
