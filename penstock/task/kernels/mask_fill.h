// SPDX-License-Identifier: Apache-2.0
//
// An object's mask from prototypes: each pixel is 255 x sigmoid(sum of coefficient x prototype),
// rounded half up, within one level of the exact value. Only pixels of the object's box are worked
// on. Host kernel, dispatched at run time to the best vector instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock {

/// float32 [channels, height, width].
struct Prototypes {
  std::span<const float> values;
  std::size_t width = 0, height = 0;
};

/// Corners in mask pixels; may reach beyond the mask.
struct MaskBox {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

/// Pixels [x0, x1) x [y0, y1).
struct MaskWindow {
  std::size_t x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

/// The pixels of a mask whose centres lie in `box`.
MaskWindow mask_window(const MaskBox& box, std::size_t width, std::size_t height);

/// Writes all of `mask` (width x height): 0 outside `window`, and where the sum is no number.
/// `prototypes` has as many channels as there are coefficients.
void fill_mask(const Prototypes& prototypes, std::span<const float> coefficients,
               const MaskWindow& window, std::span<std::uint8_t> mask);

}  // namespace penstock
