// SPDX-License-Identifier: Apache-2.0
//
// Positions in a frame of one size, told in pixels of the same picture at another size.
#pragma once

#include "penstock/records/records.h"

namespace penstock {

struct FrameScale {
  double x = 1, y = 1;  ///< New size / old size.
};

/// All four sides are at least 1.
FrameScale scale_between(int from_width, int from_height, int to_width, int to_height);

Keypoint scaled(Keypoint point, FrameScale scale);
/// Where the axes' scales differ, a turned box becomes a parallelogram: the result has its centre,
/// its side `width` and its area.
RotatedBox scaled(const RotatedBox& box, FrameScale scale);
/// Box, keypoints and turned box.
void rescale(Detection& object, FrameScale scale);

}  // namespace penstock
