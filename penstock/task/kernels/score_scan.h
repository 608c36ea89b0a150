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

/// The same for rows of `width` values, of which the scores begin at `offset`.
void scan_rows(std::span<const float> values, std::size_t width, std::size_t offset,
               std::size_t classes, float threshold, std::vector<std::int32_t>& positions);

/// The same for scores that lie in columns: class c of position i is at lines[c * stride + i], for
/// positions 0..count-1, at most kScanBlock of them.
inline constexpr std::size_t kScanBlock = 1024;
void scan_columns(const float* lines, std::size_t stride, std::size_t classes, std::size_t count,
                  float threshold, std::vector<std::int32_t>& positions);

struct BestClass {
  std::int32_t class_id = -1;  ///< -1: no finite score.
  float score = 0;
};
/// The highest finite score, the first of equals.
BestClass best_class(std::span<const float> scores);

}  // namespace penstock
