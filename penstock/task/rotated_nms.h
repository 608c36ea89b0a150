// SPDX-License-Identifier: Apache-2.0
//
// Non-maximum suppression of turned boxes: order, classes and limits are those of nms.h, the shared
// area is that of the polygons. Computed in double from the float32 records, no contraction.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "penstock/task/nms.h"
#include "penstock/task/output_decoder.h"

namespace penstock {

/// The area that two turned boxes share, at most the smaller's own; 0 for boxes that are not
/// finite.
double shared_area(const RotatedRecord& a, const RotatedRecord& b);

/// The smallest upright box around a turned one.
DetectionRecord upright_hull(const RotatedRecord& box, float score, std::int32_t class_id);

/// A candidate goes when shared > threshold * union with a kept one. `box_of` answers the turned
/// box of a candidate's index.
void rotated_non_maximum_suppression(
    std::vector<Candidate>& candidates, const DecodeOptions& options,
    const std::function<RotatedRecord(std::int32_t index)>& box_of);

}  // namespace penstock
