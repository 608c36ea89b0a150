// SPDX-License-Identifier: Apache-2.0
//
// Sampling tables: which two source samples make an output sample, and with what weights, for every
// row and column of one crop-and-scale step over a 4:2:0 frame. Pixel centres are at half-integers;
// chroma is sampled at its own siting. Positions outside the crop take the crop's edge: a crop
// looks as if it were a frame of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "penstock/media/colorimetry.h"
#include "penstock/media/geometry.h"

namespace penstock {

/// Rows `first` and `second` of a plane (absolute), value = first + (second - first) * weight /
/// 2^15. Weight 0 means that only `first` is read.
struct RowTap {
  std::int32_t first = 0;
  std::int32_t second = 0;
  std::int16_t weight = 0;
};

/// Column taps of an axis: samples `index` and `index + 1` (relative to the crop), the pair of
/// 14-bit weights packed low half first.
struct ColumnTaps {
  std::vector<std::uint16_t> index;
  std::vector<std::uint32_t> weights;
};

struct SamplingPlan {
  /// Extra entries behind the last column, so that vector code may read whole vectors.
  static constexpr std::size_t kColumnPadding = 64;

  Letterbox box;
  std::vector<RowTap> luma_rows;  ///< One an output row (scaled_height).
  std::vector<RowTap> chroma_rows;
  ColumnTaps luma_columns;  ///< One an output column (scaled_width), then padding.
  ColumnTaps chroma_columns;
  std::size_t bytes_read = 0;  ///< Of the frame, each row counted once.
};

SamplingPlan plan_sampling(const Letterbox& box, ChromaSite site);

}  // namespace penstock
