// SPDX-License-Identifier: Apache-2.0
//
// Where the pixels of a model's input came from, and the way back. Coordinates are in pixels with
// the origin at the top-left corner of the top-left pixel; a box [x, x+w) x [y, y+h).
#pragma once

#include <cstdint>
#include <optional>

#include "penstock/base/error.h"

namespace penstock {

/// Contract V03: no side of a frame or of a model's input is longer.
inline constexpr int kMaxFrameSide = 32766;

struct RectI {
  int x = 0, y = 0, width = 0, height = 0;
  bool operator==(const RectI&) const = default;
};
struct RectF {
  float x = 0, y = 0, width = 0, height = 0;
};
struct PointF {
  float x = 0, y = 0;
};

/// Contract V10: grows `roi` outward to 2 x 2 chroma boundaries and clips it to the (even) frame.
/// kInvalidArgument when nothing of it lies inside.
Result<RectI> grow_to_chroma(RectI roi, int frame_width, int frame_height);

enum class Fit {
  kStretch,           ///< Both axes scaled independently.
  kLetterboxCenter,   ///< Aspect kept, padding halved (Ultralytics rounding: left = round(p/2 -
                      ///< 0.1)).
  kLetterboxTopLeft,  ///< Aspect kept, padding right and below (YOLOX, DeepStream).
};

/// One crop-scale-pad step. `crop` is in source pixels, the scaled image lies at (pad_x, pad_y) of
/// the model's input and is scaled_width x scaled_height there, both rounded half to even.
struct Letterbox {
  RectI crop;
  int scaled_width = 0, scaled_height = 0;
  int pad_x = 0, pad_y = 0;
  int input_width = 0, input_height = 0;
  int frame_width = 0, frame_height = 0;

  /// `crop` already even (grow_to_chroma).
  static Result<Letterbox> plan(RectI crop, int frame_width, int frame_height, int input_width,
                                int input_height, Fit fit);

  /// Contract P05: model-input box to source pixels with the rounded per-axis scale, clipped to the
  /// source; nothing when the clipped box is empty or not finite.
  std::optional<RectF> to_source(RectF box) const;
  /// The same for a point, which is not clipped; nothing when it is not finite.
  std::optional<PointF> to_source(PointF point) const;
};

}  // namespace penstock
