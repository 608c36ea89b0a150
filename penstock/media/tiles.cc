// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/tiles.h"

#include <algorithm>
#include <cstdint>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

struct Span {
  int start, length;
};

/// `side` is even.
std::vector<Span> cut(int side, int count, int overlap) {
  // count tiles less the count - 1 parts of one that are shared, in whole numbers.
  const std::int64_t parts = std::int64_t{100} * count - std::int64_t{overlap} * (count - 1);
  const std::int64_t exact = (std::int64_t{100} * side + parts - 1) / parts;
  const int length = static_cast<int>(std::min<std::int64_t>((exact + 1) & ~std::int64_t{1}, side));
  std::vector<Span> spans;
  for (int i = 0; i < count; ++i) {
    const std::int64_t start = count == 1 ? 0 : std::int64_t{i} * (side - length) / (count - 1);
    spans.push_back({static_cast<int>(start & ~std::int64_t{1}), length});
  }
  return spans;
}

}  // namespace

Result<std::vector<RectI>> plan_tiles(const TileGrid& grid, int frame_width, int frame_height) {
  const auto is_side = [](int count) { return count >= 1 && count <= TileGrid::kMaxSide; };
  if (!is_side(grid.columns) || !is_side(grid.rows)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("{}x{} tiles are not within 1x1..{}x{}", grid.columns, grid.rows,
                           TileGrid::kMaxSide, TileGrid::kMaxSide));
  }
  if (grid.overlap < 0 || grid.overlap > TileGrid::kMaxOverlap) {
    return fail(ErrorKind::kInvalidArgument, str_format("an overlap of {} % is not within 0..{}",
                                                        grid.overlap, TileGrid::kMaxOverlap));
  }
  PENSTOCK_TRY(grow_to_chroma({0, 0, frame_width, frame_height}, frame_width, frame_height));
  const std::vector<Span> columns = cut(frame_width, grid.columns, grid.overlap);
  std::vector<RectI> tiles;
  for (const Span& row : cut(frame_height, grid.rows, grid.overlap)) {
    for (const Span& column : columns) {
      tiles.push_back({column.start, row.start, column.length, row.length});
    }
  }
  return tiles;
}

}  // namespace penstock
