// SPDX-License-Identifier: Apache-2.0
#include "penstock/draw/overlay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/draw/colors.h"
#include "penstock/draw/mask_placing.h"

namespace penstock {
namespace {

constexpr std::uint8_t kMaskOpacity = 128;
constexpr std::size_t kMaxClassLines = 5;
constexpr std::size_t kCocoKeypoints = 17;
constexpr DrawColor kZoneColor{.blue = 77, .green = 225, .red = 255};

// COCO's joints: 0 nose, 1-2 eyes, 3-4 ears, 5-6 shoulders, 7-8 elbows, 9-10 wrists, 11-12 hips,
// 13-14 knees, 15-16 ankles; odd ones are the person's left.
constexpr std::array<std::pair<std::size_t, std::size_t>, 18> kLimbs{{{0, 1},
                                                                      {0, 2},
                                                                      {1, 3},
                                                                      {2, 4},
                                                                      {3, 5},
                                                                      {4, 6},
                                                                      {5, 6},
                                                                      {5, 7},
                                                                      {7, 9},
                                                                      {6, 8},
                                                                      {8, 10},
                                                                      {5, 11},
                                                                      {6, 12},
                                                                      {11, 12},
                                                                      {11, 13},
                                                                      {13, 15},
                                                                      {12, 14},
                                                                      {14, 16}}};

// Two hues that few palettes of objects share tell left from right.
constexpr DrawColor kLeftLimb{.blue = 0, .green = 190, .red = 255};
constexpr DrawColor kRightLimb{.blue = 255, .green = 190, .red = 0};
constexpr DrawColor kMiddleLimb{.blue = 235, .green = 235, .red = 235};

DrawColor color_of_limb(std::size_t from, std::size_t to) {
  if (from == 0 || from % 2 != to % 2) return kMiddleLimb;
  return from % 2 == 1 ? kLeftLimb : kRightLimb;
}

std::int16_t floored_pixel(double value) {
  return static_cast<std::int16_t>(std::clamp(std::floor(value), -32768.0, 32767.0));
}

DrawColor color_of(const Detection& object) {
  return object.track_id != 0 ? color_of_track(object.track_id) : color_of_label(object.label);
}

bool is_size(float value) { return std::isfinite(value) && value >= 0; }

bool is_placed(const Detection& object) {
  if (!std::isfinite(object.x) || !std::isfinite(object.y) || !is_size(object.width) ||
      !is_size(object.height)) {
    return false;
  }
  if (!object.rotated) return true;
  const RotatedBox& box = *object.rotated;
  return std::isfinite(box.center_x) && std::isfinite(box.center_y) && is_size(box.width) &&
         is_size(box.height) && std::isfinite(box.angle);
}

std::array<PointF, 4> corners_of(const RotatedBox& box) {
  const double c = std::cos(static_cast<double>(box.angle));
  const double s = std::sin(static_cast<double>(box.angle));
  std::array<PointF, 4> corners;
  constexpr std::array<std::pair<double, double>, 4> kSigns{{{-1, -1}, {1, -1}, {1, 1}, {-1, 1}}};
  for (std::size_t i = 0; i < 4; ++i) {
    const double along = kSigns[i].first * static_cast<double>(box.width) / 2;
    const double across = kSigns[i].second * static_cast<double>(box.height) / 2;
    const double x = static_cast<double>(box.center_x) + along * c - across * s;
    const double y = static_cast<double>(box.center_y) + along * s + across * c;
    constexpr double kMost = std::numeric_limits<float>::max();
    corners[i] = {static_cast<float>(std::clamp(x, -kMost, kMost)),
                  static_cast<float>(std::clamp(y, -kMost, kMost))};
  }
  return corners;
}

std::string percent(float confidence) {
  if (!std::isfinite(confidence)) return {};
  return str_format("{}%", std::lround(std::clamp(confidence, 0.0f, 1.0f) * 100));
}

void append_word(std::vector<Glyph>& text, std::string_view word) {
  if (word.empty()) return;
  if (!text.empty()) text.push_back(glyphs_of(" ", 1).front());
  const auto glyphs = glyphs_of(word, kMaxLabelGlyphs);
  text.insert(text.end(), glyphs.begin(), glyphs.end());
}

class PictureOverlay final : public Overlay {
 public:
  PictureOverlay(const OverlayStyle& style, int width, int height)
      : style_(style), width_(width), height_(height) {
    const int side = std::min(width, height);
    line_ = style.line_width > 0
                ? style.line_width
                : std::max(1, static_cast<int>(std::lround(static_cast<double>(side) / 360)));
    const int size = style.text_size > 0 ? style.text_size : std::clamp(side / 64, 9, 48);
    atlas_ = GlyphAtlas::make(size);
    // Room around letters: as much above capitals as what hangs below the line needs.
    padding_ = std::max(atlas_->height() - atlas_->size() + 1, (3 * size + 5) / 10);
  }

  Result<Drawing> draw(const OverlayScene& scene) const override;

 private:
  Result<void> draw_masks(Drawing& drawing, const OverlayScene& scene) const;
  void draw_zone(DrawList& list, const OverlayZone& zone) const;
  void draw_box(DrawList& list, const Detection& object) const;
  void draw_skeleton(DrawList& list, const Detection& object) const;
  void draw_label(DrawList& list, const Detection& object, std::int64_t shown_id) const;
  void draw_classes(DrawList& list, std::span<const Classification> classes) const;
  /// A text on its ground, the lower left corner of which is wanted at (left, bottom): moved into
  /// the picture and cut to its width.
  void draw_text(DrawList& list, double left, double bottom, std::vector<Glyph> text,
                 DrawColor ground) const;
  int text_height() const { return atlas_->size() + 2 * padding_; }

  OverlayStyle style_;
  int width_, height_;
  int line_ = 1;
  int padding_ = 2;
  std::shared_ptr<const GlyphAtlas> atlas_;
};

Result<Drawing> PictureOverlay::draw(const OverlayScene& scene) const {
  Drawing drawing{.list = DrawList(width_, height_), .atlas = atlas_};
  DrawList& list = drawing.list;
  for (const Detection& object : scene.objects) {
    if (!is_placed(object)) list.misplace();
  }
  if (style_.masks && scene.masks != nullptr) PENSTOCK_TRY(draw_masks(drawing, scene));
  if (style_.zones) {
    for (const OverlayZone& zone : scene.zones) draw_zone(list, zone);
  }
  if (style_.boxes) {
    // The surest come first and are drawn last.
    for (auto object = scene.objects.rbegin(); object != scene.objects.rend(); ++object) {
      if (is_placed(*object)) draw_box(list, *object);
    }
  }
  if (style_.skeletons) {
    for (const Detection& object : scene.objects) draw_skeleton(list, object);
  }
  for (auto object = scene.objects.rbegin(); object != scene.objects.rend(); ++object) {
    if (!is_placed(*object)) continue;
    // Modulo 2^64: a record's number may be any.
    draw_label(list, *object,
               static_cast<std::int64_t>(static_cast<std::uint64_t>(object->track_id) +
                                         static_cast<std::uint64_t>(scene.shown_id_offset)));
  }
  if (style_.labels) draw_classes(list, scene.classes);
  return drawing;
}

Result<void> PictureOverlay::draw_masks(Drawing& drawing, const OverlayScene& scene) const {
  const OverlayMasks& given = *scene.masks;
  const Letterbox& way = given.letterbox;
  DrawList& list = drawing.list;
  if (given.class_map) {
    const auto place = place_masks(*given.class_map, 2, way, width_, height_);
    if (!place) return std::unexpected(place.error().context("drawing the class map"));
    drawing.class_map = given.class_map;
    list.class_map(crop_box(way), given.background ? *given.background : kNoClass, *place,
                   kMaskOpacity);
  }
  if (!given.masks) return {};
  const auto place = place_masks(*given.masks, 3, way, width_, height_);
  if (!place) return std::unexpected(place.error().context("drawing masks"));
  drawing.masks = given.masks;
  for (const Detection& object : scene.objects) {
    if (object.mask < 0 || !is_placed(object)) continue;
    if (object.mask >= std::min<std::int64_t>(given.masks->shape[0], kNoClass)) {
      list.misplace();
      continue;
    }
    DrawColor color = color_of(object);
    color.opacity = kMaskOpacity;
    // Nothing is set outside an object's box, but for what sampling smears over its edge.
    list.mask(mask_box(way, *place, object), static_cast<std::uint16_t>(object.mask), *place,
              color);
  }
  return {};
}

void PictureOverlay::draw_zone(DrawList& list, const OverlayZone& zone) const {
  const std::size_t count = zone.corners.size();
  if (count == 0) return;
  const auto at = [&](std::size_t i) {
    const PointF& corner = zone.corners[i % count];
    return PointF{corner.x * static_cast<float>(width_), corner.y * static_cast<float>(height_)};
  };
  const auto thickness = static_cast<float>(line_);
  for (std::size_t i = 0; i + (zone.is_closed ? 0 : 1) < count; ++i) {
    list.stroke(at(i), at(i + 1), thickness, kZoneColor);
  }
  // At the uppermost corner, where a zone's name is looked for.
  PointF top = at(0);
  for (std::size_t i = 1; i < count; ++i) {
    if (at(i).y < top.y) top = at(i);
  }
  if (!std::isfinite(top.x) || !std::isfinite(top.y)) return;
  // A long name is cut, its count is not.
  auto text = glyphs_of(zone.name, kMaxLabelGlyphs);
  if (!zone.count.empty()) {
    const auto counted = glyphs_of(": " + zone.count, kMaxLabelGlyphs);
    text.resize(std::min(text.size(), kMaxLabelGlyphs - counted.size()));
    text.insert(text.end(), counted.begin(), counted.end());
  }
  draw_text(list, static_cast<double>(top.x), static_cast<double>(top.y), std::move(text),
            kZoneColor);
}

void PictureOverlay::draw_box(DrawList& list, const Detection& object) const {
  const DrawColor color = color_of(object);
  if (object.rotated) {
    const auto corners = corners_of(*object.rotated);
    for (std::size_t i = 0; i < corners.size(); ++i) {
      list.stroke(corners[i], corners[(i + 1) % corners.size()], static_cast<float>(line_), color);
    }
    return;
  }
  const double x0 = std::round(static_cast<double>(object.x));
  const double y0 = std::round(static_cast<double>(object.y));
  const double x1 = std::round(static_cast<double>(object.x) + static_cast<double>(object.width));
  const double y1 = std::round(static_cast<double>(object.y) + static_cast<double>(object.height));
  // The line lies half outside; the odd pixel is outside, too.
  const int outside = (line_ + 1) / 2;
  list.frame({floored_pixel(x0 - outside), floored_pixel(y0 - outside), floored_pixel(x1 + outside),
              floored_pixel(y1 + outside)},
             line_, color);
}

void PictureOverlay::draw_skeleton(DrawList& list, const Detection& object) const {
  const auto& points = object.keypoints;
  const auto is_seen = [&](std::size_t i) {
    return points[i].confidence >= style_.keypoint_threshold;  // NaN never is.
  };
  const auto wide = static_cast<float>(line_);
  if (points.size() == kCocoKeypoints) {
    for (const auto& [from, to] : kLimbs) {
      if (!is_seen(from) || !is_seen(to)) continue;
      list.stroke({points[from].x, points[from].y}, {points[to].x, points[to].y}, wide,
                  color_of_limb(from, to));
    }
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!is_seen(i)) continue;
    const PointF at{points[i].x, points[i].y};
    list.stroke(at, at, 2 * wide + 1, color_of(object));
  }
}

void PictureOverlay::draw_label(DrawList& list, const Detection& object,
                                std::int64_t shown_id) const {
  std::vector<Glyph> text;
  if (style_.labels) append_word(text, object.label);
  if (style_.ids && object.track_id != 0) append_word(text, str_format("#{}", shown_id));
  if (style_.confidences) append_word(text, percent(object.confidence));
  double left = static_cast<double>(object.x);
  double top = static_cast<double>(object.y);
  if (object.rotated) {
    // At the uppermost corner.
    const auto corners = corners_of(*object.rotated);
    const PointF corner = *std::ranges::min_element(corners, {}, &PointF::y);
    left = static_cast<double>(corner.x);
    top = static_cast<double>(corner.y);
  }
  const int outside = (line_ + 1) / 2;
  // Of an object that does not show, no label does either.
  if (left >= width_ || top >= height_ ||
      (!object.rotated &&
       (static_cast<double>(object.x) + static_cast<double>(object.width) < 0 ||
        static_cast<double>(object.y) + static_cast<double>(object.height) < 0))) {
    return;
  }
  draw_text(list, std::round(left) - outside, std::round(top) - outside, std::move(text),
            color_of(object));
}

void PictureOverlay::draw_classes(DrawList& list, std::span<const Classification> classes) const {
  double bottom = 0;
  for (const Classification& found : classes.first(std::min(classes.size(), kMaxClassLines))) {
    std::vector<Glyph> text;
    append_word(text, found.label);
    if (style_.confidences) append_word(text, percent(found.confidence));
    bottom += text_height();
    if (bottom > height_) return;
    draw_text(list, 0, bottom, std::move(text), color_of_label(found.label));
  }
}

void PictureOverlay::draw_text(DrawList& list, double left, double bottom, std::vector<Glyph> text,
                               DrawColor ground) const {
  const int room = width_ - 2 * padding_;
  int used = 0;
  std::size_t fitting = 0;
  while (fitting < text.size() && used + atlas_->advance(text[fitting]) <= room) {
    used += atlas_->advance(text[fitting++]);
  }
  text.resize(fitting);
  if (text.empty() || text_height() > height_) return;
  const int wide = used + 2 * padding_;
  const int x = static_cast<int>(std::clamp(left, 0.0, static_cast<double>(width_ - wide)));
  const int y = static_cast<int>(
      std::clamp(bottom - text_height(), 0.0, static_cast<double>(height_ - text_height())));
  list.fill({floored_pixel(x), floored_pixel(y), floored_pixel(x + wide),
             floored_pixel(y + text_height())},
            ground);
  list.text(x + padding_, y + padding_, text, *atlas_, ink_on(ground));
}

}  // namespace

Result<std::unique_ptr<const Overlay>> Overlay::create(const OverlayStyle& style, int width,
                                                       int height) {
  if (width < 1 || height < 1 || width > kMaxDrawnSide || height > kMaxDrawnSide) {
    return fail(ErrorKind::kUnsupported, str_format("a picture of {}x{} can't be drawn on: sides "
                                                    "must be within 1..{}",
                                                    width, height, kMaxDrawnSide));
  }
  if (style.line_width < 0 || style.line_width > kMaxLineWidth) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("line width {} is not within 0..{}", style.line_width, kMaxLineWidth));
  }
  if (style.text_size != 0 &&
      (style.text_size < GlyphAtlas::kLeastSize || style.text_size > GlyphAtlas::kMostSize)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("text size {} is neither 0 nor within {}..{}", style.text_size,
                           GlyphAtlas::kLeastSize, GlyphAtlas::kMostSize));
  }
  return std::make_unique<const PictureOverlay>(style, width, height);
}

}  // namespace penstock
