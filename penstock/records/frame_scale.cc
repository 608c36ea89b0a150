// SPDX-License-Identifier: Apache-2.0
#include "penstock/records/frame_scale.h"

#include <cmath>

namespace penstock {
namespace {

float times(float value, double factor) {
  return static_cast<float>(static_cast<double>(value) * factor);
}

}  // namespace

FrameScale scale_between(int from_width, int from_height, int to_width, int to_height) {
  return {.x = static_cast<double>(to_width) / from_width,
          .y = static_cast<double>(to_height) / from_height};
}

Keypoint scaled(Keypoint point, FrameScale scale) {
  point.x = times(point.x, scale.x);
  point.y = times(point.y, scale.y);
  return point;
}

RotatedBox scaled(const RotatedBox& box, FrameScale scale) {
  RotatedBox result = box;
  result.center_x = times(box.center_x, scale.x);
  result.center_y = times(box.center_y, scale.y);
  if (scale.x == scale.y) {  // The angle stays as it is, to the last bit.
    result.width = times(box.width, scale.x);
    result.height = times(box.height, scale.y);
    return result;
  }
  const double x = std::cos(static_cast<double>(box.angle)) * scale.x;
  const double y = std::sin(static_cast<double>(box.angle)) * scale.y;
  const double stretch = std::hypot(x, y);
  result.width = times(box.width, stretch);
  result.height = times(box.height, scale.x * scale.y / stretch);
  result.angle = static_cast<float>(std::atan2(y, x));
  return result;
}

void rescale(Detection& object, FrameScale scale) {
  object.x = times(object.x, scale.x);
  object.y = times(object.y, scale.y);
  object.width = times(object.width, scale.x);
  object.height = times(object.height, scale.y);
  for (Keypoint& point : object.keypoints) point = scaled(point, scale);
  if (object.rotated) object.rotated = scaled(*object.rotated, scale);
}

}  // namespace penstock
