// SPDX-License-Identifier: Apache-2.0
//
// BoxMotion: a Kalman filter of a box that moves at nearly constant speed. The four coordinates
// (centre, width, height) are filtered apart, each with its speed: a box says nothing of how they
// depend on one another. Noise is in parts of the box's height, so that near and far objects are
// treated alike. Units: pixels and frames.
#pragma once

#include <array>
#include <cstddef>

#include "penstock/records/records.h"

namespace penstock {

/// The corner and size of a box, pixels.
struct Box {
  float x = 0, y = 0, width = 0, height = 0;
};
float intersection_over_union(const Box& a, const Box& b);

class BoxMotion {
 public:
  explicit BoxMotion(const Box& box);

  /// One frame on. Speeds of sizes die away, so that a box without detections keeps its size.
  void predict();
  void correct(const Box& box);
  Box box() const;

 private:
  /// One coordinate: value, speed and their covariance.
  struct Axis {
    float value = 0, speed = 0;
    float value_variance = 0, covariance = 0, speed_variance = 0;
  };
  float scale() const;

  std::array<Axis, 4> axes_;  ///< Centre x, centre y, width, height.
};

}  // namespace penstock
