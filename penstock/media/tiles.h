// SPDX-License-Identifier: Apache-2.0
//
// A frame cut into tiles, so that a model with a small input sees small objects: a grid of equal
// rectangles that overlap and cover the frame.
#pragma once

#include <vector>

#include "penstock/media/geometry.h"

namespace penstock {

struct TileGrid {
  int columns = 1, rows = 1;  ///< 1..kMaxSide each.
  int overlap = 0;  ///< Per cent of a tile's side that it shares with each neighbour, 0..50.

  static constexpr int kMaxSide = 16;
  static constexpr int kMaxOverlap = 50;
};

/// Row by row, at chroma boundaries. A tile's sides are rounded up to even, so tiles overlap by at
/// least what was asked for less two pixels. kInvalidArgument: a grid out of its ranges, an odd or
/// empty frame.
Result<std::vector<RectI>> plan_tiles(const TileGrid& grid, int frame_width, int frame_height);

}  // namespace penstock
