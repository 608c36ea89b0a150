// SPDX-License-Identifier: Apache-2.0
//
// Where the kernel finds the source rows of a row of pixels. A row that is narrower than a window
// is copied, a few bytes, so that vector code never reads outside the crop.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "penstock/media/kernels/sampling.h"
#include "penstock/media/kernels/yuv420_to_tensor.h"

namespace penstock {

/// Upper and lower, from the crop's edge on. Interleaved chroma lies in `u`.
struct SourceRows {
  std::array<const std::uint8_t*, 2> y, u, v;
  std::int16_t luma_weight, chroma_weight;  ///< Of the lower row, as in RowTap.
};

/// What `at` gives lives until the next call.
class RowCursor {
 public:
  RowCursor(const SamplingPlan& plan, const Yuv420Source& source) : plan_(plan), source_(source) {}

  SourceRows at(std::size_t row) {
    const RowTap& luma = plan_.luma_rows[row];
    const RowTap& chroma = plan_.chroma_rows[row];
    SourceRows rows{.y = both(0, luma, copies_[0]),
                    .u = both(1, chroma, copies_[1]),
                    .v = {},
                    .luma_weight = luma.weight,
                    .chroma_weight = chroma.weight};
    if (!source_.interleaved_chroma) rows.v = both(2, chroma, copies_[2]);
    return rows;
  }

 private:
  using Copy = std::array<std::uint8_t, kWindowBytes>;

  std::array<const std::uint8_t*, 2> both(std::size_t plane, const RowTap& tap,
                                          std::array<Copy, 2>& copies) const {
    return {one(plane, tap.first, copies[0]), one(plane, tap.second, copies[1])};
  }

  const std::uint8_t* one(std::size_t plane, std::int32_t row, Copy& copy) const {
    const std::size_t divisor = plane == 0 || source_.interleaved_chroma ? 1 : 2;
    const auto bytes = static_cast<std::size_t>(plan_.box.crop.width) / divisor;
    const std::uint8_t* begin = source_.planes[plane] +
                                static_cast<std::size_t>(row) * source_.strides[plane] +
                                static_cast<std::size_t>(plan_.box.crop.x) / divisor;
    if (bytes >= kWindowBytes) return begin;
    std::memcpy(copy.data(), begin, bytes);
    return copy.data();
  }

  const SamplingPlan& plan_;
  const Yuv420Source& source_;
  std::array<std::array<Copy, 2>, 3> copies_{};
};

}  // namespace penstock
