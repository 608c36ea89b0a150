// SPDX-License-Identifier: Apache-2.0
#include "penstock/draw/kernels/raster.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "penstock/draw/colors.h"

namespace penstock {
namespace {

/// Columns and rows that a command may touch, within the picture and the rows at hand.
struct Window {
  int x0, y0, x1, y1;
  bool is_empty() const { return x0 >= x1 || y0 >= y1; }
};

std::uint8_t mix(unsigned under, unsigned over, unsigned opacity) {
  const unsigned sum = under * (255 - opacity) + over * opacity + 128;
  return static_cast<std::uint8_t>((sum + (sum >> 8)) >> 8);
}

void blend(std::uint8_t* pixel, DrawColor color, unsigned opacity) {
  pixel[0] = mix(pixel[0], color.blue, opacity);
  pixel[1] = mix(pixel[1], color.green, opacity);
  pixel[2] = mix(pixel[2], color.red, opacity);
}

class Raster {
 public:
  Raster(const RasterSource& source, const BgraPicture& picture, std::size_t first, std::size_t end)
      : source_(source),
        picture_(picture),
        first_(static_cast<int>(first)),
        end_(static_cast<int>(end)) {}

  void draw(const DrawCommand& command) const {
    const Window window = clipped(command.box);
    if (window.is_empty()) return;
    switch (command.kind) {
      case DrawKind::kFill:
        return fill(window, command.color);
      case DrawKind::kFrame:
        return frame(command, window);
      case DrawKind::kStroke:
        return stroke(command, window);
      case DrawKind::kText:
        return text(command, window);
      case DrawKind::kMask:
        return mask(command, window);
      case DrawKind::kClassMap:
        return class_map(command, window);
    }
  }

 private:
  Window clipped(const DrawBox& box) const {
    return {std::max<int>(box.x0, 0), std::max<int>(box.y0, first_),
            std::min<int>(box.x1, static_cast<int>(picture_.width)), std::min<int>(box.y1, end_)};
  }
  Window narrowed(const Window& to, int x0, int y0, int x1, int y1) const {
    return {std::max(to.x0, x0), std::max(to.y0, y0), std::min(to.x1, x1), std::min(to.y1, y1)};
  }
  std::uint8_t* at(int x, int y) const {
    return picture_.row(static_cast<std::size_t>(y)) + kBgraBytes * static_cast<std::size_t>(x);
  }

  void fill(const Window& window, DrawColor color) const;
  void frame(const DrawCommand& command, const Window& window) const;
  void stroke(const DrawCommand& command, const Window& window) const;
  void stroke_row(const DrawStroke& line, double radius, const Window& window, int y,
                  DrawColor color) const;
  void text(const DrawCommand& command, const Window& window) const;
  void mask(const DrawCommand& command, const Window& window) const;
  void class_map(const DrawCommand& command, const Window& window) const;

  const RasterSource& source_;
  const BgraPicture& picture_;
  int first_, end_;
};

void Raster::fill(const Window& window, DrawColor color) const {
  if (window.is_empty()) return;
  const std::array<std::uint8_t, kBgraBytes> pixel{color.blue, color.green, color.red, 255};
  for (int y = window.y0; y < window.y1; ++y) {
    std::uint8_t* to = at(window.x0, y);
    for (int x = window.x0; x < window.x1; ++x, to += kBgraBytes) {
      if (color.opacity == 255) {
        std::memcpy(to, pixel.data(), kBgraBytes);
      } else {
        blend(to, color, color.opacity);
      }
    }
  }
}

void Raster::frame(const DrawCommand& command, const Window& window) const {
  const DrawBox& box = command.box;
  const int wide = command.value;
  // Upper and lower band, and what is left between them of the sides; bands of a thin box meet.
  const int inner_top = std::min(box.y0 + wide, +box.y1);
  const int inner_bottom = std::max(box.y1 - wide, inner_top);
  const int inner_left = std::min(box.x0 + wide, +box.x1);
  const int inner_right = std::max(box.x1 - wide, inner_left);
  fill(narrowed(window, box.x0, box.y0, box.x1, inner_top), command.color);
  fill(narrowed(window, box.x0, inner_bottom, box.x1, box.y1), command.color);
  fill(narrowed(window, box.x0, inner_top, inner_left, inner_bottom), command.color);
  fill(narrowed(window, inner_right, inner_top, box.x1, inner_bottom), command.color);
}

void Raster::stroke(const DrawCommand& command, const Window& window) const {
  const auto line = std::bit_cast<DrawStroke>(command.more);
  const double radius = command.value / 32.0;
  for (int y = window.y0; y < window.y1; ++y) stroke_row(line, radius, window, y, command.color);
}

void Raster::stroke_row(const DrawStroke& line, double radius, const Window& window, int y,
                        DrawColor color) const {
  const double x0 = static_cast<double>(line.x0), y0 = static_cast<double>(line.y0);
  const double dx = static_cast<double>(line.x1) - x0, dy = static_cast<double>(line.y1) - y0;
  const double reach = radius + 0.5;
  // Only the part of the line that comes near this row can colour its pixels; so a long slanting
  // line costs its length and not its box.
  const double above = y + 0.5 - reach - y0, below = y + 0.5 + reach - y0;
  double from = 0, to = 1;
  if (std::abs(dy) > 1e-6) {
    from = std::max(0.0, std::min(above / dy, below / dy));
    to = std::min(1.0, std::max(above / dy, below / dy));
    if (from > to) return;
  }
  const double left = x0 + std::min(from * dx, to * dx) - reach;
  const double right = x0 + std::max(from * dx, to * dx) + reach;
  const int begin = std::max(window.x0, static_cast<int>(std::floor(left)));
  const int end = std::min(window.x1, static_cast<int>(std::ceil(right)));
  const double square = dx * dx + dy * dy;
  const double step = square > 0 ? 1 / square : 0;
  for (int x = begin; x < end; ++x) {
    const double px = x + 0.5 - x0, py = y + 0.5 - y0;
    const double t = std::clamp((px * dx + py * dy) * step, 0.0, 1.0);
    const double ex = px - t * dx, ey = py - t * dy;
    const double away = ex * ex + ey * ey;
    if (away >= reach * reach) continue;
    const double cover = std::min(1.0, reach - std::sqrt(away));
    blend(at(x, y), color, static_cast<unsigned>(cover * color.opacity + 0.5));
  }
}

void Raster::text(const DrawCommand& command, const Window& window) const {
  if (source_.atlas == nullptr) return;
  const GlyphAtlas& atlas = *source_.atlas;
  int left = command.box.x0;
  for (const Glyph glyph :
       std::span(command.more).first(std::min<std::size_t>(command.count, command.more.size()))) {
    const int columns = atlas.columns(glyph);
    const auto coverage = atlas.coverage(glyph);
    const Window cell =
        narrowed(window, left, window.y0, left + columns, command.box.y0 + atlas.height());
    for (int y = cell.y0; y < cell.y1; ++y) {
      const auto row = coverage.subspan(static_cast<std::size_t>((y - command.box.y0) * columns));
      for (int x = cell.x0; x < cell.x1; ++x) {
        const unsigned covered = row[static_cast<std::size_t>(x - left)];
        if (covered > 0) blend(at(x, y), command.color, covered * command.color.opacity / 255);
      }
    }
    left += atlas.advance(glyph);
  }
}

/// A coordinate between two samples, kept inside their row.
struct Between {
  std::size_t first, second;
  float weight;  ///< Of the second.

  Between(float position, std::size_t count) {
    const auto last = static_cast<float>(count - 1);
    const float inside = std::clamp(position, 0.0f, last);
    first = static_cast<std::size_t>(inside);
    second = std::min(first + 1, count - 1);
    weight = inside - static_cast<float>(first);
  }
};

void Raster::mask(const DrawCommand& command, const Window& window) const {
  const MaskPlanes& masks = source_.masks;
  if (masks.data == nullptr || command.value >= masks.count) return;
  const auto place = std::bit_cast<MaskPlace>(command.more);
  const std::uint8_t* mask = masks.data + command.value * masks.width * masks.height;
  for (int y = window.y0; y < window.y1; ++y) {
    const Between rows(static_cast<float>(y) * place.y_scale + place.y_start, masks.height);
    const std::uint8_t* upper = mask + rows.first * masks.width;
    const std::uint8_t* lower = mask + rows.second * masks.width;
    for (int x = window.x0; x < window.x1; ++x) {
      const Between columns(static_cast<float>(x) * place.x_scale + place.x_start, masks.width);
      const auto between = [&](const std::uint8_t* row) {
        const float a = row[columns.first], b = row[columns.second];
        return a + columns.weight * (b - a);
      };
      const float above = between(upper);
      if (above + rows.weight * (between(lower) - above) >= 127.5f) {
        blend(at(x, y), command.color, command.color.opacity);
      }
    }
  }
}

void Raster::class_map(const DrawCommand& command, const Window& window) const {
  const MaskPlanes& map = source_.class_map;
  if (map.data == nullptr || map.count == 0) return;
  const auto place = std::bit_cast<MaskPlace>(command.more);
  const auto nearest = [](float position, std::size_t count) {
    return static_cast<std::size_t>(
        std::clamp(position + 0.5f, 0.0f, static_cast<float>(count - 1) + 0.5f));
  };
  for (int y = window.y0; y < window.y1; ++y) {
    const std::uint8_t* row =
        map.data +
        nearest(static_cast<float>(y) * place.y_scale + place.y_start, map.height) * map.width;
    for (int x = window.x0; x < window.x1; ++x) {
      const std::uint8_t found =
          row[nearest(static_cast<float>(x) * place.x_scale + place.x_start, map.width)];
      if (found != command.value) {
        blend(at(x, y), color_of_class(found), command.color.opacity);
      }
    }
  }
}

}  // namespace

void draw_rows(const RasterSource& source, const BgraPicture& picture, std::size_t first,
               std::size_t end) {
  const Raster raster(source, picture, first, end);
  for (const DrawCommand& command : source.commands) raster.draw(command);
}

}  // namespace penstock
