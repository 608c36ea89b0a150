// SPDX-License-Identifier: Apache-2.0
//
// Regions of a probability map: pixels that touch one another, corners included, and the smallest
// turned box around each. All numbers are in pixels of the map; pixel (x, y) covers x..x+1, y..y+1.
//
//   for (const TextRegion& region : find_text_regions({values, width, height}, 0.3f)) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "penstock/task/output_decoder.h"

namespace penstock {

struct ProbabilityMap {
  std::span<const float> values;  ///< Row-major, width x height.
  std::size_t width = 0, height = 0;
};

struct TextRegion {
  /// The angle is in -pi/4..pi/4, so that `width` runs more across than down. An upright box is
  /// taken unless a turned one is smaller.
  RotatedRecord box{};
};

/// In the order of their first pixels, row by row. Pixels that are not finite belong to none.
/// Regions whose box has a side below 3 are noise and left out; of the others the first
/// kMostTextRegions are taken. Work and memory are linear in the map's pixels, but for a hull's
/// corners times one another.
constexpr std::size_t kMostTextRegions = 1000;
std::vector<TextRegion> find_text_regions(const ProbabilityMap& map, float pixel_threshold);

/// Of each box, whose numbers are finite, the mean of the finite pixels whose centre lies in it; 0
/// where there is none. A pixel is looked at once however many boxes it lies in, and a row of a box
/// costs its logarithm: boxes within boxes are no more work than others. `work`, where given, is
/// what was added up: pixels, and sums of them.
std::vector<float> means_inside(const ProbabilityMap& map, std::span<const RotatedRecord> boxes,
                                std::uint64_t* work = nullptr);

}  // namespace penstock
