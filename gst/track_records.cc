// SPDX-License-Identifier: Apache-2.0
#include "gst/track_records.h"

#include <gst/analytics/analytics.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "gst/analysis_relations.h"
#include "gst/object_records.h"
#include "gst/penanalysis_meta.h"

namespace penstock::gst {
namespace {

bool add_predicted(GstAnalyticsRelationMeta* meta, const Detection& object,
                   GstAnalyticsODMtd& added) {
  const RecordBox box = record_box(object);
  return gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string(object.label.c_str()),
                                                box.x, box.y, box.width, box.height,
                                                object.confidence, &added) != FALSE;
}

bool add_track(GstAnalyticsRelationMeta* meta, guint object, std::int64_t id,
               const TrackTimes& times) {
  GstAnalyticsTrackingMtd track;
  return gst_analytics_relation_meta_add_tracking_mtd(
             meta, static_cast<guint64>(id), static_cast<GstClockTime>(times.first_seen.count()),
             &track) != FALSE &&
         gst_analytics_tracking_mtd_update_last_seen(
             &track, static_cast<GstClockTime>(times.last_seen.count())) != FALSE &&
         gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, object,
                                                  track.id) != FALSE;
}

Result<void> add_tracks(GstAnalyticsRelationMeta* meta, std::span<const GstAnalyticsODMtd> records,
                        std::span<const Detection> objects, std::span<const TrackTimes> times) {
  bool added = true;
  for (std::size_t i = 0; added && i < objects.size(); ++i) {
    if (objects[i].track_id == 0) continue;
    GstAnalyticsODMtd record;
    if (i < records.size()) {
      record = records[i];
    } else {
      added = add_predicted(meta, objects[i], record);
    }
    added = added && add_track(meta, record.id, objects[i].track_id, times[i]);
  }
  if (added) return {};
  return fail(ErrorKind::kExhausted, "the buffer's analytics metadata takes no more records");
}

FrameResult without_findings(const FrameResult& result) {
  FrameResult about;
  about.source = result.source;
  about.frame = result.frame;
  about.generation = result.generation;
  return about;
}

/// For a frame that nobody looked at.
Result<void> add_predictions(Tracker& tracker, TrackedStream& stream, GstBuffer* buffer,
                             const TrackedPicture& picture) {
  if (stream.about) ++stream.about->frame;
  std::vector<Detection> objects = tracker.predict(picture);
  if (objects.empty()) return {};
  PENSTOCK_TRY(
      add_tracks(gst_buffer_add_analytics_relation_meta(buffer), {}, objects, tracker.times()));
  if (!stream.about) return {};
  auto analysis = std::make_shared<Analysis>();
  analysis->result = *stream.about;
  // GST_CLOCK_TIME_NONE becomes -1.
  analysis->result.pts_ns = static_cast<std::int64_t>(GST_BUFFER_PTS(buffer));
  analysis->result.width = picture.width;
  analysis->result.height = picture.height;
  analysis->result.objects = std::move(objects);
  analysis->predicted = true;
  attach_analysis(buffer, std::move(analysis));
  return {};
}

}  // namespace

Result<void> track_records(Tracker& tracker, TrackedStream& stream, GstBuffer* buffer,
                           const TrackedPicture& picture) {
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  if (meta == nullptr) return add_predictions(tracker, stream, buffer, picture);
  const std::vector<GstAnalyticsODMtd> records = object_records(meta);
  const Analysis* analysis = read_analysis(buffer);
  std::shared_ptr<Analysis> tracked;
  std::vector<Detection> objects;
  if (analysis != nullptr && are_records_of(records, analysis->result.objects)) {
    // Others may share it.
    tracked = std::make_shared<Analysis>(*analysis);
    objects = std::move(tracked->result.objects);
  } else {
    objects.reserve(records.size());
    for (const GstAnalyticsODMtd& record : records) objects.push_back(read_object(record));
  }
  objects = tracker.update(std::move(objects), picture);
  PENSTOCK_TRY(add_tracks(meta, records, objects, tracker.times()));
  stream.about.reset();
  if (tracked == nullptr) return {};
  stream.about = without_findings(tracked->result);
  tracked->result.objects = std::move(objects);
  replace_analysis(buffer, std::move(tracked));
  return {};
}

}  // namespace penstock::gst
