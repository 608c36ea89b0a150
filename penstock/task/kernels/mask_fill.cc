// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/kernels/mask_fill.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "penstock/base/simd_targets.h"

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
  const auto chance =
      hn::Div(hn::Set(d, 255.0f), hn::Add(hn::Set(d, 1.0f), hn::Exp(d, hn::Neg(x))));
  const auto rounded = hn::Add(chance, hn::Set(d, 0.5f));
  const auto number = hn::IfThenZeroElse(hn::IsNaN(logits), rounded);
  return hn::DemoteTo(Bytes(), hn::ConvertTo(hn::RebindToSigned<Floats>(), number));
}

// sums += weights x the pixels of four prototypes, each `plane` behind the other.
void add_four(const float* prototypes, std::size_t plane, const float* weights, std::size_t pixels,
              float* sums) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  const auto a = hn::Set(d, weights[0]), b = hn::Set(d, weights[1]), c = hn::Set(d, weights[2]),
             e = hn::Set(d, weights[3]);
  std::size_t x = 0;
  for (; x + lanes <= pixels; x += lanes) {
    const float* at = prototypes + x;
    auto sum = hn::MulAdd(hn::LoadU(d, at), a, hn::LoadU(d, sums + x));
    sum = hn::MulAdd(hn::LoadU(d, at + plane), b, sum);
    sum = hn::MulAdd(hn::LoadU(d, at + 2 * plane), c, sum);
    sum = hn::MulAdd(hn::LoadU(d, at + 3 * plane), e, sum);
    hn::StoreU(sum, d, sums + x);
  }
  for (; x < pixels; ++x) {
    for (std::size_t m = 0; m < 4; ++m) sums[x] += weights[m] * prototypes[m * plane + x];
  }
}

void add_one(const float* prototype, float weight, std::size_t pixels, float* sums) {
  for (std::size_t x = 0; x < pixels; ++x) sums[x] += weight * prototype[x];
}

void write_levels(const float* sums, std::size_t pixels, std::uint8_t* mask) {
  const Floats d;
  const Bytes bytes;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t x = 0; x < pixels; x += lanes) {
    const std::size_t left = std::min(lanes, pixels - x);
    hn::StoreN(levels(hn::LoadN(d, sums + x, left)), bytes, mask + x, left);
  }
}

// The rows [y0, y1) of one mask.
void fill_rows(const Prototypes& prototypes, const MaskJob& job, std::size_t y0, std::size_t y1,
               std::vector<float>& sums) {
  const std::size_t plane = prototypes.width * prototypes.height;
  const std::size_t pixels = job.window.x1 - job.window.x0;
  const auto row_at = [&](std::size_t y) { return y * prototypes.width + job.window.x0; };
  std::fill_n(sums.begin(), (y1 - y0) * pixels, 0.0f);
  std::size_t m = 0;
  for (; m + 4 <= job.coefficients.size(); m += 4) {
    const float* first = prototypes.values.data() + m * plane;
    for (std::size_t y = y0; y < y1; ++y) {
      add_four(first + row_at(y), plane, job.coefficients.data() + m, pixels,
               sums.data() + (y - y0) * pixels);
    }
  }
  for (; m < job.coefficients.size(); ++m) {
    const float* first = prototypes.values.data() + m * plane;
    for (std::size_t y = y0; y < y1; ++y) {
      add_one(first + row_at(y), job.coefficients[m], pixels, sums.data() + (y - y0) * pixels);
    }
  }
  for (std::size_t y = y0; y < y1; ++y) {
    write_levels(sums.data() + (y - y0) * pixels, pixels, job.mask.data() + row_at(y));
  }
}

// By strips of rows: prototypes are megabytes, and all objects in a strip take it from the cache.
void fill_windows_target(const Prototypes& prototypes, std::span<const MaskJob> jobs) {
  constexpr std::size_t kStrip = 8;
  std::vector<float> sums(kStrip * prototypes.width);
  for (std::size_t strip = 0; strip < prototypes.height; strip += kStrip) {
    for (const MaskJob& job : jobs) {
      const std::size_t y0 = std::max(strip, job.window.y0);
      const std::size_t y1 = std::min(strip + kStrip, job.window.y1);
      if (y0 < y1 && job.window.x0 < job.window.x1) fill_rows(prototypes, job, y0, y1, sums);
    }
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

HWY_EXPORT(fill_windows_target);

void fill_masks(const Prototypes& prototypes, std::span<const MaskJob> jobs) {
  for (const MaskJob& job : jobs) std::ranges::fill(job.mask, std::uint8_t{0});
  HWY_DYNAMIC_DISPATCH(fill_windows_target)(prototypes, jobs);
}

}  // namespace penstock
#endif  // HWY_ONCE
