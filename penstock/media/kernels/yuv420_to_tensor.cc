// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/kernels/yuv420_to_tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "penstock/base/simd_targets.h"
#include "penstock/media/kernels/source_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/media/kernels/yuv420_to_tensor.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

// Pairs of bytes are read as 16-bit lanes.
static_assert(std::endian::native == std::endian::little);

HWY_BEFORE_NAMESPACE();
namespace penstock::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A whole step of the plan, or one half after the other.
using DF = hn::CappedTag<float, HWY_HAVE_SCALABLE ? kHalfColumns : kStepColumns>;
using D32 = hn::RebindToSigned<DF>;
using D16 = hn::Repartition<std::int16_t, DF>;
using D8 = hn::Repartition<std::uint8_t, DF>;
using VF = hn::Vec<DF>;
using V32 = hn::Vec<D32>;
using V16 = hn::Vec<D16>;
using V8 = hn::Vec<D8>;
constexpr std::size_t kLanes = hn::MaxLanes(DF());
static_assert(kLanes == kHalfColumns || kLanes == kStepColumns);

// Levels before clamping as a function of weighted sums, which count kWeightOne a level. What is
// stored is limited to [low, high] and then, unless that is folded in already, normalised.
struct Colors {
  float y, base, r_v, g_u, g_v, b_u, low, high;
  std::array<float, 3> gain, bias;
};

bool is_uniform(const std::array<float, 3>& values) {
  return values[0] == values[1] && values[0] == values[2];
}

// `folded`: the normalisation is the same for all channels and part of the coefficients; clamping
// after it is the same as clamping levels before it.
Colors make_colors(const YuvCoefficients& c, const TensorTarget& target, bool folded) {
  const double gain = folded ? double{target.gain[0]} : 1.0;
  const double bias = folded ? double{target.bias[0]} : 0.0;
  const double unit = gain / kWeightOne;
  return {.y = static_cast<float>(c.y_scale * unit),
          .base = static_cast<float>(-double{c.y_scale} * c.y_offset * gain + bias),
          .r_v = static_cast<float>(c.r_v * unit),
          .g_u = static_cast<float>(c.g_u * unit),
          .g_v = static_cast<float>(c.g_v * unit),
          .b_u = static_cast<float>(c.b_u * unit),
          .low = static_cast<float>(std::min(bias, 255.0 * gain + bias)),
          .high = static_cast<float>(std::max(bias, 255.0 * gain + bias)),
          .gain = target.gain,
          .bias = target.bias};
}

HWY_INLINE V8 load_windows(const std::uint8_t* row, const std::uint16_t* start) {
  if constexpr (kLanes == kStepColumns) {
    const hn::Half<D8> half;
    return hn::Combine(D8(), hn::LoadU(half, row + start[1]), hn::LoadU(half, row + start[0]));
  } else {
    return hn::LoadU(D8(), row + start[0]);
  }
}

HWY_INLINE V16 shuffle(V8 windows, const HalfShuffle* bytes) {
  return hn::BitCast(D16(), hn::TableLookupBytesOr0(windows, hn::LoadU(D8(), bytes->data())));
}

// The neighbours of a step's pixels (from its `half` on) in one row.
HWY_INLINE void pick_luma(const SourceRows& rows, std::size_t row, const ColumnWindows& windows,
                          std::size_t half, V16& y) {
  y = shuffle(load_windows(rows.y[row], &windows.y_start[half]), &windows.y[half]);
}

template <bool kPlanar>
HWY_INLINE void pick_chroma(const SourceRows& rows, std::size_t row, const ColumnWindows& windows,
                            std::size_t half, V16& u, V16& v) {
  const V8 chroma = load_windows(rows.u[row], &windows.chroma_start[half]);
  u = shuffle(chroma, &windows.u[half]);
  if constexpr (kPlanar) {
    v = shuffle(load_windows(rows.v[row], &windows.chroma_start[half]), &windows.v[half]);
  } else {
    v = shuffle(chroma, &windows.v[half]);
  }
}

// Those of a step, and how many of them each plane needs.
struct Windows {
  const ColumnWindows* first;
  std::size_t luma, chroma;
};

// The same out of all windows of a step.
template <bool kPlanar, std::size_t kWindows>
HWY_INLINE void pick_all(const SourceRows& rows, std::size_t row, const Windows& windows,
                         std::size_t half, V16& y, V16& u, V16& v) {
  pick_luma(rows, row, windows.first[0], half, y);
  pick_chroma<kPlanar>(rows, row, windows.first[0], half, u, v);
  for (std::size_t i = 1; i < kWindows; ++i) {
    V16 more_y, more_u, more_v;
    if (i < windows.luma) {
      pick_luma(rows, row, windows.first[i], half, more_y);
      y = hn::Or(y, more_y);
    }
    if (i < windows.chroma) {
      pick_chroma<kPlanar>(rows, row, windows.first[i], half, more_u, more_v);
      u = hn::Or(u, more_u);
      v = hn::Or(v, more_v);
    }
  }
}

// The weights of a column's pairs, shared out to the upper and the lower row. They still add up to
// kWeightOne, so that what is the same everywhere stays what it is.
HWY_INLINE void split_weights(const std::int16_t* pairs, std::int16_t lower_row, V16& upper,
                              V16& lower) {
  const V16 both = hn::LoadU(D16(), pairs);
  lower = hn::MulFixedPoint15(both, hn::Set(D16(), lower_row));
  upper = hn::Sub(both, lower);
}

HWY_INLINE V32 weighted(V16 upper, V16 lower, V16 upper_weights, V16 lower_weights) {
  return hn::Add(hn::WidenMulPairwiseAdd(D32(), upper, upper_weights),
                 hn::WidenMulPairwiseAdd(D32(), lower, lower_weights));
}

// Sums of kWeightOne a level, chroma around 0.
template <bool kPlanar, std::size_t kWindows>
HWY_INLINE void sample(const SourceRows& rows, const Windows& windows, const ColumnWeights& weights,
                       std::size_t half, VF& y, VF& u, VF& v) {
  V16 y0, u0, v0, y1, u1, v1;
  pick_all<kPlanar, kWindows>(rows, 0, windows, half, y0, u0, v0);
  pick_all<kPlanar, kWindows>(rows, 1, windows, half, y1, u1, v1);
  V16 upper, lower;
  const std::size_t first = half * 2 * kHalfColumns;
  split_weights(weights.y.data() + first, rows.luma_weight, upper, lower);
  y = hn::ConvertTo(DF(), weighted(y0, y1, upper, lower));
  split_weights(weights.chroma.data() + first, rows.chroma_weight, upper, lower);
  const V32 middle = hn::Set(D32(), 128 * kWeightOne);
  u = hn::ConvertTo(DF(), hn::Sub(weighted(u0, u1, upper, lower), middle));
  v = hn::ConvertTo(DF(), hn::Sub(weighted(v0, v1, upper, lower), middle));
}

HWY_INLINE VF limit(VF value, const Colors& colors) {
  return hn::Min(hn::Max(value, hn::Set(DF(), colors.low)), hn::Set(DF(), colors.high));
}

template <bool kFolded>
HWY_INLINE void to_rgb(const Colors& colors, VF y, VF u, VF v, VF& r, VF& g, VF& b) {
  const VF gray = hn::MulAdd(y, hn::Set(DF(), colors.y), hn::Set(DF(), colors.base));
  r = limit(hn::MulAdd(v, hn::Set(DF(), colors.r_v), gray), colors);
  b = limit(hn::MulAdd(u, hn::Set(DF(), colors.b_u), gray), colors);
  g = hn::MulAdd(v, hn::Set(DF(), colors.g_v), gray);
  g = limit(hn::MulAdd(u, hn::Set(DF(), colors.g_u), g), colors);
  if constexpr (!kFolded) {
    r = hn::MulAdd(r, hn::Set(DF(), colors.gain[0]), hn::Set(DF(), colors.bias[0]));
    g = hn::MulAdd(g, hn::Set(DF(), colors.gain[1]), hn::Set(DF(), colors.bias[1]));
    b = hn::MulAdd(b, hn::Set(DF(), colors.gain[2]), hn::Set(DF(), colors.bias[2]));
  }
}

// A vector of floats as elements that are stored: float, half (as its bits) or byte.
template <class D>
hn::Vec<D> to_elements(D, float, hn::Vec<D> value) {
  return value;
}
template <class D>
hn::Vec<hn::Rebind<std::uint16_t, D>> to_elements(D, std::uint16_t, hn::Vec<D> value) {
  const hn::Rebind<hwy::float16_t, D> half;
  return hn::BitCast(hn::Rebind<std::uint16_t, D>(), hn::DemoteTo(half, value));
}
template <class D>
hn::Vec<hn::Rebind<std::uint8_t, D>> to_elements(D, std::uint8_t, hn::Vec<D> value) {
  return hn::DemoteTo(hn::Rebind<std::uint8_t, D>(), hn::NearestInt(value));
}

// Stores `count` pixels of a vector at pixel `x` of a row that begins at out[0] and, when planar,
// out[1] and out[2].
template <class T>
HWY_INLINE void store_pixels(VF first, VF second, VF third, bool interleaved,
                             const std::array<T*, 3>& out, std::size_t x, std::size_t count) {
  const hn::Rebind<T, DF> d;
  const auto a = to_elements(DF(), T{}, first);
  const auto b = to_elements(DF(), T{}, second);
  const auto c = to_elements(DF(), T{}, third);
  if (interleaved) {
    if (count >= kLanes) return hn::StoreInterleaved3(a, b, c, d, out[0] + 3 * x);
    HWY_ALIGN T last[3 * kLanes];
    hn::StoreInterleaved3(a, b, c, d, last);
    std::memcpy(out[0] + 3 * x, last, 3 * count * sizeof(T));
  } else if (count >= kLanes) {
    hn::StoreU(a, d, out[0] + x);
    hn::StoreU(b, d, out[1] + x);
    hn::StoreU(c, d, out[2] + x);
  } else {
    hn::StoreN(a, d, out[0] + x, count);
    hn::StoreN(b, d, out[1] + x, count);
    hn::StoreN(c, d, out[2] + x, count);
  }
}

// What is the same for all rows.
struct Picture {
  const SamplingPlan& plan;
  const TensorTarget& target;
  Colors colors;
};

// One row of pixels.
template <class T, bool kFolded, bool kPlanar, std::size_t kWindows>
void store_row(const Picture& picture, const SourceRows& source, const std::array<T*, 3>& to) {
  // Copies: what is stored could alias what is behind the references.
  const Colors colors = picture.colors;
  const SourceRows rows = source;
  std::array<T*, 3> out = to;
  const bool interleaved = picture.target.interleaved;
  const bool swapped = picture.target.bgr && interleaved;
  if (picture.target.bgr && !interleaved) std::swap(out[0], out[2]);
  const SamplingPlan& plan = picture.plan;
  const auto width = static_cast<std::size_t>(plan.box.scaled_width);
  Windows windows{plan.windows.data(), plan.luma_windows, plan.chroma_windows};
  const ColumnWeights* weights = plan.weights.data();

  for (std::size_t x = 0; x < width; x += kStepColumns) {
    for (std::size_t at = x; at < std::min(x + kStepColumns, width); at += kLanes) {
      const std::size_t half = (at - x) / kHalfColumns;
      VF y, u, v, r, g, b;
      sample<kPlanar, kWindows>(rows, windows, *weights, half, y, u, v);
      to_rgb<kFolded>(colors, y, u, v, r, g, b);
      store_pixels<T>(swapped ? b : r, g, swapped ? r : b, interleaved, out, at, width - at);
    }
    windows.first += kWindows;
    ++weights;
  }
}

template <class T>
using StoreRow = void (*)(const Picture&, const SourceRows&, const std::array<T*, 3>&);

template <class T, bool kFolded, bool kPlanar>
StoreRow<T> choose_row(std::size_t windows_per_step) {
  if (windows_per_step == 1) return store_row<T, kFolded, kPlanar, 1>;
  return windows_per_step == 2 ? store_row<T, kFolded, kPlanar, 2>
                               : store_row<T, kFolded, kPlanar, 4>;
}

template <class T, bool kFolded>
StoreRow<T> choose_row(std::size_t windows_per_step, bool planar) {
  return planar ? choose_row<T, kFolded, true>(windows_per_step)
                : choose_row<T, kFolded, false>(windows_per_step);
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
         const TensorTarget& target) {
  const Letterbox& box = plan.box;
  const auto width = static_cast<std::size_t>(box.input_width);
  const auto plane = width * static_cast<std::size_t>(box.input_height);
  const auto pad_x = static_cast<std::size_t>(box.pad_x);
  const auto scaled = static_cast<std::size_t>(box.scaled_width);
  const std::size_t pixel = target.interleaved ? 3 : 1;
  const Canvas<T> canvas(target, plane);

  const bool folded = is_uniform(target.gain) && is_uniform(target.bias);
  const Picture picture{plan, target, make_colors(coefficients, target, folded)};
  const bool planar = !source.interleaved_chroma;
  const StoreRow<T> store = folded ? choose_row<T, true>(plan.windows_per_step, planar)
                                   : choose_row<T, false>(plan.windows_per_step, planar);

  RowCursor cursor(plan, source);
  std::size_t at = static_cast<std::size_t>(box.pad_y) * width;
  canvas.pad(0, at);
  for (std::size_t i = 0; i < static_cast<std::size_t>(box.scaled_height); ++i, at += width) {
    const SourceRows rows = cursor.at(i);
    canvas.pad(at, pad_x);
    T* first = canvas.data + pixel * (at + pad_x);
    store(picture, rows, {first, first + plane, first + 2 * plane});
    canvas.pad(at + pad_x + scaled, width - pad_x - scaled);
  }
  canvas.pad(at, plane - at);
}

}  // namespace

void yuv420_to_tensor_target(const SamplingPlan& plan, const Yuv420Source& source,
                             const YuvCoefficients& color, const TensorTarget& target) {
  switch (target.element) {
    case TensorElement::kFloat32:
      return run<float>(plan, source, color, target);
    case TensorElement::kFloat16:
      return run<std::uint16_t>(plan, source, color, target);
    case TensorElement::kUint8:
      return run<std::uint8_t>(plan, source, color, target);
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
                      const YuvCoefficients& color, const TensorTarget& target) {
  HWY_DYNAMIC_DISPATCH(yuv420_to_tensor_target)(plan, source, color, target);
}

}  // namespace penstock
#endif  // HWY_ONCE
