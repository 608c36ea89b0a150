// SPDX-License-Identifier: Apache-2.0
#include "penstock/draw/kernels/yuv420_to_bgra.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "penstock/base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/draw/kernels/yuv420_to_bgra.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

// Pairs of bytes are read as 16-bit lanes.
static_assert(std::endian::native == std::endian::little);

HWY_BEFORE_NAMESPACE();
namespace penstock::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D16 = hn::CappedTag<std::int16_t, 16>;
using DU16 = hn::RebindToUnsigned<D16>;
using D8 = hn::Repartition<std::uint8_t, D16>;
using DHalf8 = hn::Rebind<std::uint8_t, D16>;
using V16 = hn::Vec<D16>;
using V8 = hn::Vec<D8>;

// Chroma samples of a step, which are half as many as pixels.
HWY_INLINE std::size_t step_size() { return hn::Lanes(D16()); }
constexpr std::size_t kMostStep = 16;

// Levels are counted in 1/32, samples in 1/128. A coefficient turns the one into the other, as a
// factor of 2^15: the largest, 2.11 for blue, is then 0.53.
struct Factors {
  std::int16_t y, r_v, g_u, g_v, b_u;
  std::int16_t y_offset;  // In 1/128.
};

std::int16_t factor(float coefficient) {
  return static_cast<std::int16_t>(std::lround(coefficient * 32768.0f * 32.0f / 128.0f));
}

Factors factors_of(const YuvCoefficients& c) {
  return {.y = factor(c.y_scale),
          .r_v = factor(c.r_v),
          .g_u = factor(c.g_u),
          .g_v = factor(c.g_v),
          .b_u = factor(c.b_u),
          .y_offset = static_cast<std::int16_t>(c.y_offset * 128.0f)};
}

// Rows of chroma between a row and the one that lends it a quarter, in 1/4 level. The first and the
// last sample are repeated outside.
struct ChromaRow {
  std::uint16_t* u;
  std::uint16_t* v;

  void repeat_edges(std::size_t count) const {
    for (std::uint16_t* row : {u, v}) {
      row[-1] = row[0];
      row[count] = row[count - 1];
    }
  }
};

void blend_interleaved(const std::uint8_t* near, const std::uint8_t* far, std::size_t count,
                       const ChromaRow& out) {
  const DU16 d;
  const std::size_t step = step_size();
  const auto low = hn::Set(d, 0xff);
  const auto three = hn::Set(d, 3);
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    const auto a = hn::BitCast(d, hn::LoadU(D8(), near + 2 * i));
    const auto b = hn::BitCast(d, hn::LoadU(D8(), far + 2 * i));
    hn::StoreU(hn::Add(hn::Mul(hn::And(a, low), three), hn::And(b, low)), d, out.u + i);
    hn::StoreU(hn::Add(hn::Mul(hn::ShiftRight<8>(a), three), hn::ShiftRight<8>(b)), d, out.v + i);
  }
  for (; i < count; ++i) {
    out.u[i] = static_cast<std::uint16_t>(3 * near[2 * i] + far[2 * i]);
    out.v[i] = static_cast<std::uint16_t>(3 * near[2 * i + 1] + far[2 * i + 1]);
  }
}

void blend_plane(const std::uint8_t* near, const std::uint8_t* far, std::size_t count,
                 std::uint16_t* out) {
  const DU16 d;
  const std::size_t step = step_size();
  const auto three = hn::Set(d, 3);
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    const auto a = hn::PromoteTo(d, hn::LoadU(DHalf8(), near + i));
    const auto b = hn::PromoteTo(d, hn::LoadU(DHalf8(), far + i));
    hn::StoreU(hn::Add(hn::Mul(a, three), b), d, out + i);
  }
  for (; i < count; ++i) out[i] = static_cast<std::uint16_t>(3 * near[i] + far[i]);
}

// What chroma adds, in 1/32 level.
struct Added {
  V16 r, g, b;
};

// `u` and `v` in 1/16 level.
HWY_INLINE Added add_of(V16 u, V16 v, const Factors& factors) {
  const D16 d;
  const V16 middle = hn::Set(d, 128 * 16);
  const V16 cu = hn::ShiftLeft<3>(hn::Sub(u, middle));
  const V16 cv = hn::ShiftLeft<3>(hn::Sub(v, middle));
  return {.r = hn::MulFixedPoint15(cv, hn::Set(d, factors.r_v)),
          .g = hn::Add(hn::MulFixedPoint15(cu, hn::Set(d, factors.g_u)),
                       hn::MulFixedPoint15(cv, hn::Set(d, factors.g_v))),
          .b = hn::MulFixedPoint15(cu, hn::Set(d, factors.b_u))};
}

// Of the even and the odd columns, in 1/16 level.
template <ChromaSite kSite>
HWY_INLINE void between_columns(const std::uint16_t* row, V16& even, V16& odd) {
  const D16 d;
  const auto load = [&](const std::uint16_t* at) { return hn::BitCast(d, hn::LoadU(DU16(), at)); };
  const V16 here = load(row);
  const V16 next = load(row + 1);
  if constexpr (kSite == ChromaSite::kLeft) {
    even = hn::ShiftLeft<2>(here);
    odd = hn::ShiftLeft<1>(hn::Add(here, next));
  } else {
    const V16 three = hn::Add(hn::ShiftLeft<1>(here), here);
    even = hn::Add(three, load(row - 1));
    odd = hn::Add(three, next);
  }
}

HWY_INLINE V16 rounded(V16 luma, V16 chroma) {
  const D16 d;
  return hn::ShiftRight<5>(hn::Add(hn::Add(luma, chroma), hn::Set(d, 16)));
}

// Luma and what chroma adds to it, as bytes.
HWY_INLINE V8 channel(V16 lower_luma, V16 upper_luma, V16 even, V16 odd) {
  const D16 d;
  return hn::OrderedDemote2To(D8(), rounded(lower_luma, hn::InterleaveWholeLower(d, even, odd)),
                              rounded(upper_luma, hn::InterleaveWholeUpper(d, even, odd)));
}

// Two pixels for each lane.
template <ChromaSite kSite>
HWY_INLINE void convert_step(const std::uint8_t* luma, const std::uint16_t* u,
                             const std::uint16_t* v, const Factors& factors, std::uint8_t* out) {
  const D16 d;
  V16 even_u, odd_u, even_v, odd_v;
  between_columns<kSite>(u, even_u, odd_u);
  between_columns<kSite>(v, even_v, odd_v);
  const Added even = add_of(even_u, even_v, factors);
  const Added odd = add_of(odd_u, odd_v, factors);

  const V8 y = hn::LoadU(D8(), luma);
  const V16 offset = hn::Set(d, factors.y_offset);
  const V16 scale = hn::Set(d, factors.y);
  const auto scaled = [&](V16 levels) {
    return hn::MulFixedPoint15(hn::Sub(hn::ShiftLeft<7>(levels), offset), scale);
  };
  const V16 lower = scaled(hn::PromoteLowerTo(d, y));
  const V16 upper = scaled(hn::PromoteUpperTo(d, y));
  hn::StoreInterleaved4(channel(lower, upper, even.b, odd.b), channel(lower, upper, even.g, odd.g),
                        channel(lower, upper, even.r, odd.r), hn::Set(D8(), 255), D8(), out);
}

template <ChromaSite kSite>
void convert_row(const std::uint8_t* luma, const ChromaRow& chroma, std::size_t width,
                 const Factors& row_factors, std::uint8_t* out) {
  // A copy: what is stored could alias what is behind the reference.
  const Factors factors = row_factors;
  const std::size_t step = 2 * step_size();
  std::size_t x = 0;
  for (; x + step <= width; x += step) {
    convert_step<kSite>(luma + x, chroma.u + x / 2, chroma.v + x / 2, factors,
                        out + kBgraBytes * x);
  }
  if (x == width) return;
  std::array<std::uint8_t, 2 * kMostStep> rest{};
  std::array<std::uint8_t, 2 * kMostStep * kBgraBytes> pixels{};
  std::memcpy(rest.data(), luma + x, width - x);
  convert_step<kSite>(rest.data(), chroma.u + x / 2, chroma.v + x / 2, factors, pixels.data());
  std::memcpy(out + kBgraBytes * x, pixels.data(), kBgraBytes * (width - x));
}

}  // namespace

void yuv420_to_bgra_target(const Yuv420Source& source, const YuvCoefficients& color,
                           ChromaSite site, const BgraPicture& picture, std::size_t first,
                           std::size_t end, std::span<std::uint16_t> scratch) {
  const Factors factors = factors_of(color);
  const std::size_t count = picture.width / 2;
  const std::size_t last = picture.height / 2 - 1;
  // One sample before each row, and behind it what a whole step reads beyond the last.
  const ChromaRow chroma{scratch.data() + 1, scratch.data() + scratch.size() / 2 + 1};
  for (std::size_t y = first; y < end; ++y) {
    const std::size_t near = y / 2;
    const std::size_t far =
        y % 2 == 0 ? near - std::min<std::size_t>(near, 1) : std::min(near + 1, last);
    const auto at = [&](std::size_t plane, std::size_t row) {
      return source.planes[plane] + row * source.strides[plane];
    };
    if (source.interleaved_chroma) {
      blend_interleaved(at(1, near), at(1, far), count, chroma);
    } else {
      blend_plane(at(1, near), at(1, far), count, chroma.u);
      blend_plane(at(2, near), at(2, far), count, chroma.v);
    }
    chroma.repeat_edges(count);
    const auto convert = site == ChromaSite::kLeft ? convert_row<ChromaSite::kLeft>
                                                   : convert_row<ChromaSite::kCenter>;
    convert(at(0, y), chroma, picture.width, factors, picture.row(y));
  }
}

}  // namespace penstock::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock {

HWY_EXPORT(yuv420_to_bgra_target);

std::size_t bgra_scratch(std::size_t width) {
  constexpr std::size_t kBeyond = 16 + 2;
  return 2 * (width / 2 + kBeyond);
}

void yuv420_to_bgra(const Yuv420Source& source, const YuvCoefficients& color, ChromaSite site,
                    const BgraPicture& picture, std::size_t first, std::size_t end,
                    std::span<std::uint16_t> scratch) {
  HWY_DYNAMIC_DISPATCH(yuv420_to_bgra_target)(source, color, site, picture, first, end, scratch);
}

}  // namespace penstock
#endif  // HWY_ONCE
