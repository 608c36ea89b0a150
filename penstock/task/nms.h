// SPDX-License-Identifier: Apache-2.0
//
// Greedy non-maximum suppression (contract P01): candidates ordered by score descending then index
// ascending, class-aware unless told otherwise; a candidate goes when inter > threshold * union
// with a kept one (fp32, no contraction). At most kPreNmsLimit candidates enter, at most
// `max_objects` leave.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "penstock/task/output_decoder.h"

namespace penstock {

inline constexpr int kPreNmsLimit = 30000;

struct Candidate {
  DetectionRecord record;
  std::int32_t index = 0;  ///< Position in the model's output, the tie-break.
};

/// The order that results have: score descending, index ascending, lower class first. Candidates
/// whose score or corners are NaN or infinite are dropped, and what is behind kPreNmsLimit.
void order_candidates(std::vector<Candidate>& candidates);

/// Sorts and thins `candidates` in place; what remains is the result in order_candidates' order.
void non_maximum_suppression(std::vector<Candidate>& candidates, const DecodeOptions& options);

}  // namespace penstock
