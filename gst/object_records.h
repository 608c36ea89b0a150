// SPDX-License-Identifier: Apache-2.0
//
// The object records of a frame, whoever wrote them, as Detections.
#pragma once

#include <gst/analytics/analytics.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gst/penanalysis_meta.h"
#include "penstock/records/records.h"

namespace penstock::gst {

/// In the order of the meta.
std::vector<GstAnalyticsODMtd> object_records(GstAnalyticsRelationMeta* meta);

/// Box, label and confidence. A record has no class number, so the label stands for the class.
Detection read_object(const GstAnalyticsODMtd& record);

/// Of an oriented object, whose plain location is the upright hull; nothing for others.
std::optional<RotatedBox> read_turn(const GstAnalyticsODMtd& record);

/// The id of the track that the record is related to, nothing for none.
std::optional<guint64> read_track_id(const GstAnalyticsODMtd& record);

/// The records are those of `objects`, one by one: as many, with the same labels and the boxes that
/// record_box() says. Where another element has moved, named anew or exchanged one, they are not.
bool are_records_of(std::span<const GstAnalyticsODMtd> records, std::span<const Detection> objects);

/// A frame's objects with what belongs to each, by place.
struct FrameObjects {
  std::vector<GstAnalyticsODMtd> records;
  /// The frame's, if the records are those of its objects: then `objects` are its, in full
  /// precision, else as read_object() reads them.
  std::shared_ptr<const Analysis> analysis;
  std::vector<Detection> objects;
  std::vector<std::optional<guint64>> tracks;
};
/// None where the frame has no relation meta.
FrameObjects read_objects(GstBuffer* frame);

}  // namespace penstock::gst
