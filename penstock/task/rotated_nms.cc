// SPDX-License-Identifier: Apache-2.0
//
// Compiled with -ffp-contract=off, as nms.cc is.
#include "penstock/task/rotated_nms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace penstock {
namespace {

struct Point {
  double x = 0, y = 0;
};

struct TurnedBox {
  Point center;
  std::array<Point, 4> corners;  // from the centre; each side has the box on the same hand
  double area = 0;
  double radius = 0;  // from the centre to a corner
};

TurnedBox turn(const RotatedRecord& box) {
  const double cosine = std::cos(static_cast<double>(box.angle));
  const double sine = std::sin(static_cast<double>(box.angle));
  const double half_width = static_cast<double>(box.width) / 2;
  const double half_height = static_cast<double>(box.height) / 2;
  const Point along{half_width * cosine, half_width * sine};
  const Point across{-half_height * sine, half_height * cosine};
  return {.center = {box.center_x, box.center_y},
          .corners = {{{-along.x - across.x, -along.y - across.y},
                       {along.x - across.x, along.y - across.y},
                       {along.x + across.x, along.y + across.y},
                       {across.x - along.x, across.y - along.y}}},
          .area = static_cast<double>(box.width) * static_cast<double>(box.height),
          .radius = std::hypot(half_width, half_height)};
}

/// A clip by one line keeps the points inside and adds one for each crossing. There are at most
/// twice as many crossings as points inside, or outside, so n points become at most 1.5 n, also
/// where rounding breaks convexity: 4, 6, 9, 13, 19.
struct Polygon {
  std::array<Point, 19> points;
  std::size_t count = 0;
  void add(Point point) {
    if (count < points.size()) points[count++] = point;
  }
};

/// What of `polygon` lies on the hand of the line from `a` to `b` on which the box lies.
Polygon clip(const Polygon& polygon, Point a, Point b) {
  const auto side = [&](Point p) { return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x); };
  Polygon kept;
  for (std::size_t i = 0; i < polygon.count; ++i) {
    const Point p = polygon.points[i];
    const Point q = polygon.points[i + 1 < polygon.count ? i + 1 : 0];
    const double at_p = side(p);
    const double at_q = side(q);
    if (at_p >= 0) kept.add(p);
    if ((at_p >= 0) != (at_q >= 0)) {
      const double part = at_p / (at_p - at_q);
      kept.add({p.x + part * (q.x - p.x), p.y + part * (q.y - p.y)});
    }
  }
  return kept;
}

double area(const Polygon& polygon) {
  double twice = 0;
  for (std::size_t i = 0; i < polygon.count; ++i) {
    const Point p = polygon.points[i];
    const Point q = polygon.points[i + 1 < polygon.count ? i + 1 : 0];
    twice += p.x * q.y - p.y * q.x;
  }
  return twice / 2;
}

double shared_area(const TurnedBox& a, const TurnedBox& b) {
  // Around the first box's centre: far from the origin products would lose the small digits.
  const Point offset{b.center.x - a.center.x, b.center.y - a.center.y};
  // Most pairs are too far from each other to touch; the margin is far above rounding.
  if (std::hypot(offset.x, offset.y) > (a.radius + b.radius) * (1 + 1e-9)) return 0;
  Polygon polygon;
  for (const Point& corner : b.corners) polygon.add({corner.x + offset.x, corner.y + offset.y});
  for (std::size_t i = 0; i < 4; ++i) polygon = clip(polygon, a.corners[i], a.corners[(i + 1) % 4]);
  const double shared = area(polygon);
  // Rounding must not make a box share more than it has; NaN becomes 0.
  return shared > 0 ? std::min({shared, a.area, b.area}) : 0;
}

}  // namespace

double shared_area(const RotatedRecord& a, const RotatedRecord& b) {
  return shared_area(turn(a), turn(b));
}

DetectionRecord upright_hull(const RotatedRecord& box, float score, std::int32_t class_id) {
  const TurnedBox turned = turn(box);
  const Point& one = turned.corners[0];
  const Point& other = turned.corners[1];
  const double x = std::max(std::abs(one.x), std::abs(other.x));
  const double y = std::max(std::abs(one.y), std::abs(other.y));
  return {.x0 = static_cast<float>(turned.center.x - x),
          .y0 = static_cast<float>(turned.center.y - y),
          .x1 = static_cast<float>(turned.center.x + x),
          .y1 = static_cast<float>(turned.center.y + y),
          .score = score,
          .class_id = class_id};
}

void rotated_non_maximum_suppression(
    std::vector<Candidate>& candidates, const DecodeOptions& options,
    const std::function<RotatedRecord(std::int32_t index)>& box_of) {
  order_candidates(candidates);
  const auto limit = static_cast<std::size_t>(std::clamp(options.max_objects, 0, kMaxDetections));
  const double threshold = options.iou_threshold;
  std::vector<TurnedBox> kept;  // of candidates[0 .. kept.size())
  for (std::size_t i = 0; i < candidates.size() && kept.size() < limit; ++i) {
    const TurnedBox box = turn(box_of(candidates[i].index));
    bool suppressed = false;
    for (std::size_t k = 0; k < kept.size() && !suppressed; ++k) {
      if (!options.class_agnostic &&
          candidates[k].record.class_id != candidates[i].record.class_id) {
        continue;
      }
      const double shared = shared_area(kept[k], box);
      suppressed = shared > threshold * (kept[k].area + box.area - shared);
    }
    if (suppressed) continue;
    candidates[kept.size()] = candidates[i];
    kept.push_back(box);
  }
  candidates.resize(kept.size());
}

}  // namespace penstock
