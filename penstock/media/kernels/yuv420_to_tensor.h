// SPDX-License-Identifier: Apache-2.0
//
// The host kernel of the preprocessor: NV12 or I420 to a tensor in one sweep over the frame.
//
// Eight pixels at a step: the neighbours of each are shuffled out of windows of the two source
// rows, weighted and summed in 32-bit fixed point, turned into RGB, clamped to 0..255, normalised
// and stored. Source rows are visited in ascending order and never written, no byte outside the
// crop's rows is read, and there is no scratch. Dispatched at run time to the best vector
// instructions of the processor.
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

/// `plan` was made for the source's kind of chroma.
void yuv420_to_tensor(const SamplingPlan& plan, const Yuv420Source& source,
                      const YuvCoefficients& color, const TensorTarget& target);

}  // namespace penstock
