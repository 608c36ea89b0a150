// SPDX-License-Identifier: Apache-2.0
//
// DrawList is what is to be drawn on one frame: at most kMaxDrawCommands commands of 32 bytes, so
// that a whole list is a marked metadata transfer within contract A01's 256 KiB. It is bounded in
// pixels, too: a device never works on more than kMaxDrawnPictures pictures' worth of them. What
// goes beyond either limit is counted and left out (contract W04).
//
//   DrawList list(1920, 1080);
//   list.frame({100, 50, 300, 400}, 3, color);
//   if (list.dropped() > 0) warn(...);
//
// Positions are in pixels of the picture, with the origin at the top-left corner of the top-left
// pixel; y points down. Whatever the numbers are, nothing outside the picture is written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "penstock/draw/glyphs.h"
#include "penstock/media/geometry.h"

namespace penstock {

inline constexpr std::size_t kMaxDrawCommands = 8192;
/// Pixels that a list's commands may touch, in pictures of its size; small pictures get
/// kLeastDrawnPixels.
inline constexpr std::uint64_t kMaxDrawnPictures = 32;
inline constexpr std::uint64_t kLeastDrawnPixels = std::uint64_t{1} << 22;
/// Contract V03: no side of a picture that is drawn on is longer.
inline constexpr int kMaxDrawnSide = 4096;

struct DrawColor {
  std::uint8_t blue = 0, green = 0, red = 0;
  std::uint8_t opacity = 255;
  bool operator==(const DrawColor&) const = default;
};

/// Pixels [x0, x1) x [y0, y1); may reach out of the picture.
struct DrawBox {
  std::int16_t x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  bool operator==(const DrawBox&) const = default;
};

enum class DrawKind : std::uint8_t {
  kFill,      ///< All of the box.
  kFrame,     ///< Its border; `value` is how wide, inwards.
  kStroke,    ///< A line with round ends; `value` is its width in 1/16 pixel, `more` a DrawStroke.
  kText,      ///< `count` glyphs of `more` from the box's upper left corner on.
  kMask,      ///< Where mask `value` is set; `more` is a MaskPlace.
  kClassMap,  ///< In the colour of each pixel's class, but for class `value`; `more` is a
              ///< MaskPlace.
};

/// Ends of a line.
struct DrawStroke {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

/// Where in a mask the centre of pixel (x, y) lies: x * x_scale + x_start, counted from the centre
/// of the mask's first sample; y likewise.
struct MaskPlace {
  float x_scale = 1, x_start = 0, y_scale = 1, y_start = 0;
};

/// `value` of a class map of which every class is drawn.
inline constexpr std::uint16_t kNoClass = 0xffff;

struct DrawCommand {
  DrawKind kind = DrawKind::kFill;
  std::uint8_t count = 0;
  std::uint16_t value = 0;
  DrawColor color{};
  DrawBox box{};  ///< No pixel outside it is touched.
  std::array<std::uint8_t, 16> more{};
};
static_assert(sizeof(DrawCommand) == 32);
static_assert(sizeof(DrawCommand) * kMaxDrawCommands <= std::size_t{256} << 10);

/// Not thread-safe while it grows.
class DrawList {
 public:
  /// Of a picture with sides 1..kMaxDrawnSide.
  DrawList(int width, int height);

  void fill(const DrawBox& box, DrawColor color);
  void frame(const DrawBox& box, int thickness, DrawColor color);
  /// Clipped to what shows in the picture. `thickness` is at most 4095 pixels.
  void stroke(PointF from, PointF to, float thickness, DrawColor color);
  /// Glyphs side by side, a command for each 16, from the left upper corner of the first.
  void text(int x, int y, std::span<const Glyph> glyphs, const GlyphAtlas& atlas, DrawColor color);
  void mask(const DrawBox& box, std::uint16_t index, const MaskPlace& place, DrawColor color);
  void class_map(const DrawBox& box, std::uint16_t without, const MaskPlace& place,
                 std::uint8_t opacity);

  /// Counts something that has no place: a number that is none, a mask that is not there.
  void misplace() { ++misplaced_; }

  int width() const { return width_; }
  int height() const { return height_; }
  std::span<const DrawCommand> commands() const { return commands_; }
  /// Commands that a limit left out.
  std::uint64_t dropped() const { return dropped_; }
  std::uint64_t misplaced() const { return misplaced_; }

 private:
  /// `pixels`: an upper bound of what it touches in the picture.
  void add(const DrawCommand& command, std::uint64_t pixels);
  /// The pixels of `box` that are the picture's.
  std::uint64_t area(const DrawBox& box) const;

  int width_, height_;
  std::vector<DrawCommand> commands_;
  std::uint64_t pixels_left_;
  std::uint64_t dropped_ = 0;
  std::uint64_t misplaced_ = 0;
};

}  // namespace penstock
