// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/letterbox_scale.h"

#include <algorithm>
#include <cstdint>

namespace penstock {
namespace {

/// `edge` of a side of `from` pixels on one of `to`, rounded half up.
int edge_at(std::int64_t edge, std::int64_t from, std::int64_t to) {
  return static_cast<int>((2 * edge * to + from) / (2 * from));
}

void rescale(int& start, int& length, int from, int to) {
  const int end = edge_at(std::int64_t{start} + length, from, to);
  start = std::clamp(edge_at(start, from, to), 0, to - 1);
  length = std::max(end - start, 1);
}

}  // namespace

Letterbox at_frame_size(Letterbox way, int width, int height) {
  if (way.frame_width < 1 || way.frame_height < 1) return way;
  rescale(way.crop.x, way.crop.width, way.frame_width, width);
  rescale(way.crop.y, way.crop.height, way.frame_height, height);
  way.frame_width = width;
  way.frame_height = height;
  return way;
}

}  // namespace penstock
