// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/kernels/widen_half.h"

#include "penstock/base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/task/kernels/widen_half.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void widen_half_target(const std::uint16_t* halves, std::size_t count, float* floats) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<std::uint16_t, decltype(df)> du16;
  const hn::Rebind<hwy::float16_t, decltype(df)> df16;
  const std::size_t lanes = hn::Lanes(df);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::PromoteTo(df, hn::BitCast(df16, hn::LoadU(du16, halves + i))), df, floats + i);
  }
  if (i == count) return;
  const auto last = hn::LoadN(du16, halves + i, count - i);
  hn::StoreN(hn::PromoteTo(df, hn::BitCast(df16, last)), df, floats + i, count - i);
}

}  // namespace penstock::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock {

HWY_EXPORT(widen_half_target);

void widen_half(const std::uint16_t* halves, std::size_t count, float* floats) {
  HWY_DYNAMIC_DISPATCH(widen_half_target)(halves, count, floats);
}

}  // namespace penstock
#endif  // HWY_ONCE
