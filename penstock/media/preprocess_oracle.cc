// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "penstock/media/test_frames.h"

namespace penstock::testing {
namespace {

// One plane inside a crop; outside it the edge repeats.
struct Window {
  const std::vector<std::uint8_t>& samples;
  int stride, x, y, width, height;

  double bilinear(double column, double row) const {
    const double left = std::floor(column);
    const double top = std::floor(row);
    const auto sample = [&](double c, double r) {
      const int sx = x + static_cast<int>(std::clamp(c, 0.0, width - 1.0));
      const int sy = y + static_cast<int>(std::clamp(r, 0.0, height - 1.0));
      return static_cast<double>(samples[static_cast<std::size_t>(sy * stride + sx)]);
    };
    const double fx = column - left;
    const double fy = row - top;
    return (1 - fy) * ((1 - fx) * sample(left, top) + fx * sample(left + 1, top)) +
           fy * ((1 - fx) * sample(left, top + 1) + fx * sample(left + 1, top + 1));
  }
};

std::array<double, 3> rgb(double y, double u, double v, const Colorimetry& color) {
  u -= 128;
  v -= 128;
  std::array<double, 3> levels{};
  if (color.range == ColorRange::kLimited) {
    const double luma = 1.164384 * (y - 16);
    levels = color.matrix == ColorMatrix::kBt709
                 ? std::array{luma + 1.792741 * v, luma - 0.213249 * u - 0.532909 * v,
                              luma + 2.112402 * u}
                 : std::array{luma + 1.596027 * v, luma - 0.391762 * u - 0.812968 * v,
                              luma + 2.017232 * u};
  } else {
    levels = color.matrix == ColorMatrix::kBt709
                 ? std::array{y + 1.5748 * v, y - 0.187324 * u - 0.468124 * v, y + 1.8556 * u}
                 : std::array{y + 1.402 * v, y - 0.344136 * u - 0.714136 * v, y + 1.772 * u};
  }
  for (double& level : levels) level = std::clamp(level, 0.0, 255.0);
  return levels;
}

}  // namespace

std::vector<double> preprocess_oracle(const Picture& picture, const Colorimetry& color,
                                      const PreprocessSpec& spec, std::optional<RectI> crop) {
  const RectI area = crop.value_or(RectI{0, 0, picture.width, picture.height});
  double scaled_width = spec.width;
  double scaled_height = spec.height;
  double pad_x = 0;
  double pad_y = 0;
  if (spec.fit != Fit::kStretch) {
    // Ultralytics: r = min(..), new = round(old * r), left = round(pad / 2 - 0.1).
    const double r = std::min(spec.width / double(area.width), spec.height / double(area.height));
    scaled_width = std::max(1.0, std::rint(area.width * r));
    scaled_height = std::max(1.0, std::rint(area.height * r));
    if (spec.fit == Fit::kLetterboxCenter) {
      pad_x = std::rint((spec.width - scaled_width) / 2 - 0.1);
      pad_y = std::rint((spec.height - scaled_height) / 2 - 0.1);
    }
  }
  const Window luma{picture.y, picture.width, area.x, area.y, area.width, area.height};
  const Window cb{picture.u,  picture.width / 2, area.x / 2,
                  area.y / 2, area.width / 2,    area.height / 2};
  const Window cr{picture.v,  picture.width / 2, area.x / 2,
                  area.y / 2, area.width / 2,    area.height / 2};

  const std::size_t pixels =
      static_cast<std::size_t>(spec.width) * static_cast<std::size_t>(spec.height);
  std::vector<double> tensor(3 * pixels);
  for (int row = 0; row < spec.height; ++row) {
    for (int column = 0; column < spec.width; ++column) {
      std::array<double, 3> levels{spec.pad_level, spec.pad_level, spec.pad_level};
      const double i = column - pad_x;
      const double j = row - pad_y;
      if (i >= 0 && i < scaled_width && j >= 0 && j < scaled_height) {
        // Centre of the output pixel in the crop, in luma pixels from its corner.
        const double x = (i + 0.5) * area.width / scaled_width;
        const double y = (j + 0.5) * area.height / scaled_height;
        // A chroma sample's centre is 0.5 (left) or 1 (centre) pixel from its own corner.
        const double chroma_x = (x - (color.site == ChromaSite::kLeft ? 0.5 : 1.0)) / 2;
        const double chroma_y = (y - 1.0) / 2;
        levels = rgb(luma.bilinear(x - 0.5, y - 0.5), cb.bilinear(chroma_x, chroma_y),
                     cr.bilinear(chroma_x, chroma_y), color);
        if (spec.order == ChannelOrder::kBgr) std::swap(levels[0], levels[2]);
      }
      const std::size_t pixel =
          static_cast<std::size_t>(row) * static_cast<std::size_t>(spec.width) +
          static_cast<std::size_t>(column);
      for (std::size_t c = 0; c < 3; ++c) {
        const std::size_t at =
            spec.layout == TensorLayout::kNhwc ? 3 * pixel + c : c * pixels + pixel;
        tensor[at] = (levels[c] * spec.scale - spec.mean[c]) / spec.std[c];
      }
    }
  }
  return tensor;
}

}  // namespace penstock::testing
