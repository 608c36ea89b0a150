// SPDX-License-Identifier: Apache-2.0
#include "penstock/draw/draw_list.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace penstock {
namespace {

constexpr DrawColor kRed{.red = 255};

TEST(W04, GivenTenThousandCommands_WhenListed_ThenTheLimitHoldsAndTheRestIsCounted) {
  DrawList list(640, 480);
  for (int i = 0; i < 10'000; ++i) list.fill({0, 0, 2, 2}, kRed);
  EXPECT_EQ(list.commands().size(), 8192u);
  EXPECT_EQ(list.dropped(), 10'000u - 8192u);
}

TEST(W04, GivenCommandsOverWholePictures_WhenListed_ThenTheirPixelsAreBoundedToo) {
  DrawList list(4096, 4096);
  const DrawBox everything{-100, -100, 32767, 32767};
  for (int i = 0; i < 100; ++i) list.mask(everything, 0, {}, kRed);
  EXPECT_EQ(list.commands().size(), 32u) << "pictures' worth";
  EXPECT_EQ(list.dropped(), 68u);
  list.fill({0, 0, 1, 1}, kRed);
  EXPECT_EQ(list.dropped(), 69u);
}

TEST(W04, GivenALongText_WhenListed_ThenEachSixteenGlyphsAreACommand) {
  const auto atlas = GlyphAtlas::make(9);
  const std::vector<Glyph> text(1000, glyphs_of("m", 1).front());
  DrawList list(4096, 100);
  list.text(0, 10, text, *atlas, kRed);
  // Those of the 63 that begin inside the picture; the others show nowhere.
  const int columns = atlas->width(std::vector<Glyph>(16, text.front()));
  EXPECT_EQ(list.commands().size(), static_cast<std::size_t>((4096 + columns - 1) / columns));
  EXPECT_EQ(list.dropped(), 0u);
}

TEST(DrawList, GivenWhatShowsNowhere_WhenListed_ThenItTakesNoRoom) {
  DrawList list(100, 100);
  list.fill({100, 0, 200, 50}, kRed);
  list.fill({-50, 0, 0, 50}, kRed);
  list.fill({20, 20, 20, 50}, kRed);
  list.fill({30, 20, 20, 50}, kRed);
  list.stroke({-1000, 50}, {-2, 50}, 2, kRed);
  list.stroke({200, 0}, {0, 301}, 4, kRed);
  EXPECT_TRUE(list.commands().empty());
  EXPECT_EQ(list.dropped(), 0u);
}

TEST(DrawList, GivenNumbersThatAreNone_WhenListed_ThenTheyAreCountedAsMisplaced) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  DrawList list(100, 100);
  list.stroke({kNan, 0}, {10, 10}, 2, kRed);
  list.stroke({0, 0}, {10, kInfinity}, 2, kRed);
  list.stroke({0, 0}, {10, 10}, kNan, kRed);
  EXPECT_TRUE(list.commands().empty());
  EXPECT_EQ(list.misplaced(), 3u);
}

/// Of a point from a line through both ends, in long double.
long double off_line(long double x, long double y, PointF a, PointF b) {
  const long double dx = b.x - static_cast<long double>(a.x);
  const long double dy = b.y - static_cast<long double>(a.y);
  return std::abs((x - a.x) * dy - (y - a.y) * dx) / std::sqrt(dx * dx + dy * dy);
}

TEST(DrawList, GivenLinesFromAfar_WhenClipped_ThenWhatIsLeftLiesOnThem) {
  constexpr int kSide = 512;
  std::mt19937 random(7);
  std::uniform_real_distribution<float> near(0, kSide), far(-1e6f, 1e6f);
  int listed = 0;
  for (int i = 0; i < 500; ++i) {
    const PointF inside{near(random), near(random)}, away{far(random), far(random)};
    DrawList list(kSide, kSide);
    list.stroke(inside, away, 3, kRed);
    ASSERT_EQ(list.commands().size(), 1u) << "its first end is in the picture";
    const auto line = std::bit_cast<DrawStroke>(list.commands()[0].more);
    EXPECT_LT(off_line(line.x1, line.y1, inside, away), 0.01L);
    EXPECT_EQ(line.x0, inside.x);
    EXPECT_EQ(line.y0, inside.y);
    const bool ends_outside = line.x1 <= 0 || line.x1 >= kSide || line.y1 <= 0 || line.y1 >= kSide;
    EXPECT_TRUE(ends_outside) << "nothing that shows is lost";
    ++listed;
  }
  EXPECT_EQ(listed, 500);
}

}  // namespace
}  // namespace penstock
