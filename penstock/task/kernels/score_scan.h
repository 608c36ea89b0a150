// SPDX-License-Identifier: Apache-2.0
//
// The pass over a detector's class scores: nearly all positions have no score at the threshold, and
// the pass is bound by memory, so it only asks whether any class gets there. Host kernel,
// dispatched at run time to the best vector instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock {

/// Appends the positions, ascending, of which some class score is >= `threshold`; `scores` has
/// `classes` values a position. May also report positions that have only an infinite one there; NaN
/// never counts.
void scan_scores(std::span<const float> scores, std::size_t classes, float threshold,
                 std::vector<std::int32_t>& positions);

struct BestClass {
  std::int32_t class_id = -1;  ///< -1: no finite score.
  float score = 0;
};
/// The highest finite score, the first of equals.
BestClass best_class(std::span<const float> scores);

}  // namespace penstock
