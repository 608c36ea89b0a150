// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/kernels/score_scan.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/task/kernels/score_scan.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Compares instead of taking a maximum: a vector maximum loses what it held when a NaN passes by.
void scan_scores_target(const float* scores, std::size_t count, std::size_t classes,
                        float threshold, std::vector<std::int32_t>& positions) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto limit = hn::Set(d, threshold);
  for (std::size_t position = 0; position < count; ++position, scores += classes) {
    auto reached = hn::MaskFalse(d);
    std::size_t c = 0;
    for (; c + lanes <= classes; c += lanes) {
      reached = hn::Or(reached, hn::Ge(hn::LoadU(d, scores + c), limit));
    }
    bool any = !hn::AllFalse(d, reached);
    for (; c < classes; ++c) any |= scores[c] >= threshold;
    if (any) positions.push_back(static_cast<std::int32_t>(position));
  }
}

}  // namespace penstock::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock {

HWY_EXPORT(scan_scores_target);

void scan_scores(std::span<const float> scores, std::size_t classes, float threshold,
                 std::vector<std::int32_t>& positions) {
  if (classes == 0) return;
  HWY_DYNAMIC_DISPATCH(scan_scores_target)
  (scores.data(), scores.size() / classes, classes, threshold, positions);
}

BestClass best_class(std::span<const float> scores) {
  BestClass best;
  for (std::size_t c = 0; c < scores.size(); ++c) {
    if (!std::isfinite(scores[c])) continue;
    if (best.class_id >= 0 && scores[c] <= best.score) continue;
    best = {static_cast<std::int32_t>(c), scores[c]};
  }
  return best;
}

}  // namespace penstock
#endif  // HWY_ONCE
