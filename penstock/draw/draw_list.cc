// SPDX-License-Identifier: Apache-2.0
#include "penstock/draw/draw_list.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace penstock {
namespace {

/// A coordinate that a DrawBox can hold; what lies so far out shows nowhere.
std::int16_t limited(double value) {
  return static_cast<std::int16_t>(std::clamp(value, -32768.0, 32767.0));
}

/// The part of a line inside [low, high] x [low, high], by Liang and Barsky, in double precision:
/// ends may lie anywhere that a float can say.
struct Line {
  double x0, y0, x1, y1;
};

bool clip_axis(double start, double way, double low, double high, double& from, double& to) {
  if (way == 0) return start >= low && start <= high;
  const double a = (low - start) / way;
  const double b = (high - start) / way;
  from = std::max(from, std::min(a, b));
  to = std::min(to, std::max(a, b));
  return from <= to;
}

std::optional<Line> clipped(const Line& line, double margin, double width, double height) {
  const double dx = line.x1 - line.x0;
  const double dy = line.y1 - line.y0;
  double from = 0, to = 1;
  if (!clip_axis(line.x0, dx, -margin, width + margin, from, to) ||
      !clip_axis(line.y0, dy, -margin, height + margin, from, to)) {
    return std::nullopt;
  }
  // What comes from very far out has no digits left to be exact with.
  const auto x = [&](double part) {
    return std::clamp(line.x0 + part * dx, -margin, width + margin);
  };
  const auto y = [&](double part) {
    return std::clamp(line.y0 + part * dy, -margin, height + margin);
  };
  return Line{x(from), y(from), x(to), y(to)};
}

}  // namespace

DrawList::DrawList(int width, int height)
    : width_(std::clamp(width, 1, kMaxDrawnSide)),
      height_(std::clamp(height, 1, kMaxDrawnSide)),
      pixels_left_(
          std::max(kLeastDrawnPixels, kMaxDrawnPictures * static_cast<std::uint64_t>(width_) *
                                          static_cast<std::uint64_t>(height_))) {}

std::uint64_t DrawList::area(const DrawBox& box) const {
  const int columns = std::min<int>(box.x1, width_) - std::max<int>(box.x0, 0);
  const int rows = std::min<int>(box.y1, height_) - std::max<int>(box.y0, 0);
  if (columns <= 0 || rows <= 0) return 0;
  return static_cast<std::uint64_t>(columns) * static_cast<std::uint64_t>(rows);
}

void DrawList::add(const DrawCommand& command, std::uint64_t pixels) {
  if (pixels == 0) return;  // Shows nowhere.
  if (commands_.size() >= kMaxDrawCommands || pixels > pixels_left_) {
    ++dropped_;
    return;
  }
  pixels_left_ -= pixels;
  commands_.push_back(command);
}

void DrawList::fill(const DrawBox& box, DrawColor color) {
  add({.kind = DrawKind::kFill, .color = color, .box = box}, area(box));
}

void DrawList::frame(const DrawBox& box, int thickness, DrawColor color) {
  const int width = std::clamp(thickness, 1, kMaxDrawnSide);
  const auto sides = static_cast<std::uint64_t>(2 * width) *
                     (static_cast<std::uint64_t>(width_) + static_cast<std::uint64_t>(height_));
  add({.kind = DrawKind::kFrame,
       .value = static_cast<std::uint16_t>(width),
       .color = color,
       .box = box},
      std::min(area(box), sides));
}

void DrawList::stroke(PointF from, PointF to, float thickness, DrawColor color) {
  for (const float number : {from.x, from.y, to.x, to.y, thickness}) {
    if (!std::isfinite(number)) return misplace();
  }
  const double wide = std::clamp(static_cast<double>(thickness), 1.0 / 16, 4095.0);
  // Half of it and the soft edge, rounded up.
  const double reach = std::ceil(wide / 2 + 1);
  const auto line = clipped({static_cast<double>(from.x), static_cast<double>(from.y),
                             static_cast<double>(to.x), static_cast<double>(to.y)},
                            reach, width_, height_);
  if (!line) return;
  const DrawBox box{limited(std::floor(std::min(line->x0, line->x1) - reach)),
                    limited(std::floor(std::min(line->y0, line->y1) - reach)),
                    limited(std::ceil(std::max(line->x0, line->x1) + reach)),
                    limited(std::ceil(std::max(line->y0, line->y1) + reach))};
  const DrawStroke stroke{static_cast<float>(line->x0), static_cast<float>(line->y0),
                          static_cast<float>(line->x1), static_cast<float>(line->y1)};
  const double length = std::hypot(line->x1 - line->x0, line->y1 - line->y0);
  const auto along = static_cast<std::uint64_t>((length + 2 * reach) * 4 * reach);
  add({.kind = DrawKind::kStroke,
       .value = static_cast<std::uint16_t>(std::lround(wide * 16)),
       .color = color,
       .box = box,
       .more = std::bit_cast<std::array<std::uint8_t, 16>>(stroke)},
      std::min(area(box), along));
}

void DrawList::text(int x, int y, std::span<const Glyph> glyphs, const GlyphAtlas& atlas,
                    DrawColor color) {
  constexpr std::size_t kRun = std::tuple_size_v<decltype(DrawCommand::more)>;
  while (!glyphs.empty()) {
    const auto run = glyphs.first(std::min(glyphs.size(), kRun));
    glyphs = glyphs.subspan(run.size());
    const int width = atlas.width(run);
    DrawCommand command{
        .kind = DrawKind::kText,
        .count = static_cast<std::uint8_t>(run.size()),
        .color = color,
        .box = {limited(x), limited(y), limited(x + width), limited(y + atlas.height())}};
    std::ranges::copy(run, command.more.begin());
    add(command, area(command.box));
    x += width;
  }
}

void DrawList::mask(const DrawBox& box, std::uint16_t index, const MaskPlace& place,
                    DrawColor color) {
  add({.kind = DrawKind::kMask,
       .value = index,
       .color = color,
       .box = box,
       .more = std::bit_cast<std::array<std::uint8_t, 16>>(place)},
      area(box));
}

void DrawList::class_map(const DrawBox& box, std::uint16_t without, const MaskPlace& place,
                         std::uint8_t opacity) {
  add({.kind = DrawKind::kClassMap,
       .value = without,
       .color = {.opacity = opacity},
       .box = box,
       .more = std::bit_cast<std::array<std::uint8_t, 16>>(place)},
      area(box));
}

}  // namespace penstock
