// SPDX-License-Identifier: Apache-2.0
#include "penstock/draw/mask_placing.h"

#include <algorithm>
#include <cmath>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

std::int16_t pixel(double value) {
  return static_cast<std::int16_t>(std::clamp(value, -32768.0, 32767.0));
}

/// Mask coordinate = source coordinate * scale + start, both counted from centres.
struct Axis {
  double scale, start;
};

Axis axis_of(int crop_start, int crop, int scaled, int padding, int input, std::int64_t mask) {
  const double samples = static_cast<double>(mask) / input;  // Of the mask for a pixel of the input
  const double scale = static_cast<double>(scaled) / crop;
  return {.scale = scale * samples,
          .start = ((0.5 - crop_start) * scale + padding) * samples - 0.5};
}

}  // namespace

Result<MaskPlace> place_masks(const Tensor& masks, std::size_t rank, const Letterbox& way,
                              int width, int height) {
  const auto bytes = byte_size(masks.type, masks.shape);
  if (masks.type != DataType::kUint8 || masks.shape.size() != rank || !bytes || *bytes == 0 ||
      masks.data.size < *bytes || !validate(masks.data)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("the tensor '{}' {} is not one of uint8 with {} dimensions and {} bytes "
                           "behind it",
                           masks.name, to_string(masks.shape), rank, bytes ? *bytes : 0));
  }
  if (way.frame_width != width || way.frame_height != height || way.crop.width < 1 ||
      way.crop.height < 1 || way.input_width < 1 || way.input_height < 1 || way.scaled_width < 1 ||
      way.scaled_height < 1) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("masks are of a picture of {}x{}, this one has {}x{}", way.frame_width,
                           way.frame_height, width, height));
  }
  const Axis x = axis_of(way.crop.x, way.crop.width, way.scaled_width, way.pad_x, way.input_width,
                         masks.shape[rank - 1]);
  const Axis y = axis_of(way.crop.y, way.crop.height, way.scaled_height, way.pad_y,
                         way.input_height, masks.shape[rank - 2]);
  return MaskPlace{.x_scale = static_cast<float>(x.scale),
                   .x_start = static_cast<float>(x.start),
                   .y_scale = static_cast<float>(y.scale),
                   .y_start = static_cast<float>(y.start)};
}

DrawBox crop_box(const Letterbox& way) {
  const RectI& crop = way.crop;
  return {pixel(crop.x), pixel(crop.y), pixel(static_cast<double>(crop.x) + crop.width),
          pixel(static_cast<double>(crop.y) + crop.height)};
}

DrawBox mask_box(const Letterbox& way, const MaskPlace& place, const Detection& object) {
  // A step of the mask, or a pixel where masks are finer.
  const double step = std::max(
      {1.0, 1 / static_cast<double>(place.x_scale), 1 / static_cast<double>(place.y_scale)});
  const double smear = std::ceil(step);
  const double x = static_cast<double>(object.x), y = static_cast<double>(object.y);
  const DrawBox crop = crop_box(way);
  return {std::max(crop.x0, pixel(std::floor(x) - smear)),
          std::max(crop.y0, pixel(std::floor(y) - smear)),
          std::min(crop.x1, pixel(std::ceil(x + static_cast<double>(object.width)) + smear)),
          std::min(crop.y1, pixel(std::ceil(y + static_cast<double>(object.height)) + smear))};
}

}  // namespace penstock
