// SPDX-License-Identifier: Apache-2.0
//
// Sampling tables: which two source samples make an output sample, and with what weights, for every
// row and column of one crop-and-scale step over a 4:2:0 frame. Pixel centres are at half-integers;
// chroma is sampled at its own siting. Positions outside the crop take the crop's edge: a crop
// looks as if it were a frame of its own.
//
// Columns are laid out for byte shuffles: a step makes eight of them from windows of 16 bytes, one
// or more for each half of the step. A window lies inside the crop's row, or at the beginning of a
// row that is narrower than a window.
#pragma once

#include <array>
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

inline constexpr std::size_t kStepColumns = 8;
inline constexpr std::size_t kHalfColumns = 4;
inline constexpr std::size_t kWindowBytes = 16;
/// What the two weights of a column add up to: the most that a 16-bit lane holds.
inline constexpr int kWeightOne = 32767;

/// Of a half's four columns: which bytes of the window are the left and the right neighbour, each
/// followed by kNoByte, so that a shuffle makes 16-bit lanes.
using HalfShuffle = std::array<std::uint8_t, kWindowBytes>;
inline constexpr std::uint8_t kNoByte = 0x80;

struct alignas(32) ColumnWindows {
  std::array<HalfShuffle, 2> y, u, v;
  std::array<std::uint16_t, 2> y_start, chroma_start;  ///< In bytes from the crop's edge.
};

/// Left, right, left, ... of the step's columns.
struct alignas(32) ColumnWeights {
  std::array<std::int16_t, 2 * kStepColumns> y, chroma;
};

struct SamplingPlan {
  Letterbox box;
  std::vector<RowTap> luma_rows;  ///< One an output row (scaled_height).
  std::vector<RowTap> chroma_rows;
  /// The windows of a half: 1 where its columns are near each other, else 2 or 4, of which each has
  /// the bytes of a part of the columns and kNoByte for the others.
  std::size_t luma_windows = 1;
  std::size_t chroma_windows = 1;
  std::size_t windows_per_step = 1;    ///< The larger of both.
  std::vector<ColumnWindows> windows;  ///< By step, windows_per_step each.
  std::vector<ColumnWeights> weights;  ///< By step; 0 behind the last column.
  std::size_t bytes_read = 0;          ///< Of the frame, each row counted once.
};

/// `interleaved_chroma`: U and V by turns (NV12), which `u` and `v` of the windows take apart; else
/// the windows are those of a row of U or of V.
SamplingPlan plan_sampling(const Letterbox& box, ChromaSite site, bool interleaved_chroma);

}  // namespace penstock
