// SPDX-License-Identifier: Apache-2.0
#include "apps/penstock/picture_regions.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

/// Where a mask is at least half.
constexpr float kEdge = 127.5f;

/// One level a pixel over the whole model input.
struct LevelMap {
  std::span<const std::uint8_t> levels;
  int width = 0, height = 0;

  float at(int x, int y) const {
    const auto column = static_cast<std::size_t>(std::clamp(x, 0, width - 1));
    const auto row = static_cast<std::size_t>(std::clamp(y, 0, height - 1));
    return static_cast<float>(levels[row * static_cast<std::size_t>(width) + column]);
  }
  /// Bilinear between the pixels' centres.
  float between(const PointF& at_point) const {
    const float x = at_point.x - 0.5f, y = at_point.y - 0.5f;
    const int left = static_cast<int>(std::floor(x)), top = static_cast<int>(std::floor(y));
    const float right_part = x - std::floor(x), lower_part = y - std::floor(y);
    const float upper = std::lerp(at(left, top), at(left + 1, top), right_part);
    const float lower = std::lerp(at(left, top + 1), at(left + 1, top + 1), right_part);
    return std::lerp(upper, lower, lower_part);
  }
  int nearest(const PointF& at_point) const {
    return static_cast<int>(
        at(static_cast<int>(std::floor(at_point.x)), static_cast<int>(std::floor(at_point.y))));
  }
};

/// Where the centre of a pixel of the picture lies in the map.
PointF to_map(int x, int y, const Letterbox& way, const LevelMap& map) {
  const auto along = [](int pixel, int crop, int crop_size, int scaled, int pad, int input,
                        int side) {
    const float in_input = static_cast<float>(pad) + (static_cast<float>(pixel - crop) + 0.5f) *
                                                         static_cast<float>(scaled) /
                                                         static_cast<float>(crop_size);
    return in_input * static_cast<float>(side) / static_cast<float>(input);
  };
  return {
      along(x, way.crop.x, way.crop.width, way.scaled_width, way.pad_x, way.input_width, map.width),
      along(y, way.crop.y, way.crop.height, way.scaled_height, way.pad_y, way.input_height,
            map.height)};
}

/// The levels of a tensor [..., h, w] of bytes.
Result<std::span<const std::uint8_t>> seen_by_host(const Tensor& tensor) {
  PENSTOCK_TRY(tensor.ready.wait());
  const auto bytes = tensor.data.storage->host_bytes();
  if (bytes.empty()) {
    return fail(ErrorKind::kUnsupported,
                str_format("'{}' stays on its device and can't be drawn", tensor.name));
  }
  const auto region = bytes.subspan(tensor.data.offset, tensor.data.size);
  return std::span(reinterpret_cast<const std::uint8_t*>(region.data()), region.size());
}

LevelMap map_of(std::span<const std::uint8_t> levels, const Shape& shape, std::size_t which) {
  const auto width = static_cast<std::size_t>(shape.back());
  const auto height = static_cast<std::size_t>(shape[shape.size() - 2]);
  return {.levels = levels.subspan(which * width * height, width * height),
          .width = static_cast<int>(width),
          .height = static_cast<int>(height)};
}

void tint(Picture& picture, int x, int y, const Rgb& color) {
  auto* const pixel = picture.rgb.data() + 3 * (std::ptrdiff_t{y} * picture.width + x);
  for (std::size_t c = 0; c < 3; ++c) {
    pixel[c] = static_cast<std::uint8_t>((pixel[c] + color[c] + 1) / 2);
  }
}

void color_mask(Picture& picture, const LevelMap& map, const Letterbox& way,
                const Detection& object) {
  const auto first = [](float edge) { return std::max(static_cast<int>(std::floor(edge)), 0); };
  const auto last = [](float edge, int side) {
    return std::min(static_cast<int>(std::ceil(edge)), side);
  };
  const int right = last(object.x + object.width, picture.width);
  const int bottom = last(object.y + object.height, picture.height);
  for (int y = first(object.y); y < bottom; ++y) {
    for (int x = first(object.x); x < right; ++x) {
      if (map.between(to_map(x, y, way, map)) >= kEdge)
        tint(picture, x, y, color_of(object.class_id));
    }
  }
}

}  // namespace

Rgb color_of(int class_id) {
  constexpr std::array<Rgb, 6> kColors{
      {{230, 25, 75}, {60, 180, 75}, {0, 130, 200}, {245, 130, 48}, {145, 30, 180}, {0, 128, 128}}};
  return kColors[static_cast<std::size_t>(std::max(class_id, 0)) % kColors.size()];
}

Result<void> color_regions(Picture& picture, const DeviceFindings& regions,
                           std::span<const Detection> objects,
                           const std::vector<std::string>& labels) {
  if (regions.masks) {
    const auto levels = seen_by_host(*regions.masks);
    if (!levels) return std::unexpected(levels.error());
    // The surest last, so that it is seen.
    for (std::size_t i = objects.size(); i-- > 0;) {
      if (objects[i].mask < 0) continue;
      const LevelMap map =
          map_of(*levels, regions.masks->shape, static_cast<std::size_t>(objects[i].mask));
      color_mask(picture, map, regions.letterbox, objects[i]);
    }
  }
  if (!regions.class_map) return {};
  const auto levels = seen_by_host(*regions.class_map);
  if (!levels) return std::unexpected(levels.error());
  const LevelMap map = map_of(*levels, regions.class_map->shape, 0);
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      const int class_id = map.nearest(to_map(x, y, regions.letterbox, map));
      const auto at = static_cast<std::size_t>(class_id);
      if (at < labels.size() && labels[at] == "background") continue;
      tint(picture, x, y, color_of(class_id));
    }
  }
  return {};
}

}  // namespace penstock
