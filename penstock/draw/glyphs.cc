// SPDX-License-Identifier: Apache-2.0
#include "penstock/draw/glyphs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "penstock/draw/glyph_strokes.h"

namespace penstock {
namespace {

constexpr double kLine = 14;    // Where letters stand.
constexpr double kLowest = 18;  // What hangs below.
// Heights at which glyphs have bars or ends: these come to lie on whole pixels.
constexpr std::array kKeyHeights{0.0, 4.0, 7.0, 9.0, kLine, kLowest};
constexpr int kCurveSteps = 8;

struct Point {
  double x = 0, y = 0;
};
using Polyline = std::vector<Point>;

int digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

Polyline parse_stroke(std::string_view text) {
  Polyline line;
  std::optional<Point> control;
  for (std::size_t i = 0; i + 1 < text.size();) {
    const bool is_control = text[i] == '*';
    if (is_control) ++i;
    const Point point{static_cast<double>(digit(text[i])), static_cast<double>(digit(text[i + 1]))};
    i += 2;
    if (is_control) {
      control = point;
      continue;
    }
    if (control && !line.empty()) {
      const Point from = line.back();
      for (int step = 1; step < kCurveSteps; ++step) {
        const double t = static_cast<double>(step) / kCurveSteps;
        const double a = (1 - t) * (1 - t), b = 2 * t * (1 - t), c = t * t;
        line.push_back(
            {a * from.x + b * control->x + c * point.x, a * from.y + b * control->y + c * point.y});
      }
    }
    control.reset();
    line.push_back(point);
  }
  return line;
}

std::vector<Polyline> parse_strokes(std::string_view text) {
  std::vector<Polyline> strokes;
  while (!text.empty()) {
    const auto space = std::min(text.find(' '), text.size());
    strokes.push_back(parse_stroke(text.substr(0, space)));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return strokes;
}

/// From the grid to pixels.
class Fitting {
 public:
  explicit Fitting(int size)
      : stroke_(std::max(1L, std::lround(size * 0.13))),
        unit_((size - stroke_) / kLine),
        height_(static_cast<int>(snapped(kLowest) + stroke_)) {}

  double stroke() const { return static_cast<double>(stroke_); }
  int height() const { return height_; }

  /// Of a glyph without its strokes' half widths left and right. One with a stem in its middle gets
  /// an even number of columns, so that the stem lies on whole pixels.
  int width(const GlyphStrokes& glyph, const std::vector<Polyline>& strokes) const {
    const auto columns = static_cast<int>(std::lround(glyph.width * unit_));
    const double middle = glyph.width / 2.0;
    for (const Polyline& line : strokes) {
      for (std::size_t i = 1; i < line.size(); ++i) {
        if (line[i].x == middle && line[i - 1].x == middle) return (columns + 1) / 2 * 2;
      }
    }
    return columns;
  }

  Point place(Point point, int glyph_width, int columns) const {
    const double x = glyph_width == 0 ? 0 : point.x * columns / glyph_width;
    return {x + stroke() / 2, height_of(point.y) + stroke() / 2};
  }

 private:
  double snapped(double y) const { return std::round(y * unit_); }
  double height_of(double y) const {
    for (std::size_t i = 1; i < kKeyHeights.size(); ++i) {
      const double low = kKeyHeights[i - 1], high = kKeyHeights[i];
      if (y <= high) {
        return snapped(low) + (y - low) / (high - low) * (snapped(high) - snapped(low));
      }
    }
    return snapped(kLowest);
  }

  long stroke_;
  double unit_;  // Pixels of a step of the grid.
  int height_;
};

double distance(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double square = dx * dx + dy * dy;
  const double t =
      square > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / square, 0.0, 1.0) : 0;
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

/// Of a line of some width, around the centre of a pixel.
std::uint8_t covered(Point centre, const std::vector<Polyline>& strokes, double width) {
  double nearest = width + 1;
  for (const Polyline& line : strokes) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      nearest = std::min(nearest, distance(centre, line[i == 0 ? 0 : i - 1], line[i]));
    }
  }
  return static_cast<std::uint8_t>(
      std::lround(255 * std::clamp(width / 2 + 0.5 - nearest, 0.0, 1.0)));
}

Glyph glyph_of(char32_t code) {
  static const auto table = [] {
    std::array<Glyph, 128> glyphs{};
    for (std::size_t i = 1; i < kGlyphStrokes.size(); ++i) {
      glyphs[static_cast<unsigned char>(kGlyphStrokes[i].character)] = static_cast<Glyph>(i);
    }
    return glyphs;
  }();
  return code < table.size() ? table[code] : kSubstituteGlyph;
}

/// Bytes of the code point that `text` begins with, 1 for a byte that begins none. Overlong forms,
/// surrogates and what is above U+10FFFF are none.
std::size_t code_point_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (at(i) & 0xc0u) == 0x80u; };
  const unsigned first = at(0);
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 1;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && at(1) < 0xa0;
    const bool surrogate = first == 0xed && at(1) > 0x9f;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 1;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && at(1) < 0x90;
    const bool beyond = first == 0xf4 && at(1) > 0x8f;
    return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4 : 1;
  }
  return 1;
}

}  // namespace

std::vector<Glyph> glyphs_of(std::string_view utf8, std::size_t limit) {
  std::vector<Glyph> glyphs;
  glyphs.reserve(std::min(limit, utf8.size()));
  while (!utf8.empty() && glyphs.size() < limit) {
    const std::size_t bytes = code_point_bytes(utf8);
    const auto first = static_cast<unsigned char>(utf8.front());
    glyphs.push_back(bytes == 1 ? glyph_of(first) : kSubstituteGlyph);
    utf8.remove_prefix(bytes);
  }
  return glyphs;
}

std::shared_ptr<const GlyphAtlas> GlyphAtlas::make(int size) {
  return std::shared_ptr<const GlyphAtlas>(new GlyphAtlas(std::clamp(size, kLeastSize, kMostSize)));
}

GlyphAtlas::GlyphAtlas(int size) : size_(size) {
  const Fitting fitting(size);
  height_ = fitting.height();
  const int gap = std::max(1, static_cast<int>(std::lround(size * 0.17)));
  for (const GlyphStrokes& glyph : kGlyphStrokes) {
    std::vector<Polyline> strokes = parse_strokes(glyph.strokes);
    const int inner = fitting.width(glyph, strokes);
    for (Polyline& line : strokes) {
      for (Point& point : line) point = fitting.place(point, glyph.width, inner);
    }
    const int columns = inner + static_cast<int>(fitting.stroke());
    cells_.push_back({coverage_.size(), columns, columns + gap});
    for (int y = 0; y < height_; ++y) {
      for (int x = 0; x < columns; ++x) {
        coverage_.push_back(covered({x + 0.5, y + 0.5}, strokes, fitting.stroke()));
      }
    }
  }
}

int GlyphAtlas::width(std::span<const Glyph> glyphs) const {
  int sum = 0;
  for (const Glyph glyph : glyphs) sum += advance(glyph);
  return sum;
}

std::span<const std::uint8_t> GlyphAtlas::coverage(Glyph glyph) const {
  const Cell& found = cell(glyph);
  return std::span(coverage_).subspan(
      found.first, static_cast<std::size_t>(found.columns) * static_cast<std::size_t>(height_));
}

}  // namespace penstock
