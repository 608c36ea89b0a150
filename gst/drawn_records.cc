// SPDX-License-Identifier: Apache-2.0
#include "gst/drawn_records.h"

#include <gst/analytics/analytics.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "gst/keypoints_mtd.h"
#include "gst/object_records.h"
#include "gst/zone_messages.h"

namespace penstock::gst {
namespace {

/// Secondary classifications are looked for behind so many objects.
constexpr std::size_t kMostRelated = 300;

void read_points(const GstAnalyticsODMtd& record, int width, int height, Detection& object) {
  gpointer state = nullptr;
  GstAnalyticsMtd part;
  if (!gst_analytics_relation_meta_get_direct_related(record.meta, record.id,
                                                      GST_ANALYTICS_REL_TYPE_CONTAIN,
                                                      keypoints_mtd_type(), &state, &part)) {
    return;
  }
  auto read = read_keypoints(part);
  if (!read || read->frame_width < 1 || read->frame_height < 1) return;
  object.keypoints = std::move(read->keypoints);
  const float x_scale = static_cast<float>(width) / static_cast<float>(read->frame_width);
  const float y_scale = static_cast<float>(height) / static_cast<float>(read->frame_height);
  for (Keypoint& point : object.keypoints) {
    point.x *= x_scale;
    point.y *= y_scale;
  }
}

void read_track(const GstAnalyticsODMtd& record, Detection& object) {
  constexpr auto kMost = static_cast<guint64>(std::numeric_limits<std::int64_t>::max());
  const auto id = read_track_id(record);
  if (id && *id < kMost) object.track_id = static_cast<std::int64_t>(*id) + kTrackIdOffset;
}

bool is_of_an_object(const GstAnalyticsMtd& classes,
                     const std::vector<GstAnalyticsODMtd>& records) {
  return std::ranges::any_of(records, [&](const GstAnalyticsODMtd& record) {
    return gst_analytics_relation_meta_get_relation(classes.meta, record.id, classes.id) !=
               GST_ANALYTICS_REL_TYPE_NONE ||
           gst_analytics_relation_meta_get_relation(classes.meta, classes.id, record.id) !=
               GST_ANALYTICS_REL_TYPE_NONE;
  });
}

std::vector<Classification> read_classes(GstAnalyticsRelationMeta* meta,
                                         std::vector<GstAnalyticsODMtd> records) {
  records.resize(std::min(records.size(), kMostRelated));
  std::vector<Classification> classes;
  gpointer state = nullptr;
  GstAnalyticsMtd record;
  while (classes.empty() && gst_analytics_relation_meta_iterate(
                                meta, &state, gst_analytics_cls_mtd_get_mtd_type(), &record)) {
    if (is_of_an_object(record, records)) continue;
    const gsize count = gst_analytics_cls_mtd_get_length(&record);
    for (gsize i = 0; i < count; ++i) {
      Classification& found = classes.emplace_back();
      found.confidence = gst_analytics_cls_mtd_get_level(&record, i);
      const gchar* text = g_quark_to_string(gst_analytics_cls_mtd_get_quark(&record, i));
      if (text != nullptr) found.label = text;
    }
  }
  return classes;
}

std::optional<OverlayMasks> masks_of(const Analysis& analysis) {
  const DeviceFindings& device = analysis.device;
  if (!device.masks && !device.class_map) return std::nullopt;
  OverlayMasks masks{
      .masks = device.masks, .class_map = device.class_map, .letterbox = device.letterbox};
  for (const ClassArea& area : analysis.result.areas) {
    if (area.label == "background" && area.class_id >= 0 && area.class_id <= 255) {
      masks.background = static_cast<std::uint8_t>(area.class_id);
    }
  }
  return masks;
}

}  // namespace

DrawnRecords read_drawn(GstBuffer* buffer, int width, int height) {
  DrawnRecords drawn;
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  std::vector<GstAnalyticsODMtd> records;
  if (meta != nullptr) records = object_records(meta);
  const auto analysis = share_analysis(buffer);
  const bool is_same =
      analysis != nullptr && (meta == nullptr || are_records_of(records, analysis->result.objects));
  const std::size_t found = is_same ? analysis->result.objects.size() : records.size();
  drawn.left_out = found - std::min(found, kMaxDrawCommands);
  records.resize(std::min(records.size(), kMaxDrawCommands));
  if (analysis != nullptr) {
    drawn.zones = analysis->result.zones;
    drawn.lines = analysis->result.lines;
  }
  if (is_same) {
    const auto& objects = analysis->result.objects;
    drawn.objects.assign(objects.begin(), objects.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                objects.size(), kMaxDrawCommands)));
    for (Detection& object : drawn.objects) {
      if (object.track_id > 0 && object.track_id < std::numeric_limits<std::int64_t>::max()) {
        object.track_id += kTrackIdOffset;
      }
    }
    drawn.masks = masks_of(*analysis);
    drawn.classes = analysis->result.classes;
  } else {
    for (const GstAnalyticsODMtd& record : records) {
      Detection& object = drawn.objects.emplace_back(read_object(record));
      object.rotated = read_turn(record);
      read_points(record, width, height, object);
    }
  }
  for (std::size_t i = 0; i < std::min(records.size(), drawn.objects.size()); ++i) {
    read_track(records[i], drawn.objects[i]);
  }
  if (drawn.classes.empty() && meta != nullptr) drawn.classes = read_classes(meta, records);
  return drawn;
}

}  // namespace penstock::gst
