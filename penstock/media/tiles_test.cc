// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/tiles.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace penstock {
namespace {

TEST(V10, GivenAnyGrid_WhenTilesAreCut_ThenTheyAreEvenInsideEqualAndLeaveNoPixelOut) {
  for (const auto& [width, height] :
       {std::pair{2, 2}, {64, 48}, {320, 240}, {1920, 1080}, {30, 2}}) {
    for (const int columns : {1, 2, 3, 5, 16}) {
      for (const int rows : {1, 2, 4}) {
        for (const int overlap : {0, 7, 20, 50}) {
          const auto tiles = plan_tiles({columns, rows, overlap}, width, height);
          ASSERT_TRUE(tiles);
          ASSERT_EQ(tiles->size(), static_cast<std::size_t>(columns * rows));
          // Bytes, filled and searched by the C library: under TSan single pixels took minutes.
          std::string covered(static_cast<std::size_t>(width * height), '-');
          for (const RectI& tile : *tiles) {
            EXPECT_EQ((tile.x | tile.y | tile.width | tile.height) & 1, 0);
            EXPECT_EQ(tile.width, tiles->front().width);
            EXPECT_EQ(tile.height, tiles->front().height);
            ASSERT_TRUE(tile.x >= 0 && tile.y >= 0 && tile.x + tile.width <= width &&
                        tile.y + tile.height <= height);
            for (int y = tile.y; y < tile.y + tile.height; ++y) {
              std::memset(&covered[static_cast<std::size_t>(y * width + tile.x)], '+',
                          static_cast<std::size_t>(tile.width));
            }
          }
          EXPECT_EQ(covered.find('-'), std::string::npos)
              << width << "x" << height << " in " << columns << "x" << rows << " by " << overlap;
        }
      }
    }
  }
}

TEST(V10, GivenAnOverlap_WhenTilesAreCut_ThenNeighboursShareThatPartOfThem) {
  const auto tiles = plan_tiles({4, 1, 20}, 3400, 100);
  ASSERT_TRUE(tiles);
  // 4 tiles less 3 fifths of one are 3400.
  const std::vector<RectI> expected{
      {0, 0, 1000, 100}, {800, 0, 1000, 100}, {1600, 0, 1000, 100}, {2400, 0, 1000, 100}};
  EXPECT_EQ(*tiles, expected);
}

TEST(V10, GivenAGridOutOfItsRanges_WhenTilesAreCut_ThenInvalidArgument) {
  for (const TileGrid& grid :
       {TileGrid{0, 1, 0}, TileGrid{1, 17, 0}, TileGrid{2, 2, -1}, TileGrid{2, 2, 51}}) {
    const auto tiles = plan_tiles(grid, 320, 240);
    ASSERT_FALSE(tiles);
    EXPECT_EQ(tiles.error().kind(), ErrorKind::kInvalidArgument);
  }
  EXPECT_FALSE(plan_tiles({2, 2, 0}, 321, 240));
}

}  // namespace
}  // namespace penstock
