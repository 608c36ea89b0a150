// SPDX-License-Identifier: Apache-2.0
//
// The host kernel of the conversion that drawing begins with: rows of NV12 or I420 to BGRA of the
// same size, within one level of the exact value.
//
// In 16-bit fixed point: chroma is interpolated between rows into scratch, between columns and
// turned into what it adds to red, green and blue, and added to luma. Source rows are visited in
// ascending order and never written; at most the last two rows of a plane are looked at again. No
// byte outside the rows is read. Dispatched at run time to the best vector instructions of the
// processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "penstock/media/colorimetry.h"
#include "penstock/media/kernels/yuv420_to_tensor.h"

namespace penstock {

/// Bytes of a pixel.
inline constexpr std::size_t kBgraBytes = 4;

/// An even size.
struct BgraPicture {
  std::uint8_t* data = nullptr;
  std::size_t stride = 0;
  std::size_t width = 0, height = 0;
  std::uint8_t* row(std::size_t y) const { return data + y * stride; }
};

/// Elements of the scratch for a picture of `width`: less than two rows of the picture's luma in
/// 16 bits.
std::size_t bgra_scratch(std::size_t width);

/// Rows [first, end) of the picture, opaque.
void yuv420_to_bgra(const Yuv420Source& source, const YuvCoefficients& color, ChromaSite site,
                    const BgraPicture& picture, std::size_t first, std::size_t end,
                    std::span<std::uint16_t> scratch);

}  // namespace penstock
