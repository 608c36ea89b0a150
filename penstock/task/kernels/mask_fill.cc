// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/kernels/mask_fill.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/task/kernels/mask_fill.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"
// After highway.h.
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Bytes = hn::Rebind<std::uint8_t, Floats>;

hn::Vec<Bytes> levels(hn::Vec<Floats> logits) {
  const Floats d;
  // Beyond this the level is 0 or 255 anyway, and e^-x stays finite.
  const auto limit = hn::Set(d, 40.0f);
  const auto x = hn::Max(hn::Min(logits, limit), hn::Neg(limit));
  const auto chance = hn::Div(hn::Set(d, 255.0f), hn::Add(hn::Set(d, 1.0f), hn::Exp(d, hn::Neg(x))));
  const auto rounded = hn::Add(chance, hn::Set(d, 0.5f));
  const auto number = hn::IfThenZeroElse(hn::IsNaN(logits), rounded);
  return hn::DemoteTo(Bytes(), hn::ConvertTo(hn::RebindToSigned<Floats>(), number));
}

// `pixels` pixels of one row. Four vectors at once, so that a pixel's sum stays in a register.
void fill_row(const float* prototypes, std::size_t plane, std::span<const float> coefficients,
              std::size_t pixels, std::uint8_t* mask) {
  const Floats d;
  const Bytes bytes;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t x = 0;
  for (; x + 4 * lanes <= pixels; x += 4 * lanes) {
    auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
    const float* at = prototypes + x;
    for (const float coefficient : coefficients) {
      const auto weight = hn::Set(d, coefficient);
      a = hn::MulAdd(hn::LoadU(d, at), weight, a);
      b = hn::MulAdd(hn::LoadU(d, at + lanes), weight, b);
      c = hn::MulAdd(hn::LoadU(d, at + 2 * lanes), weight, c);
      e = hn::MulAdd(hn::LoadU(d, at + 3 * lanes), weight, e);
      at += plane;
    }
    hn::StoreU(levels(a), bytes, mask + x);
    hn::StoreU(levels(b), bytes, mask + x + lanes);
    hn::StoreU(levels(c), bytes, mask + x + 2 * lanes);
    hn::StoreU(levels(e), bytes, mask + x + 3 * lanes);
  }
  for (; x < pixels; x += lanes) {
    const std::size_t left = std::min(lanes, pixels - x);
    auto sum = hn::Zero(d);
    const float* at = prototypes + x;
    for (const float coefficient : coefficients) {
      sum = hn::MulAdd(hn::LoadN(d, at, left), hn::Set(d, coefficient), sum);
      at += plane;
    }
    hn::StoreN(levels(sum), bytes, mask + x, left);
  }
}

void fill_window_target(const Prototypes& prototypes, std::span<const float> coefficients,
                        const MaskWindow& window, std::uint8_t* mask) {
  const std::size_t plane = prototypes.width * prototypes.height;
  for (std::size_t y = window.y0; y < window.y1; ++y) {
    const std::size_t first = y * prototypes.width + window.x0;
    fill_row(prototypes.values.data() + first, plane, coefficients, window.x1 - window.x0,
             mask + first);
  }
}

}  // namespace penstock::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock {
namespace {

/// The first of `count` pixels whose centre is at or behind `edge`.
std::size_t first_centre_from(float edge, std::size_t count) {
  const float pixel = std::ceil(edge - 0.5f);
  if (!(pixel > 0.0f)) return 0;
  return pixel < static_cast<float>(count) ? static_cast<std::size_t>(pixel) : count;
}

}  // namespace

MaskWindow mask_window(const MaskBox& box, std::size_t width, std::size_t height) {
  return {.x0 = first_centre_from(box.x0, width),
          .y0 = first_centre_from(box.y0, height),
          .x1 = first_centre_from(box.x1, width),
          .y1 = first_centre_from(box.y1, height)};
}

HWY_EXPORT(fill_window_target);

void fill_mask(const Prototypes& prototypes, std::span<const float> coefficients,
               const MaskWindow& window, std::span<std::uint8_t> mask) {
  std::ranges::fill(mask, std::uint8_t{0});
  if (window.x0 >= window.x1 || window.y0 >= window.y1) return;
  HWY_DYNAMIC_DISPATCH(fill_window_target)(prototypes, coefficients, window, mask.data());
}

}  // namespace penstock
#endif  // HWY_ONCE
