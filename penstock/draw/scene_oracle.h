// SPDX-License-Identifier: Apache-2.0
//
// For tests: what drawing should look like, one pixel at a time in double precision, from the words
// of the contract. It shares no code with the rasteriser, which is judged against it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace penstock::testing {

/// Opacity 0..1 of a shape at the pixel (x, y).
using Shape = std::function<double(int x, int y)>;

/// A line with round ends: all of a pixel whose centre lies half a pixel and more inside it, and
/// less and less of those nearer to and beyond its edge.
inline Shape line_shape(double x0, double y0, double x1, double y1, double thickness) {
  return [=](int x, int y) {
    const double px = x + 0.5, py = y + 0.5;
    // The nearest point of the line, by ternary search and not by a formula.
    const auto away = [&](double t) {
      return std::hypot(px - (x0 + t * (x1 - x0)), py - (y0 + t * (y1 - y0)));
    };
    double low = 0, high = 1;
    for (int i = 0; i < 40; ++i) {
      const double third = (high - low) / 3;
      if (away(low + third) < away(high - third)) {
        high -= third;
      } else {
        low += third;
      }
    }
    const double nearest = away((low + high) / 2);
    return std::clamp(thickness / 2 + 0.5 - nearest, 0.0, 1.0);
  };
}

/// Pixels whose centres lie in the outer and not in the inner of two rectangles `thickness` apart.
inline Shape frame_shape(int x0, int y0, int x1, int y1, int thickness) {
  return [=](int x, int y) {
    const bool outer = x >= x0 && x < x1 && y >= y0 && y < y1;
    const bool inner =
        x >= x0 + thickness && x < x1 - thickness && y >= y0 + thickness && y < y1 - thickness;
    return outer && !inner ? 1.0 : 0.0;
  };
}

inline Shape rectangle_shape(int x0, int y0, int x1, int y1) {
  return [=](int x, int y) { return x >= x0 && x < x1 && y >= y0 && y < y1 ? 1.0 : 0.0; };
}

/// B, G and R by turns, without rounding in between.
class NaivePicture {
 public:
  NaivePicture(int width, int height, const std::vector<std::uint8_t>& bgra)
      : width_(width), height_(height) {
    for (std::size_t i = 0; i < bgra.size(); ++i) {
      if (i % 4 != 3) levels_.push_back(bgra[i]);
    }
  }

  void draw(const Shape& shape, double blue, double green, double red, double opacity = 1) {
    for (int y = 0; y < height_; ++y) {
      for (int x = 0; x < width_; ++x) {
        const double part = shape(x, y) * opacity;
        double* level = &levels_[3 * index(x, y)];
        for (const double color : {blue, green, red}) {
          *level += part * (color - *level);
          ++level;
        }
      }
    }
  }

  /// The largest difference of a level.
  double worst(const std::vector<std::uint8_t>& bgra) const {
    double most = 0;
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      most = std::max(most, std::abs(levels_[i] - bgra[i / 3 * 4 + i % 3]));
    }
    return most;
  }

 private:
  std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
           static_cast<std::size_t>(x);
  }
  int width_, height_;
  std::vector<double> levels_;
};

}  // namespace penstock::testing
