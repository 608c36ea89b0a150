// SPDX-License-Identifier: Apache-2.0
//
// A network that measures a square wherever it lies, for tests of where findings land: unlike the
// finders (square_finders.h), whose boxes are their cells'. Tests only.
//
// A class's profile along an axis is its colour's largest share in each column or row. Its sum is
// the square's side in model pixels, its centre of mass the square's centre; pixels that an edge
// crosses count by their share. So a box is exact but for what sampling the picture loses: between
// samples that are s source pixels apart an edge may be anywhere, which is half a sample either
// way.
#pragma once

#include "penstock/model/testing/square_finders.h"

namespace penstock::model_testing {

/// kYolov5, kYolov8, kEndToEnd, kRtdetr, kYolov8Seg, kYolov8Pose or kYolov8Obb, with one row a
/// class. Masks are the square from the picture, within boxes of box_margin() more on each side.
TestModel make_square_measurer(BoxLayout layout, int size);

}  // namespace penstock::model_testing
