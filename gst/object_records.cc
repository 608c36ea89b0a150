// SPDX-License-Identifier: Apache-2.0
#include "gst/object_records.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gst/analysis_relations.h"

namespace penstock::gst {

std::vector<GstAnalyticsODMtd> object_records(GstAnalyticsRelationMeta* meta) {
  std::vector<GstAnalyticsODMtd> records;
  gpointer state = nullptr;
  GstAnalyticsMtd record;
  while (gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_od_mtd_get_mtd_type(),
                                             &record)) {
    records.push_back(record);
  }
  return records;
}

Detection read_object(const GstAnalyticsODMtd& record) {
  Detection object;
  const GQuark label = gst_analytics_od_mtd_get_obj_type(&record);
  object.class_id = static_cast<int>(label);
  if (const gchar* text = g_quark_to_string(label)) object.label = text;
  gint x = 0, y = 0, width = 0, height = 0;
  gst_analytics_od_mtd_get_location(&record, &x, &y, &width, &height, &object.confidence);
  object.x = static_cast<float>(x);
  object.y = static_cast<float>(y);
  object.width = static_cast<float>(width);
  object.height = static_cast<float>(height);
  return object;
}

std::optional<RotatedBox> read_turn(const GstAnalyticsODMtd& record) {
  gint x = 0, y = 0, width = 0, height = 0;
  gfloat angle = 0, confidence = 0;
  if (!gst_analytics_od_mtd_get_oriented_location(&record, &x, &y, &width, &height, &angle,
                                                  &confidence) ||
      angle == 0) {
    return std::nullopt;
  }
  return RotatedBox{.center_x = static_cast<float>(x) + static_cast<float>(width) / 2,
                    .center_y = static_cast<float>(y) + static_cast<float>(height) / 2,
                    .width = static_cast<float>(width),
                    .height = static_cast<float>(height),
                    .angle = angle};
}

std::optional<guint64> read_track_id(const GstAnalyticsODMtd& record) {
  gpointer state = nullptr;
  GstAnalyticsTrackingMtd track;
  guint64 id = 0;
  GstClockTime first_seen = 0, last_seen = 0;
  gboolean lost = FALSE;
  if (gst_analytics_relation_meta_get_direct_related(
          record.meta, record.id, GST_ANALYTICS_REL_TYPE_RELATE_TO,
          gst_analytics_tracking_mtd_get_mtd_type(), &state, &track) &&
      gst_analytics_tracking_mtd_get_info(&track, &id, &first_seen, &last_seen, &lost)) {
    return id;
  }
  return std::nullopt;
}

bool are_records_of(std::span<const GstAnalyticsODMtd> records,
                    std::span<const Detection> objects) {
  return std::ranges::equal(
      records, objects, [](const GstAnalyticsODMtd& record, const Detection& object) {
        RecordBox box;
        gfloat confidence = 0;
        const gchar* label = g_quark_to_string(gst_analytics_od_mtd_get_obj_type(&record));
        return label != nullptr && object.label == label &&
               gst_analytics_od_mtd_get_oriented_location(&record, &box.x, &box.y, &box.width,
                                                          &box.height, &box.angle, &confidence) &&
               box == record_box(object);
      });
}

FrameObjects read_objects(GstBuffer* frame) {
  FrameObjects read;
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(frame);
  if (meta == nullptr) return read;
  read.records = object_records(meta);
  read.analysis = share_analysis(frame);
  if (read.analysis != nullptr && !are_records_of(read.records, read.analysis->result.objects)) {
    read.analysis.reset();
  }
  if (read.analysis != nullptr) read.objects = read.analysis->result.objects;
  for (std::size_t i = 0; i < read.records.size(); ++i) {
    if (read.analysis == nullptr) read.objects.push_back(read_object(read.records[i]));
    const std::int64_t own = read.objects[i].track_id;
    read.tracks.push_back(own != 0 ? std::optional(static_cast<guint64>(own))
                                   : read_track_id(read.records[i]));
  }
  return read;
}

}  // namespace penstock::gst
