// SPDX-License-Identifier: Apache-2.0
//
// The characters that are drawn: Latin letters, digits, `#` and space . % : - _ / ( ) +. Every
// other code point, and every byte that is not UTF-8, is one substitute: an empty box.
//
// Glyphs are strokes of our own design (glyph_strokes.h). A GlyphAtlas has them as coverage for one
// size of letters, with stems and bars on whole pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace penstock {

using Glyph = std::uint8_t;
inline constexpr Glyph kSubstituteGlyph = 0;

/// One glyph a code point, `limit` at most.
std::vector<Glyph> glyphs_of(std::string_view utf8, std::size_t limit);

/// Immutable, shared, thread-safe.
class GlyphAtlas {
 public:
  static constexpr int kLeastSize = 5;
  static constexpr int kMostSize = 128;

  /// `size`: height of capital letters in pixels, kLeastSize..kMostSize (limited to that).
  static std::shared_ptr<const GlyphAtlas> make(int size);

  int size() const { return size_; }
  /// Rows of every glyph: capitals and what hangs below the line.
  int height() const { return height_; }
  /// Columns that a glyph has, and how far on the next one begins.
  int columns(Glyph glyph) const { return cell(glyph).columns; }
  int advance(Glyph glyph) const { return cell(glyph).advance; }
  int width(std::span<const Glyph> glyphs) const;
  /// height() rows of columns(glyph) values, 255 where the glyph is, 0 where it is not.
  std::span<const std::uint8_t> coverage(Glyph glyph) const;

 private:
  struct Cell {
    std::size_t first = 0;
    int columns = 0;
    int advance = 0;
  };
  explicit GlyphAtlas(int size);
  const Cell& cell(Glyph glyph) const {
    return cells_[glyph < cells_.size() ? glyph : kSubstituteGlyph];
  }

  int size_;
  int height_ = 0;
  std::vector<Cell> cells_;
  std::vector<std::uint8_t> coverage_;
};

}  // namespace penstock
