// SPDX-License-Identifier: Apache-2.0
//
// Findings as GstAnalytics relations, which stock elements (objectdetectionoverlay, ioutracker) and
// language bindings read (contract G01).
#pragma once

#include <gst/gst.h>

#include "penstock/base/error.h"
#include "penstock/records/records.h"

namespace penstock::gst {

/// Adds to the buffer's relation meta (made if absent, also for none: "analysed, nothing found"):
/// - one object detection an object, in order. Edges are rounded to whole pixels, so that touching
///   boxes stay touching; a box keeps at least one pixel. An oriented object's is its box before it
///   is turned, with the angle in 0..2 pi, clockwise as seen.
/// - behind each object with keypoints two records that are part of it, and that it contains: the
///   keypoints of keypoints_mtd.h, and a float32 tensor [keypoints, 3] with id "penstock-keypoints"
///   whose rows are x, y and confidence. There x and y are parts of the frame's width and height,
///   so that they stay true when the frame is scaled, which changes no tensor.
/// - one classification with all classes of the whole picture, if there are any.
/// Metadata of `buffer` is writable.
Result<void> attach_relations(GstBuffer* buffer, const FrameResult& result);

inline constexpr const char* kKeypointsTensor = "penstock-keypoints";

}  // namespace penstock::gst
