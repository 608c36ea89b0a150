// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/kernels/score_scan.h"

#include <algorithm>
#include <cmath>

#include "penstock/base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/task/kernels/score_scan.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Compares instead of taking a maximum: a vector maximum loses what it held when a NaN passes by.
void scan_rows_target(const float* scores, std::size_t count, std::size_t width,
                      std::size_t classes, float threshold, std::vector<std::int32_t>& positions) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto limit = hn::Set(d, threshold);
  constexpr std::size_t kAhead = 16;  // Rows, so that memory has answered when they are due.
  for (std::size_t position = 0; position < count; ++position, scores += width) {
    if (classes < width && position + kAhead < count) hwy::Prefetch(scores + kAhead * width);
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

// The highest first, then where it is.
BestClass best_class_target(const float* scores, std::size_t count) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto none = hn::Inf(d);
  auto top = hn::Neg(none);
  std::size_t c = 0;
  for (; c + lanes <= count; c += lanes) {
    const auto score = hn::LoadU(d, scores + c);
    top = hn::Max(top, hn::IfThenElse(hn::IsFinite(score), score, hn::Neg(none)));
  }
  float best = hn::ReduceMax(d, top);
  for (; c < count; ++c) {
    if (std::isfinite(scores[c]) && scores[c] > best) best = scores[c];
  }
  if (std::isinf(best)) return {};
  const float* const found = std::find(scores, scores + count, best);
  return {static_cast<std::int32_t>(found - scores), *found};
}

// A class's line after the other, so that memory is read in long stretches; what was reached stays
// in the first-level cache.
void scan_columns_target(const float* lines, std::size_t stride, std::size_t classes,
                         std::size_t count, float threshold, std::vector<std::int32_t>& positions) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto limit = hn::Set(d, threshold);
  const auto one = hn::Set(d, 1.0f);
  HWY_ALIGN float reached[kScanBlock];
  std::fill_n(reached, count, 0.0f);
  const std::size_t whole = count - count % lanes;
  for (std::size_t c = 0; c < classes; ++c) {
    const float* line = lines + c * stride;
    for (std::size_t i = 0; i < whole; i += lanes) {
      const auto is =
          hn::IfThenElse(hn::Ge(hn::LoadU(d, line + i), limit), one, hn::Load(d, reached + i));
      hn::Store(is, d, reached + i);
    }
    for (std::size_t i = whole; i < count; ++i) {
      if (line[i] >= threshold) reached[i] = 1.0f;
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (reached[i] != 0.0f) positions.push_back(static_cast<std::int32_t>(i));
  }
}

}  // namespace penstock::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock {

HWY_EXPORT(scan_rows_target);
HWY_EXPORT(scan_columns_target);
HWY_EXPORT(best_class_target);

void scan_scores(std::span<const float> scores, std::size_t classes, float threshold,
                 std::vector<std::int32_t>& positions) {
  scan_rows(scores, classes, 0, classes, threshold, positions);
}

void scan_rows(std::span<const float> values, std::size_t width, std::size_t offset,
               std::size_t classes, float threshold, std::vector<std::int32_t>& positions) {
  if (classes == 0) return;
  HWY_DYNAMIC_DISPATCH(scan_rows_target)
  (values.data() + offset, values.size() / width, width, classes, threshold, positions);
}

void scan_columns(const float* lines, std::size_t stride, std::size_t classes, std::size_t count,
                  float threshold, std::vector<std::int32_t>& positions) {
  HWY_DYNAMIC_DISPATCH(scan_columns_target)
  (lines, stride, classes, count, threshold, positions);
}

BestClass best_class(std::span<const float> scores) {
  return HWY_DYNAMIC_DISPATCH(best_class_target)(scores.data(), scores.size());
}

}  // namespace penstock
#endif  // HWY_ONCE
