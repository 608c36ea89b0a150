// SPDX-License-Identifier: Apache-2.0
//
// Objects' masks from prototypes: each pixel is 255 x sigmoid(sum of coefficient x prototype),
// rounded half up, within one level of the exact value. Only pixels of the objects' boxes are
// worked on. Host kernel, dispatched at run time to the best vector instructions.
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

struct MaskJob {
  std::span<const float> coefficients;  ///< As many as the prototypes have channels.
  MaskWindow window;                    ///< Within the mask.
  std::span<std::uint8_t> mask;         ///< width x height.
};

/// Writes all of each mask: 0 outside its window, and where the sum is no number.
void fill_masks(const Prototypes& prototypes, std::span<const MaskJob> jobs);

}  // namespace penstock
