// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/geometry.h"

#include <algorithm>
#include <cmath>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

bool is_size(int width, int height) {
  return width >= 1 && height >= 1 && width <= kMaxFrameSide && height <= kMaxFrameSide;
}

bool is_even_size(int width, int height) {
  return is_size(width, height) && width % 2 == 0 && height % 2 == 0;
}

// Half to even, as Python's round() does: the default rounding mode of the environment.
int round_half_even(double value) { return static_cast<int>(std::nearbyint(value)); }

}  // namespace

Result<RectI> grow_to_chroma(RectI roi, int frame_width, int frame_height) {
  if (!is_even_size(frame_width, frame_height)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("frame size {}x{} is not even and within 2..{}", frame_width,
                           frame_height, kMaxFrameSide));
  }
  // 64 bit: x + width of a rectangle from outside may exceed an int.
  const auto left = std::max<std::int64_t>(roi.x, 0);
  const auto top = std::max<std::int64_t>(roi.y, 0);
  const auto right = std::min<std::int64_t>(std::int64_t{roi.x} + roi.width, frame_width);
  const auto bottom = std::min<std::int64_t>(std::int64_t{roi.y} + roi.height, frame_height);
  if (roi.width <= 0 || roi.height <= 0 || left >= right || top >= bottom) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("region {}x{} at ({},{}) has no pixel inside the {}x{} frame", roi.width,
                           roi.height, roi.x, roi.y, frame_width, frame_height));
  }
  // The frame is even, so growing a clipped edge outward never leaves it.
  const auto even_left = static_cast<int>(left & ~std::int64_t{1});
  const auto even_top = static_cast<int>(top & ~std::int64_t{1});
  return RectI{even_left, even_top, static_cast<int>((right + 1) & ~std::int64_t{1}) - even_left,
               static_cast<int>((bottom + 1) & ~std::int64_t{1}) - even_top};
}

Result<Letterbox> Letterbox::plan(RectI crop, int frame_width, int frame_height, int input_width,
                                  int input_height, Fit fit) {
  if (!is_even_size(frame_width, frame_height)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("frame size {}x{} is not even and within 2..{}", frame_width,
                           frame_height, kMaxFrameSide));
  }
  if (!is_size(input_width, input_height)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("model input size {}x{} is not within 1..{}", input_width, input_height,
                           kMaxFrameSide));
  }
  const bool inside = crop.x >= 0 && crop.y >= 0 && crop.width >= 2 && crop.height >= 2 &&
                      crop.x <= frame_width - crop.width && crop.y <= frame_height - crop.height;
  if (!inside || ((crop.x | crop.y | crop.width | crop.height) & 1) != 0) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("crop {}x{} at ({},{}) is not even and inside the {}x{} frame",
                           crop.width, crop.height, crop.x, crop.y, frame_width, frame_height));
  }

  Letterbox box{.crop = crop,
                .scaled_width = input_width,
                .scaled_height = input_height,
                .input_width = input_width,
                .input_height = input_height,
                .frame_width = frame_width,
                .frame_height = frame_height};
  if (fit == Fit::kStretch) return box;

  const double ratio = std::min(static_cast<double>(input_width) / crop.width,
                                static_cast<double>(input_height) / crop.height);
  // A sliver of a crop must still leave one row or column to look at.
  box.scaled_width = std::clamp(round_half_even(crop.width * ratio), 1, input_width);
  box.scaled_height = std::clamp(round_half_even(crop.height * ratio), 1, input_height);
  if (fit == Fit::kLetterboxCenter) {
    // round(p / 2 - 0.1) is p / 2 for even p and (p - 1) / 2 for odd p: integer division.
    box.pad_x = (input_width - box.scaled_width) / 2;
    box.pad_y = (input_height - box.scaled_height) / 2;
  }
  return box;
}

std::optional<RectF> Letterbox::to_source(RectF box) const {
  const double scale_x = static_cast<double>(crop.width) / scaled_width;
  const double scale_y = static_cast<double>(crop.height) / scaled_height;
  const double left = crop.x + (static_cast<double>(box.x) - pad_x) * scale_x;
  const double top = crop.y + (static_cast<double>(box.y) - pad_y) * scale_y;
  const double right = left + static_cast<double>(box.width) * scale_x;
  const double bottom = top + static_cast<double>(box.height) * scale_y;
  if (!std::isfinite(left) || !std::isfinite(top) || !std::isfinite(right) ||
      !std::isfinite(bottom)) {
    return std::nullopt;
  }
  const auto x0 = static_cast<float>(std::clamp(left, 0.0, static_cast<double>(frame_width)));
  const auto y0 = static_cast<float>(std::clamp(top, 0.0, static_cast<double>(frame_height)));
  const auto x1 = static_cast<float>(std::clamp(right, 0.0, static_cast<double>(frame_width)));
  const auto y1 = static_cast<float>(std::clamp(bottom, 0.0, static_cast<double>(frame_height)));
  if (!(x1 > x0) || !(y1 > y0)) return std::nullopt;
  return RectF{x0, y0, x1 - x0, y1 - y0};
}

std::optional<PointF> Letterbox::to_source(PointF point) const {
  const double scale_x = static_cast<double>(crop.width) / scaled_width;
  const double scale_y = static_cast<double>(crop.height) / scaled_height;
  const auto x = static_cast<float>(crop.x + (static_cast<double>(point.x) - pad_x) * scale_x);
  const auto y = static_cast<float>(crop.y + (static_cast<double>(point.y) - pad_y) * scale_y);
  if (!std::isfinite(x) || !std::isfinite(y)) return std::nullopt;
  return PointF{x, y};
}

}  // namespace penstock
