// SPDX-License-Identifier: Apache-2.0
#include "penstock/draw/glyphs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace penstock {
namespace {

constexpr std::string_view kDrawn =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789# .%:-_/()+";

std::size_t substitutes(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count(glyphs_of(text, 1000), kSubstituteGlyph));
}

std::vector<std::uint8_t> picture_of(const GlyphAtlas& atlas, Glyph glyph) {
  const auto coverage = atlas.coverage(glyph);
  return {coverage.begin(), coverage.end()};
}

/// Rows of '#' (covered by half and more), '+' (by less) and space.
std::string as_text(const GlyphAtlas& atlas, char c) {
  const Glyph glyph = glyphs_of(std::string_view(&c, 1), 1).front();
  const auto coverage = atlas.coverage(glyph);
  const auto columns = static_cast<std::size_t>(atlas.columns(glyph));
  std::string text;
  for (std::size_t i = 0; i < coverage.size(); ++i) {
    text += coverage[i] >= 128 ? '#' : coverage[i] > 0 ? '+' : ' ';
    if ((i + 1) % columns == 0) text += '\n';
  }
  return text;
}

TEST(W01, GivenLettersDigitsAndPunctuation_WhenWritten_ThenNoneIsTheSubstitute) {
  EXPECT_EQ(substitutes(kDrawn), 0u);
  EXPECT_EQ(glyphs_of(kDrawn, 1000).size(), kDrawn.size());
}

TEST(W01, GivenEverySize_WhenWritten_ThenAllGlyphsDiffer) {
  for (int size = 7; size <= 40; ++size) {
    const auto atlas = GlyphAtlas::make(size);
    // Of equal rows, coverage alone tells their shape.
    std::set<std::vector<std::uint8_t>> seen{picture_of(*atlas, kSubstituteGlyph)};
    for (const Glyph glyph : glyphs_of(kDrawn, 1000)) {
      EXPECT_TRUE(seen.insert(picture_of(*atlas, glyph)).second)
          << "glyph " << int(glyph) << " at size " << size;
    }
  }
}

TEST(W01, GivenOtherCodePoints_WhenWritten_ThenEachIsOneSubstitute) {
  EXPECT_EQ(substitutes("\n\t!,;?@[]{}~\x7f"), 13u);
  EXPECT_EQ(substitutes("\xc3\xa9"), 1u) << "e acute";
  EXPECT_EQ(substitutes("\xe4\xba\xba"), 1u) << "a Chinese character";
  EXPECT_EQ(substitutes("\xf0\x9f\x98\x80"), 1u) << "a face";
  EXPECT_EQ(glyphs_of("x\xc3\xa9 1", 1000).size(), 4u);
  EXPECT_EQ(substitutes(std::string_view("\0", 1)), 1u);
}

// The cases of Unicode 15, table 3-7 and section 3.9, where a byte that can't go on is one itself.
TEST(W01, GivenBytesThatAreNotUtf8_WhenWritten_ThenEachIsOneSubstitute) {
  for (const auto& [text, count] : std::vector<std::pair<std::string_view, std::size_t>>{
           {"\xff", 1},
           {"\x80\x80", 2},
           {"\xc0\xaf", 2},          // overlong
           {"\xe0\x80\xaf", 3},      // overlong
           {"\xf0\x80\x80\xaf", 4},  // overlong
           {"\xed\xa0\x80", 3},      // surrogate
           {"\xf4\x90\x80\x80", 4},  // beyond the last
           {"\xf4\x8f\xbf\xbf", 1},  // the last
           {"\xe2\x82", 2},          // cut off
           {"\xf0\x9f\x98", 3},      // cut off
           {"\xc3", 1}}) {
    EXPECT_EQ(substitutes(text), count) << ::testing::PrintToString(text);
    EXPECT_EQ(glyphs_of(text, 1000).size(), count) << ::testing::PrintToString(text);
  }
  EXPECT_EQ(substitutes("a\xe2\x82"
                        "b"),
            2u);
}

TEST(W01, GivenALongText_WhenWritten_ThenTheLimitCounts) {
  EXPECT_EQ(glyphs_of(std::string(10'000, 'x'), 64).size(), 64u);
  EXPECT_EQ(glyphs_of("abc", 2), glyphs_of("ab", 2));
  EXPECT_TRUE(glyphs_of("abc", 0).empty());
}

TEST(GlyphAtlas, GivenStemsAndBars_WhenFitted_ThenTheyLieOnWholePixels) {
  for (int size = 9; size <= 48; ++size) {
    const auto atlas = GlyphAtlas::make(size);
    for (const char c : std::string("EFHILT")) {
      const Glyph glyph = glyphs_of(std::string_view(&c, 1), 1).front();
      const auto coverage = atlas->coverage(glyph);
      const auto soft = std::ranges::count_if(coverage, [](int v) { return v > 0 && v < 255; });
      // Ends are round; at sizes whose lines are wide that costs a few pixels each.
      EXPECT_LE(soft, 4 * 6 * ((size + 3) / 8)) << c << " at size " << size;
      const auto full = std::ranges::count(coverage, std::uint8_t{255});
      EXPECT_GE(full, size - 3) << c << " at size " << size;
    }
  }
}

TEST(GlyphAtlas, GivenTheSmallestSizeInUse_WhenDrawn_ThenLettersAreThese) {
  const auto atlas = GlyphAtlas::make(9);
  EXPECT_EQ(as_text(*atlas, 'E'),
            "######\n"
            "#     \n"
            "#     \n"
            "#     \n"
            "##### \n"
            "#     \n"
            "#     \n"
            "#     \n"
            "######\n"
            "      \n"
            "      \n");
}

}  // namespace
}  // namespace penstock
