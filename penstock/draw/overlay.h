// SPDX-License-Identifier: Apache-2.0
//
// Overlay turns what is known of a frame into a Drawing: boxes, labels with ids and confidences on
// a filled ground, masks, skeletons, zones (contract W01).
//
//   const auto overlay = Overlay::create({}, 1920, 1080);
//   Drawing drawing = (*overlay)->draw({.objects = result.objects});
//
// Records may come from anywhere: numbers that are none are counted and left out, labels of any
// bytes and length are cut, and a label always lies inside the picture.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/draw/draw_list.h"
#include "penstock/draw/glyphs.h"
#include "penstock/media/geometry.h"
#include "penstock/memory/tensor.h"
#include "penstock/records/records.h"

namespace penstock {

/// Code points of a text that are drawn.
inline constexpr std::size_t kMaxLabelGlyphs = 64;
inline constexpr int kMaxLineWidth = 64;

struct OverlayStyle {
  bool boxes = true;
  bool labels = true;       ///< Names of classes, of objects and of the whole picture.
  bool ids = true;          ///< Of tracks.
  bool confidences = true;  ///< In per cent.
  bool masks = true;        ///< Of objects, and class maps.
  bool skeletons = true;    ///< Limbs of COCO-17 poses, the points of others.
  bool zones = true;
  /// Pixels, up to kMaxLineWidth; 0: the shorter side / 360, at least 1.
  int line_width = 0;
  /// Height of capitals in pixels, as GlyphAtlas's; 0: the shorter side / 64, 9 to 48.
  int text_size = 0;
  float keypoint_threshold = 0.3f;  ///< Keypoints of less confidence are left out.
};

/// Masks as a decoder leaves them on the device, and how they lie in the source picture.
struct OverlayMasks {
  std::optional<Tensor> masks{};      ///< uint8 [n, h, w]: set from 127.5 on, sampled bilinearly.
  std::optional<Tensor> class_map{};  ///< uint8 [h, w].
  std::optional<std::uint8_t> background{};  ///< Class of the map that is not drawn.
  Letterbox letterbox{};                     ///< Both cover all of its input.
};

/// A place in the picture; corners are parts of it, 0..1.
struct OverlayZone {
  std::string name;
  std::vector<PointF> corners;
  bool is_closed = true;  ///< A polygon; else a line.
  std::string count{};    ///< What was counted there, drawn behind the name; empty: nothing.
};

struct OverlayScene {
  std::span<const Detection> objects{};
  std::span<const Classification> classes{};  ///< Of the whole picture.
  std::span<const OverlayZone> zones{};
  const OverlayMasks* masks = nullptr;  ///< Detection::mask counts in them.
  /// What is added to a Detection::track_id that is not 0 to give the number that is shown.
  std::int64_t shown_id_offset = 0;
};

/// All that a Compositor needs; the tensors live as long as it does.
struct Drawing {
  DrawList list;
  std::shared_ptr<const GlyphAtlas> atlas;
  std::optional<Tensor> masks{};
  std::optional<Tensor> class_map{};
};

/// For pictures of one size. Immutable, thread-safe.
class Overlay {
 public:
  /// kInvalidArgument: a side outside 1..kMaxDrawnSide, a style outside its limits.
  static Result<std::unique_ptr<const Overlay>> create(const OverlayStyle& style, int width,
                                                       int height);
  virtual ~Overlay() = default;

  /// kInvalidArgument: masks that are no uint8 tensors of their shape, or of another picture's
  /// size.
  virtual Result<Drawing> draw(const OverlayScene& scene) const = 0;
};

}  // namespace penstock
