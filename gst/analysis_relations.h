// SPDX-License-Identifier: Apache-2.0
//
// Findings as GstAnalytics relations, which stock elements (objectdetectionoverlay, ioutracker) and
// language bindings read (contract G01).
#pragma once

#include <gst/analytics/analytics.h>
#include <gst/gst.h>

#include <vector>

#include "penstock/base/error.h"
#include "penstock/records/records.h"

namespace penstock::gst {

/// An object's box as its record has it: edges rounded to whole pixels, so that touching boxes stay
/// touching, and at least one pixel. A turned box is the one before it is turned, with the angle in
/// 0..2 pi, clockwise as seen; another's angle is 0.
struct RecordBox {
  gint x = 0, y = 0, width = 1, height = 1;
  gfloat angle = 0;
  bool operator==(const RecordBox&) const = default;
};
RecordBox record_box(const Detection& object);

/// Adds to the buffer's relation meta (made if absent, also for none: "analysed, nothing found"):
/// - one object detection an object, in order, with its record_box().
/// - behind each object with keypoints two records that are part of it, and that it contains: the
///   keypoints of keypoints_mtd.h, and a float32 tensor [keypoints, 3] with id "penstock-keypoints"
///   whose rows are x, y and confidence. There x and y are parts of the frame's width and height,
///   so that they stay true when the frame is scaled, which changes no tensor.
/// - one classification with all classes of the whole picture, if there are any.
/// Metadata of `buffer` is writable.
Result<void> attach_relations(GstBuffer* buffer, const FrameResult& result);

/// The object's record alone, as attach_relations() adds it. False: there is no room.
bool add_object(GstAnalyticsRelationMeta* meta, const Detection& object, GstAnalyticsODMtd& added);

/// What a second stage adds to an object that has its record.
struct ObjectRecords {
  guint object = 0;  ///< Id of its record.
  const Attributes* attributes = nullptr;
  std::vector<Keypoint> keypoints{};  ///< In pixels of the frame.
};
/// Adds, each as part of the object, which contains it:
/// - one classification with all classes, if there are any, which the object is also related to as
///   RELATE_TO, where objectdetectionoverlay looks for it;
/// - a float32 tensor [values] with id "penstock-embedding", if there is one;
/// - its keypoints, if there are any, as attach_relations() does.
Result<void> attach_to_object(GstAnalyticsRelationMeta* meta, const FrameResult& about,
                              const ObjectRecords& added);
/// Adds an object that was found in the one with record `parent`, as part of it.
Result<void> attach_part(GstAnalyticsRelationMeta* meta, const FrameResult& about, guint parent,
                         const Detection& object);

inline constexpr const char* kEmbeddingTensor = "penstock-embedding";
inline constexpr const char* kKeypointsTensor = "penstock-keypoints";

}  // namespace penstock::gst
