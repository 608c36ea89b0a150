// SPDX-License-Identifier: Apache-2.0
//
// Compiled with -ffp-contract=off: a fused multiply-add in `threshold * union` or in an area would
// move boxes at the threshold, and the result must be the same on every device.
#include "penstock/task/nms.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace penstock {
namespace {

bool is_finite(const DetectionRecord& r) {
  return std::isfinite(r.score) && std::isfinite(r.x0) && std::isfinite(r.y0) &&
         std::isfinite(r.x1) && std::isfinite(r.y1);
}

// A total order: one position of the output can put forward several classes.
bool before(const Candidate& a, const Candidate& b) {
  if (a.record.score != b.record.score) return a.record.score > b.record.score;
  if (a.index != b.index) return a.index < b.index;
  return a.record.class_id < b.record.class_id;
}

float area(const DetectionRecord& r) { return (r.x1 - r.x0) * (r.y1 - r.y0); }

bool overlaps(const DetectionRecord& a, const DetectionRecord& b, float threshold) {
  const float width = std::max(0.0f, std::min(a.x1, b.x1) - std::max(a.x0, b.x0));
  const float height = std::max(0.0f, std::min(a.y1, b.y1) - std::max(a.y0, b.y0));
  const float inter = width * height;
  return inter > threshold * (area(a) + area(b) - inter);
}

}  // namespace

void order_candidates(std::vector<Candidate>& candidates) {
  std::erase_if(candidates, [](const Candidate& c) { return !is_finite(c.record); });
  if (candidates.size() > kPreNmsLimit) {
    std::ranges::nth_element(candidates, candidates.begin() + kPreNmsLimit, before);
    candidates.resize(kPreNmsLimit);
  }
  std::ranges::sort(candidates, before);
}

void non_maximum_suppression(std::vector<Candidate>& candidates, const DecodeOptions& options) {
  order_candidates(candidates);
  const auto limit = static_cast<std::size_t>(std::clamp(options.max_objects, 0, kMaxDetections));
  if (options.iou_threshold >= 1.0f) {
    // No part is larger than the whole: nothing suppresses anything.
    if (candidates.size() > limit) candidates.resize(limit);
    return;
  }
  // Kept candidates move to the front: [0, kept) is the result so far.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < candidates.size() && kept < limit; ++i) {
    const DetectionRecord& record = candidates[i].record;
    const bool suppressed = std::any_of(
        candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(kept),
        [&](const Candidate& winner) {
          return (options.class_agnostic || winner.record.class_id == record.class_id) &&
                 overlaps(winner.record, record, options.iou_threshold);
        });
    if (!suppressed) candidates[kept++] = candidates[i];
  }
  candidates.resize(kept);
}

}  // namespace penstock
