// SPDX-License-Identifier: Apache-2.0
//
// The keypoints of an object as a record of GstAnalyticsRelationMeta, until GStreamer 1.30 has a
// type for them (contract G01). A private type: other programs read the tensor of
// analysis_relations.h beside it, which says the same.
//
//   GstAnalyticsMtd part;
//   gpointer state = nullptr;
//   while (gst_analytics_relation_meta_get_direct_related(meta, object.id,
//              GST_ANALYTICS_REL_TYPE_CONTAIN, keypoints_mtd_type(), &state, &part)) {
//     const auto keypoints = read_keypoints(part);
//   }
//
// The record's bytes: uint32 number of keypoints, uint32 width and height of the frame, then for
// each keypoint float x, y and confidence. A scaled frame keeps the record as it is, with the size
// that its positions are of; behind elements that crop, flip or turn frames it is not true any
// more.
#pragma once

#include <gst/analytics/analytics.h>

#include <optional>
#include <vector>

#include "penstock/records/records.h"

namespace penstock::gst {

struct ObjectKeypoints {
  int frame_width = 0, frame_height = 0;  ///< Of the frame that was analysed.
  std::vector<Keypoint> keypoints{};      ///< In its pixels, in the model's order.
};

/// "penstock-keypoints".
__attribute__((visibility("default"))) GstAnalyticsMtdType keypoints_mtd_type();

/// Nothing when `mtd` is of another type.
__attribute__((visibility("default"))) std::optional<ObjectKeypoints> read_keypoints(
    const GstAnalyticsMtd& mtd);

/// False when the meta takes no more records.
bool add_keypoints(GstAnalyticsRelationMeta* meta, const ObjectKeypoints& keypoints,
                   GstAnalyticsMtd& added);

}  // namespace penstock::gst
