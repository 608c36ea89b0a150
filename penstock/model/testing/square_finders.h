// SPDX-License-Identifier: Apache-2.0
//
// The square finder of test_models.h with the output layouts of the detector families: networks
// that really find squares, for tests of a family from frame to box. Tests only.
#pragma once

#include <string_view>

#include "penstock/model/testing/test_models.h"

namespace penstock::model_testing {

enum class BoxLayout {
  kYolov5,         ///< [N, rows, 5 + 3]
  kYolov8,         ///< [N, 4 + 3, rows]
  kEndToEnd,       ///< [N, rows, 6]
  kYolox,          ///< [N, cells, 5 + 3], grid not applied
  kRtdetr,         ///< [N, rows, 4 + 3]
  kRtdetrLogits,   ///< logits [N, rows, 3] and boxes [N, rows, 4]
  kSsdList,        ///< [1, 1, rows, 7]
  kSsdFour,        ///< boxes [N, rows, 4], classes and scores [N, rows], count [N]
  kYolov8Seg,      ///< [N, 4 + 3 + 4, rows] and prototypes [N, 4, size / 4, size / 4]
  kEndToEndSeg,    ///< [N, rows, 6 + 4] and the same prototypes
  kYolov8Pose,     ///< [N, 4 + 3 + 5 x 3, rows]
  kEndToEndPose,   ///< [N, rows, 6 + 5 x 2]
  kYolov8Obb,      ///< [N, 4 + 3 + 1, rows], all angles 0
  kEndToEndObb,    ///< [N, rows, 7], likewise
  kMovenetSingle,  ///< [N, 1, 17, 3], one class
  kMovenetMulti    ///< [N, 6, 56], one class
};
std::string_view to_string(BoxLayout layout);

/// Model pixels that a layout's boxes reach beyond the square on each side: with masks, so that a
/// mask is not just its box.
float box_margin(BoxLayout layout);

/// Of a layout's objects: a grid of 2 x 2 or 4 x 4 over the square, edges included, and its centre.
int keypoints_of(BoxLayout layout);
struct KeypointPlace {
  float x, y;  ///< Parts of the square's side from its top-left corner.
};
KeypointPlace keypoint_place(int keypoints, int k);
/// Confidence of kYolov8Pose's keypoints; kEndToEndPose's have none.
inline constexpr float kKeypointConfidence = 0.625f;

/// `size` is a multiple of 32. SSD lists take a batch of one. Masks are the square, from the
/// picture.
TestModel make_square_finder(BoxLayout layout, int size);

}  // namespace penstock::model_testing
