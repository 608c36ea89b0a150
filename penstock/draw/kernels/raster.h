// SPDX-License-Identifier: Apache-2.0
//
// The host rasteriser: draws commands onto rows of a BGRA picture that are in cache already. What
// lies outside the rows, the picture or a command's box is not touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "penstock/draw/draw_list.h"
#include "penstock/draw/kernels/yuv420_to_bgra.h"

namespace penstock {

/// uint8 [count, height, width], contiguous.
struct MaskPlanes {
  const std::uint8_t* data = nullptr;
  std::size_t count = 0, height = 0, width = 0;
};

struct RasterSource {
  std::span<const DrawCommand> commands;
  const GlyphAtlas* atlas = nullptr;  ///< Null draws no text.
  MaskPlanes masks{};                 ///< Of kMask; an index beyond them draws nothing.
  MaskPlanes class_map{};             ///< Of kClassMap: one plane, or none.
};

/// Draws on rows [first, end) of the picture, in the commands' order.
void draw_rows(const RasterSource& source, const BgraPicture& picture, std::size_t first,
               std::size_t end);

}  // namespace penstock
