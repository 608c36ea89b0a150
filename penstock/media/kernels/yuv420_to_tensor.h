// SPDX-License-Identifier: Apache-2.0
//
// The host kernel of the preprocessor: NV12 or I420 to a tensor in one sweep over the frame.
//
// Per output row the two source rows of each plane are blended into one row of 16-bit fixed point
// (7 fraction bits), then columns are gathered from it, weighted, turned into RGB, clamped to
// 0..255, normalised and stored. Source rows are visited in ascending order and never written; the
// scratch is two rows, one of luma and one of interleaved chroma. Dispatched at run time to the
// best vector instructions of the processor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "penstock/media/colorimetry.h"
#include "penstock/media/kernels/sampling.h"

namespace penstock {

struct Yuv420Source {
  bool interleaved_chroma = false;  ///< NV12: planes[1] holds U and V by turns.
  std::array<const std::uint8_t*, 3> planes{};
  std::array<std::size_t, 3> strides{};
};

/// How a value is stored: as it is, rounded to the nearest half (ties to even), or rounded to the
/// nearest of 0..255.
enum class TensorElement { kFloat32, kFloat16, kUint8 };

/// Arrays of three are in R, G, B order whatever the output's.
struct TensorTarget {
  void* data = nullptr;  ///< input_width x input_height x 3 elements of the plan's box.
  TensorElement element = TensorElement::kFloat32;
  bool interleaved = false;  ///< NHWC.
  bool bgr = false;
  std::array<float, 3> gain{1, 1, 1};  ///< stored = level * gain + bias
  std::array<float, 3> bias{};
  std::array<float, 3> padding{};  ///< Stored as it is.
  bool has_padding = false;        ///< It is there already, from an earlier frame of the plan.
};

/// `values` stored as `element`, at the start of `out`.
void store_elements(TensorElement element, std::span<const float> values, void* out);

/// Samples of one scratch row for a crop of this width.
constexpr std::size_t scratch_row_samples(int crop_width) {
  return static_cast<std::size_t>(crop_width) + 4;
}

/// `luma_row` and `chroma_row` are scratch of scratch_row_samples() each.
void yuv420_to_tensor(const SamplingPlan& plan, const Yuv420Source& source,
                      const YuvCoefficients& color, const TensorTarget& target,
                      std::int16_t* luma_row, std::int16_t* chroma_row);

}  // namespace penstock
