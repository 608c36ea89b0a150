// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/kernels/yuv420_to_tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/media/kernels/yuv420_to_tensor.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

// Weight pairs are packed low half first and read as vectors of 16-bit lanes.
static_assert(std::endian::native == std::endian::little);

HWY_BEFORE_NAMESPACE();
namespace penstock::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kFraction = 7;  // 255 << 7 is the most that fits 16 signed bits

// (a + (b - a) * weight / 2^15) << 7, rounded, for one sample; what the vectors below compute.
std::int16_t blend_sample(int a, int b, int weight) {
  const int difference = (b - a) * (1 << kFraction);
  return static_cast<std::int16_t>((a << kFraction) + ((difference * weight + (1 << 14)) >> 15));
}

template <class D16>
hn::Vec<D16> blend_vector(D16 d16, const std::uint8_t* a, const std::uint8_t* b,
                          hn::Vec<D16> weight) {
  const hn::Rebind<std::uint8_t, D16> d8;
  const auto first = hn::PromoteTo(d16, hn::LoadU(d8, a));
  const auto second = hn::PromoteTo(d16, hn::LoadU(d8, b));
  const auto difference = hn::ShiftLeft<kFraction>(hn::Sub(second, first));
  return hn::Add(hn::ShiftLeft<kFraction>(first), hn::MulFixedPoint15(difference, weight));
}

// Calls body(i) for vectors that cover 0..count, the last one overlapping its predecessor: reading
// behind a row could touch a page that the sweep has not reached, or nobody's memory.
template <class Body>
HWY_INLINE void for_each_vector(std::size_t count, std::size_t lanes, const Body& body) {
  for (std::size_t i = 0; i + lanes <= count; i += lanes) body(i);
  if (count % lanes != 0) body(count - lanes);
}

void blend_row(const std::uint8_t* a, const std::uint8_t* b, std::int16_t weight, std::size_t count,
               std::int16_t* out) {
  const hn::ScalableTag<std::int16_t> d16;
  const std::size_t lanes = hn::Lanes(d16);
  if (count < lanes) {
    for (std::size_t i = 0; i < count; ++i) out[i] = blend_sample(a[i], b[i], weight);
    return;
  }
  if (weight == 0) {
    const hn::Rebind<std::uint8_t, decltype(d16)> d8;
    for_each_vector(count, lanes, [&](std::size_t i) HWY_ATTR {
      hn::StoreU(hn::ShiftLeft<kFraction>(hn::PromoteTo(d16, hn::LoadU(d8, a + i))), d16, out + i);
    });
    return;
  }
  const auto w = hn::Set(d16, weight);
  for_each_vector(count, lanes, [&](std::size_t i) HWY_ATTR {
    hn::StoreU(blend_vector(d16, a + i, b + i, w), d16, out + i);
  });
}

// As blend_row for separate U and V rows, stored by turns.
void blend_rows_interleaved(const std::uint8_t* ua, const std::uint8_t* ub, const std::uint8_t* va,
                            const std::uint8_t* vb, std::int16_t weight, std::size_t count,
                            std::int16_t* out) {
  const hn::ScalableTag<std::int16_t> d16;
  const std::size_t lanes = hn::Lanes(d16);
  if (count < lanes) {
    for (std::size_t i = 0; i < count; ++i) {
      out[2 * i] = blend_sample(ua[i], ub[i], weight);
      out[2 * i + 1] = blend_sample(va[i], vb[i], weight);
    }
    return;
  }
  const auto w = hn::Set(d16, weight);
  for_each_vector(count, lanes, [&](std::size_t i) HWY_ATTR {
    hn::StoreInterleaved2(blend_vector(d16, ua + i, ub + i, w),
                          blend_vector(d16, va + i, vb + i, w), d16, out + 2 * i);
  });
}

// One stored channel as a function of the fixed-point sums (which carry 7 + 14 fraction bits):
// y * Y + u * U + v * V + base, then limited to what levels 0 and 255 become. Normalisation is
// folded in, so clamping after it is the same as clamping levels before it.
struct Channel {
  float y, u, v, base, low, high;
};

Channel make_channel(const YuvCoefficients& c, double u, double v, double gain, double bias) {
  constexpr double kUnit = 1.0 / (1 << (kFraction + 14));
  const double base = -double{c.y_scale} * c.y_offset - 128.0 * (u + v);
  return {.y = static_cast<float>(c.y_scale * gain * kUnit),
          .u = static_cast<float>(u * gain * kUnit),
          .v = static_cast<float>(v * gain * kUnit),
          .base = static_cast<float>(base * gain + bias),
          .low = static_cast<float>(std::min(bias, 255.0 * gain + bias)),
          .high = static_cast<float>(std::max(bias, 255.0 * gain + bias))};
}

struct Channels {
  Channel r, g, b;
};

Channels make_channels(const YuvCoefficients& c, const TensorTarget& target) {
  return {.r = make_channel(c, 0, c.r_v, target.gain[0], target.bias[0]),
          .g = make_channel(c, c.g_u, c.g_v, target.gain[1], target.bias[1]),
          .b = make_channel(c, c.b_u, 0, target.gain[2], target.bias[2])};
}

// A vector of floats as elements that are stored: float, half (as its bits) or byte.
template <class DF>
hn::Vec<DF> to_elements(DF, float, hn::Vec<DF> value) {
  return value;
}
template <class DF>
hn::Vec<hn::Rebind<std::uint16_t, DF>> to_elements(DF, std::uint16_t, hn::Vec<DF> value) {
  const hn::Rebind<hwy::float16_t, DF> half;
  return hn::BitCast(hn::Rebind<std::uint16_t, DF>(), hn::DemoteTo(half, value));
}
template <class DF>
hn::Vec<hn::Rebind<std::uint8_t, DF>> to_elements(DF, std::uint8_t, hn::Vec<DF> value) {
  return hn::DemoteTo(hn::Rebind<std::uint8_t, DF>(), hn::NearestInt(value));
}

// The samples that a row's pixels are made of are collected a chunk at a time, by scalar loads: as
// fast as the gather instructions where those exist, and the same everywhere.
constexpr std::size_t kChunk = SamplingPlan::kColumnPadding;

// The two neighbours of each of a vector's pixels, as 16-bit lanes with 7 fraction bits.
template <class D16>
struct Pairs {
  hn::Vec<D16> y, u, v;
};

// From rows that were blended as a whole: for pictures of which most samples are used.
struct BlendedRows {
  const std::int16_t* luma_row;
  const std::int16_t* chroma_row;
  HWY_ALIGN std::uint32_t luma[kChunk] = {};
  HWY_ALIGN std::uint64_t chroma[kChunk] = {};  // (U, V) of the left and of the right neighbour.

  void collect(const std::uint16_t* luma_index, const std::uint16_t* chroma_index,
               std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(&luma[i], luma_row + luma_index[i], sizeof luma[i]);
      std::memcpy(&chroma[i], chroma_row + 2 * chroma_index[i], sizeof chroma[i]);
    }
  }

  template <class D32>
  auto pairs(D32 d32, std::size_t i) const {
    const hn::Repartition<std::int16_t, D32> d16;
    hn::Vec<D32> left, right;
    hn::LoadInterleaved2(d32, reinterpret_cast<const std::uint32_t*>(chroma + i), left, right);
    return Pairs<decltype(d16)>{
        .y = hn::BitCast(d16, hn::LoadU(d32, luma + i)),
        .u = hn::OddEven(hn::BitCast(d16, hn::ShiftLeft<16>(right)), hn::BitCast(d16, left)),
        .v = hn::OddEven(hn::BitCast(d16, right), hn::BitCast(d16, hn::ShiftRight<16>(left)))};
  }
};

// Neighbours of the upper row in the low half of `bytes` and of the lower row in the high half,
// widened and blended.
template <class D32>
auto blend_quad(D32 d32, hn::Vec<D32> bytes, std::int16_t weight) {
  const hn::Repartition<std::int16_t, D32> d16;
  const auto low = hn::Set(d32, 0xffu);
  const auto widen = [&](hn::Vec<D32> pair) HWY_ATTR {  // bytes 0 and 1 to 16-bit lanes
    const auto second = hn::ShiftLeft<8>(hn::AndNot(low, pair));
    return hn::BitCast(d16, hn::Or(hn::And(pair, low), second));
  };
  const auto upper = widen(hn::And(bytes, hn::Set(d32, 0xffffu)));
  const auto lower = widen(hn::ShiftRight<16>(bytes));
  const auto difference = hn::ShiftLeft<kFraction>(hn::Sub(lower, upper));
  return hn::Add(hn::ShiftLeft<kFraction>(upper),
                 hn::MulFixedPoint15(difference, hn::Set(d16, weight)));
}

// From the frame's rows themselves, blended after they were collected: for pictures that shrink so
// much that most samples are used by no pixel. Rows begin at the crop's edge; [0] is the upper one.
struct FrameRows {
  std::array<const std::uint8_t*, 2> luma_rows;
  std::int16_t luma_weight;
  HWY_ALIGN std::uint32_t luma[kChunk] = {};

  void collect_luma(const std::uint16_t* index, std::size_t count) {
    gather_quads(luma_rows, index, count, luma);
  }
  static void gather_quads(const std::array<const std::uint8_t*, 2>& rows,
                           const std::uint16_t* index, std::size_t count, std::uint32_t* quads) {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint16_t upper, lower;
      std::memcpy(&upper, rows[0] + index[i], sizeof upper);
      std::memcpy(&lower, rows[1] + index[i], sizeof lower);
      quads[i] = upper | (std::uint32_t{lower} << 16);
    }
  }
};

struct Nv12Rows : FrameRows {
  std::array<const std::uint8_t*, 2> chroma_rows;
  std::int16_t chroma_weight;
  HWY_ALIGN std::uint64_t chroma[kChunk] = {};

  void collect(const std::uint16_t* luma_index, const std::uint16_t* chroma_index,
               std::size_t count) {
    collect_luma(luma_index, count);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t upper, lower;
      std::memcpy(&upper, chroma_rows[0] + 2 * chroma_index[i], sizeof upper);
      std::memcpy(&lower, chroma_rows[1] + 2 * chroma_index[i], sizeof lower);
      chroma[i] = upper | (std::uint64_t{lower} << 32);
    }
  }

  template <class D32>
  auto pairs(D32 d32, std::size_t i) const {
    const hn::Repartition<std::int16_t, D32> d16;
    const auto weight = hn::Set(d16, chroma_weight);
    const auto every_other = hn::Set(d32, 0x00ff00ffu);
    hn::Vec<D32> upper, lower;  // U, V, U, V of the two neighbours
    hn::LoadInterleaved2(d32, reinterpret_cast<const std::uint32_t*>(chroma + i), upper, lower);
    const auto blend = [&](hn::Vec<D32> a, hn::Vec<D32> b) HWY_ATTR {
      const auto first = hn::BitCast(d16, hn::And(a, every_other));
      const auto second = hn::BitCast(d16, hn::And(b, every_other));
      const auto difference = hn::ShiftLeft<kFraction>(hn::Sub(second, first));
      return hn::Add(hn::ShiftLeft<kFraction>(first), hn::MulFixedPoint15(difference, weight));
    };
    return Pairs<decltype(d16)>{.y = blend_quad(d32, hn::LoadU(d32, luma + i), luma_weight),
                                .u = blend(upper, lower),
                                .v = blend(hn::ShiftRight<8>(upper), hn::ShiftRight<8>(lower))};
  }
};

struct I420Rows : FrameRows {
  std::array<const std::uint8_t*, 2> u_rows, v_rows;
  std::int16_t chroma_weight;
  HWY_ALIGN std::uint32_t u[kChunk] = {};
  HWY_ALIGN std::uint32_t v[kChunk] = {};

  void collect(const std::uint16_t* luma_index, const std::uint16_t* chroma_index,
               std::size_t count) {
    collect_luma(luma_index, count);
    gather_quads(u_rows, chroma_index, count, u);
    gather_quads(v_rows, chroma_index, count, v);
  }

  template <class D32>
  auto pairs(D32 d32, std::size_t i) const {
    return Pairs<hn::Repartition<std::int16_t, D32>>{
        .y = blend_quad(d32, hn::LoadU(d32, luma + i), luma_weight),
        .u = blend_quad(d32, hn::LoadU(d32, u + i), chroma_weight),
        .v = blend_quad(d32, hn::LoadU(d32, v + i), chroma_weight)};
  }
};

// One row of pixels, from its neighbours to the tensor. `out` has the row's first element of each
// stored channel; interleaved: out[0] the row's first element.
template <class T, class Rows>
void store_row(const SamplingPlan& plan, const Channels& channels, const TensorTarget& target,
               Rows& rows, std::array<T*, 3> out) {
  const hn::ScalableTag<float> df;
  const hn::RebindToSigned<decltype(df)> d32;
  const hn::RebindToUnsigned<decltype(df)> du32;
  const hn::Repartition<std::int16_t, decltype(df)> d16;
  const std::size_t lanes = hn::Lanes(df);
  const auto width = static_cast<std::size_t>(plan.box.scaled_width);

  // Copies: what is stored could alias what is behind the references.
  const Channels ch = channels;
  const bool interleaved = target.interleaved;
  const bool bgr = target.bgr;
  const std::uint32_t* const luma_weights = plan.luma_columns.weights.data();
  const std::uint32_t* const chroma_weights = plan.chroma_columns.weights.data();
  const auto limit = [&](hn::Vec<decltype(df)> value, const Channel& c) HWY_ATTR {
    return hn::Min(hn::Max(value, hn::Set(df, c.low)), hn::Set(df, c.high));
  };

  for (std::size_t start = 0; start < width; start += kChunk) {
    const std::size_t count = std::min(kChunk, width - start);
    rows.collect(plan.luma_columns.index.data() + start, plan.chroma_columns.index.data() + start,
                 count);
    for (std::size_t i = 0; i < count; i += lanes) {
      const std::size_t x = start + i;
      const auto y_weights = hn::BitCast(d16, hn::LoadU(du32, luma_weights + x));
      const auto uv_weights = hn::BitCast(d16, hn::LoadU(du32, chroma_weights + x));
      const auto pairs = rows.pairs(du32, i);
      const auto y = hn::ConvertTo(df, hn::WidenMulPairwiseAdd(d32, pairs.y, y_weights));
      const auto u = hn::ConvertTo(df, hn::WidenMulPairwiseAdd(d32, pairs.u, uv_weights));
      const auto v = hn::ConvertTo(df, hn::WidenMulPairwiseAdd(d32, pairs.v, uv_weights));

      auto r = hn::MulAdd(v, hn::Set(df, ch.r.v), hn::Set(df, ch.r.base));
      auto g = hn::MulAdd(v, hn::Set(df, ch.g.v), hn::Set(df, ch.g.base));
      auto b = hn::MulAdd(u, hn::Set(df, ch.b.u), hn::Set(df, ch.b.base));
      g = hn::MulAdd(u, hn::Set(df, ch.g.u), g);
      r = limit(hn::MulAdd(y, hn::Set(df, ch.r.y), r), ch.r);
      g = limit(hn::MulAdd(y, hn::Set(df, ch.g.y), g), ch.g);
      b = limit(hn::MulAdd(y, hn::Set(df, ch.b.y), b), ch.b);
      const hn::Rebind<T, decltype(df)> dt;
      const auto first = to_elements(df, T{}, bgr ? b : r);
      const auto second = to_elements(df, T{}, g);
      const auto third = to_elements(df, T{}, bgr ? r : b);
      const std::size_t left_over = count - i;
      if (interleaved) {
        if (left_over >= lanes) {
          hn::StoreInterleaved3(first, second, third, dt, out[0] + 3 * x);
        } else {
          HWY_ALIGN T last[3 * hn::MaxLanes(df)];
          hn::StoreInterleaved3(first, second, third, dt, last);
          std::memcpy(out[0] + 3 * x, last, 3 * left_over * sizeof(T));
        }
      } else if (left_over >= lanes) {
        hn::StoreU(first, dt, out[0] + x);
        hn::StoreU(second, dt, out[1] + x);
        hn::StoreU(third, dt, out[2] + x);
      } else {
        hn::StoreN(first, dt, out[0] + x, left_over);
        hn::StoreN(second, dt, out[1] + x, left_over);
        hn::StoreN(third, dt, out[2] + x, left_over);
      }
    }
  }
}

template <class T>
void store_all(std::span<const float> values, T* out) {
  const hn::CappedTag<float, 1> df;
  for (std::size_t i = 0; i < values.size(); ++i) {
    hn::StoreU(to_elements(df, T{}, hn::Set(df, values[i])), hn::Rebind<T, decltype(df)>(),
               out + i);
  }
}

// The tensor with its padding in the elements that are stored.
template <class T>
struct Canvas {
  T* data;
  std::size_t plane;
  bool interleaved;
  bool is_padded;
  std::array<T, 3> padding;  // In the output's order.

  Canvas(const TensorTarget& target, std::size_t pixels)
      : data(static_cast<T*>(target.data)),
        plane(pixels),
        interleaved(target.interleaved),
        is_padded(target.has_padding) {
    const auto& rgb = target.padding;
    const std::array<float, 3> order{target.bgr ? rgb[2] : rgb[0], rgb[1],
                                     target.bgr ? rgb[0] : rgb[2]};
    store_all<T>(order, padding.data());
  }

  // `count` pixels from pixel `start` in row-major order.
  void pad(std::size_t start, std::size_t count) const {
    if (is_padded) return;
    if (!interleaved) {
      for (std::size_t c = 0; c < 3; ++c) std::fill_n(data + c * plane + start, count, padding[c]);
      return;
    }
    T* out = data + 3 * start;
    for (std::size_t i = 0; i < count; ++i) out = std::copy_n(padding.data(), 3, out);
  }
};

template <class T>
void run(const SamplingPlan& plan, const Yuv420Source& source, const YuvCoefficients& coefficients,
         const TensorTarget& target, std::int16_t* luma_row, std::int16_t* chroma_row) {
  const Letterbox& box = plan.box;
  const Channels channels = make_channels(coefficients, target);
  const auto width = static_cast<std::size_t>(box.input_width);
  const auto plane = width * static_cast<std::size_t>(box.input_height);
  const auto pad_x = static_cast<std::size_t>(box.pad_x);
  const auto scaled = static_cast<std::size_t>(box.scaled_width);
  const auto crop_x = static_cast<std::size_t>(box.crop.x);
  const auto crop_width = static_cast<std::size_t>(box.crop.width);
  const std::size_t pixel = target.interleaved ? 3 : 1;
  const Canvas<T> canvas(target, plane);
  // Where a row is blended faster as a whole than at the pixels that need it.
  const bool shrinks = crop_width >= 4 && 2 * crop_width >= 5 * scaled;

  const auto row_of = [&](std::size_t p, std::int32_t row, std::size_t x) {
    return source.planes[p] + static_cast<std::size_t>(row) * source.strides[p] + x;
  };

  std::size_t at = static_cast<std::size_t>(box.pad_y) * width;
  canvas.pad(0, at);
  for (std::size_t i = 0; i < static_cast<std::size_t>(box.scaled_height); ++i, at += width) {
    const RowTap luma = plan.luma_rows[i];
    const RowTap chroma = plan.chroma_rows[i];
    canvas.pad(at, pad_x);
    T* first = canvas.data + pixel * (at + pad_x);
    const std::array<T*, 3> out{first, first + plane, first + 2 * plane};
    if (shrinks) {
      const auto both = [&](std::size_t p, const RowTap& tap, std::size_t x) {
        return std::array{row_of(p, tap.first, x), row_of(p, tap.second, x)};
      };
      if (source.interleaved_chroma) {
        Nv12Rows rows{{both(0, luma, crop_x), luma.weight}, both(1, chroma, crop_x), chroma.weight};
        store_row<T>(plan, channels, target, rows, out);
      } else {
        I420Rows rows{{both(0, luma, crop_x), luma.weight},
                      both(1, chroma, crop_x / 2),
                      both(2, chroma, crop_x / 2),
                      chroma.weight};
        store_row<T>(plan, channels, target, rows, out);
      }
    } else {
      blend_row(row_of(0, luma.first, crop_x), row_of(0, luma.second, crop_x), luma.weight,
                crop_width, luma_row);
      if (source.interleaved_chroma) {
        blend_row(row_of(1, chroma.first, crop_x), row_of(1, chroma.second, crop_x), chroma.weight,
                  crop_width, chroma_row);
      } else {
        blend_rows_interleaved(
            row_of(1, chroma.first, crop_x / 2), row_of(1, chroma.second, crop_x / 2),
            row_of(2, chroma.first, crop_x / 2), row_of(2, chroma.second, crop_x / 2),
            chroma.weight, crop_width / 2, chroma_row);
      }
      BlendedRows rows{luma_row, chroma_row};
      store_row<T>(plan, channels, target, rows, out);
    }
    canvas.pad(at + pad_x + scaled, width - pad_x - scaled);
  }
  canvas.pad(at, plane - at);
}

}  // namespace

void yuv420_to_tensor_target(const SamplingPlan& plan, const Yuv420Source& source,
                             const YuvCoefficients& color, const TensorTarget& target,
                             std::int16_t* luma_row, std::int16_t* chroma_row) {
  switch (target.element) {
    case TensorElement::kFloat32:
      return run<float>(plan, source, color, target, luma_row, chroma_row);
    case TensorElement::kFloat16:
      return run<std::uint16_t>(plan, source, color, target, luma_row, chroma_row);
    case TensorElement::kUint8:
      return run<std::uint8_t>(plan, source, color, target, luma_row, chroma_row);
  }
}

void store_elements_target(TensorElement element, std::span<const float> values, void* out) {
  switch (element) {
    case TensorElement::kFloat32:
      return store_all(values, static_cast<float*>(out));
    case TensorElement::kFloat16:
      return store_all(values, static_cast<std::uint16_t*>(out));
    case TensorElement::kUint8:
      return store_all(values, static_cast<std::uint8_t*>(out));
  }
}

}  // namespace penstock::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock {

HWY_EXPORT(yuv420_to_tensor_target);
HWY_EXPORT(store_elements_target);

void store_elements(TensorElement element, std::span<const float> values, void* out) {
  HWY_DYNAMIC_DISPATCH(store_elements_target)(element, values, out);
}

void yuv420_to_tensor(const SamplingPlan& plan, const Yuv420Source& source,
                      const YuvCoefficients& color, const TensorTarget& target,
                      std::int16_t* luma_row, std::int16_t* chroma_row) {
  HWY_DYNAMIC_DISPATCH(yuv420_to_tensor_target)
  (plan, source, color, target, luma_row, chroma_row);
}

}  // namespace penstock
#endif  // HWY_ONCE
