// SPDX-License-Identifier: Apache-2.0
//
// Turned boxes against two oracles that share nothing with the clipping: counting points, and the
// hull of the corners and crossings that lie in both boxes.
#include "penstock/task/rotated_nms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <utility>
#include <vector>

namespace penstock {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kPi = std::numbers::pi_v<float>;

struct Spot {
  double x, y;
};

/// `p` in the box's own axes, from its centre.
Spot in_axes(const RotatedRecord& box, Spot p) {
  const double c = std::cos(double(box.angle)), s = std::sin(double(box.angle));
  const double dx = p.x - double(box.center_x), dy = p.y - double(box.center_y);
  return {dx * c + dy * s, dy * c - dx * s};
}

bool holds(const RotatedRecord& box, Spot p, double slack = 0) {
  const Spot own = in_axes(box, p);
  return std::abs(own.x) <= double(box.width) / 2 + slack &&
         std::abs(own.y) <= double(box.height) / 2 + slack;
}

/// The point at (u, v) of the box's half sides.
Spot spot_of(const RotatedRecord& box, double u, double v) {
  const double c = std::cos(double(box.angle)), s = std::sin(double(box.angle));
  const double x = u * double(box.width) / 2, y = v * double(box.height) / 2;
  return {double(box.center_x) + x * c - y * s, double(box.center_y) + x * s + y * c};
}

double counted_area(const RotatedRecord& a, const RotatedRecord& b) {
  constexpr int kSteps = 300;
  int inside = 0;
  for (int i = 0; i < kSteps; ++i) {
    for (int j = 0; j < kSteps; ++j) {
      inside += holds(b, spot_of(a, (2 * i + 1.0) / kSteps - 1, (2 * j + 1.0) / kSteps - 1));
    }
  }
  return double(a.width) * double(a.height) * inside / (kSteps * kSteps);
}

/// The corners of what both boxes share, in the order of their angle around their middle.
double hulled_area(const RotatedRecord& a, const RotatedRecord& b) {
  constexpr std::array<std::array<double, 2>, 4> kCorners{{{-1, -1}, {1, -1}, {1, 1}, {-1, 1}}};
  std::array<Spot, 4> of_a, of_b;
  for (std::size_t i = 0; i < 4; ++i) {
    of_a[i] = spot_of(a, kCorners[i][0], kCorners[i][1]);
    of_b[i] = spot_of(b, kCorners[i][0], kCorners[i][1]);
  }
  std::vector<Spot> shared;
  for (const Spot& p : of_a)
    if (holds(b, p, 1e-9)) shared.push_back(p);
  for (const Spot& p : of_b)
    if (holds(a, p, 1e-9)) shared.push_back(p);
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      const Spot p = of_a[i], q = of_b[j];
      const Spot r{of_a[(i + 1) % 4].x - p.x, of_a[(i + 1) % 4].y - p.y};
      const Spot s{of_b[(j + 1) % 4].x - q.x, of_b[(j + 1) % 4].y - q.y};
      const double cross = r.x * s.y - r.y * s.x;
      if (std::abs(cross) < 1e-12) continue;
      const double t = ((q.x - p.x) * s.y - (q.y - p.y) * s.x) / cross;
      const double u = ((q.x - p.x) * r.y - (q.y - p.y) * r.x) / cross;
      if (t >= 0 && t <= 1 && u >= 0 && u <= 1) shared.push_back({p.x + t * r.x, p.y + t * r.y});
    }
  }
  if (shared.size() < 3) return 0;
  Spot middle{0, 0};
  for (const Spot& p : shared) {
    middle.x += p.x / double(shared.size());
    middle.y += p.y / double(shared.size());
  }
  std::ranges::sort(shared, {},
                    [&](const Spot& p) { return std::atan2(p.y - middle.y, p.x - middle.x); });
  double twice = 0;
  for (std::size_t i = 0; i < shared.size(); ++i) {
    const Spot p = shared[i], q = shared[(i + 1) % shared.size()];
    twice += (p.x - middle.x) * (q.y - middle.y) - (p.y - middle.y) * (q.x - middle.x);
  }
  return twice / 2;
}

RotatedRecord random_box(std::mt19937& random, float spread) {
  std::uniform_real_distribution<float> place(100, 100 + spread), side(4, 60), angle(-7, 7);
  return {place(random), place(random), side(random), side(random), angle(random)};
}

TEST(SharedArea, GivenRandomBoxes_WhenIntersected_ThenBothOraclesAgree) {
  std::mt19937 random(3);
  int touching = 0;
  for (int i = 0; i < 2000; ++i) {
    const RotatedRecord a = random_box(random, 50), b = random_box(random, 50);
    const double got = shared_area(a, b);
    ASSERT_NEAR(got, hulled_area(a, b), 1e-6) << i;
    ASSERT_NEAR(got, shared_area(b, a), 1e-6) << i;
    touching += got > 0;
    if (i % 40 != 0) continue;
    const double area = double(a.width) * double(a.height);
    ASSERT_NEAR(got, counted_area(a, b), 0.01 * area) << i;
  }
  EXPECT_GT(touching, 1000);
}

TEST(SharedArea, GivenBoxesWithSharedSidesOrCorners_WhenIntersected_ThenTheAreaIsExact) {
  const RotatedRecord box{50, 50, 20, 10, 0};
  EXPECT_EQ(shared_area(box, box), 200);
  EXPECT_EQ(shared_area(box, {60, 50, 20, 10, 0}), 100);
  EXPECT_EQ(shared_area(box, {70, 50, 20, 10, 0}), 0);   // a side in common
  EXPECT_EQ(shared_area(box, {70, 60, 20, 10, 0}), 0);   // a corner
  EXPECT_EQ(shared_area(box, {50, 50, 4, 2, 0}), 8);     // inside
  EXPECT_EQ(shared_area(box, {500, 50, 20, 10, 1}), 0);  //
  EXPECT_NEAR(shared_area(box, {50, 50, 10, 20, kPi / 2}), 200, 1e-4);
  EXPECT_NEAR(shared_area(box, {50, 50, 20, 10, kPi}), 200, 1e-4);
  EXPECT_NEAR(shared_area({0, 0, 2, 2, 0}, {0, 0, 2, 2, kPi / 4}), 8 * (std::sqrt(2.0) - 1), 1e-6);
  // Far from the origin, where float32 has steps of 1/64.
  EXPECT_NEAR(shared_area({200000, 200000, 20, 10, 0.5f}, {200000, 200000, 20, 10, 0.5f}), 200,
              1e-6);
}

TEST(SharedArea, GivenBoxesThatAreNotFinite_WhenIntersected_ThenNothingIsShared) {
  const RotatedRecord box{50, 50, 20, 10, 0.3f};
  for (const float bad : {kNan, kInf, -kInf}) {
    for (const RotatedRecord& other :
         {RotatedRecord{bad, 50, 20, 10, 0}, RotatedRecord{50, 50, bad, 10, 0},
          RotatedRecord{50, 50, 20, bad, 1}, RotatedRecord{50, 50, 20, 10, bad}}) {
      EXPECT_GE(shared_area(box, other), 0);
      EXPECT_LE(shared_area(box, other), 200);
      const DetectionRecord hull = upright_hull(other, 1, 0);
      EXPECT_FALSE(std::isfinite(hull.x0) && std::isfinite(hull.y0) && std::isfinite(hull.x1) &&
                   std::isfinite(hull.y1));
    }
  }
}

TEST(UprightHull, GivenTurnedBoxes_WhenHulled_ThenAllCornersJustFit) {
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    const RotatedRecord box = random_box(random, 300);
    double x0 = 1e9, y0 = 1e9, x1 = -1e9, y1 = -1e9;
    for (const double u : {-1, 1}) {
      for (const double v : {-1, 1}) {
        const Spot p = spot_of(box, u, v);
        x0 = std::min(x0, p.x);
        y0 = std::min(y0, p.y);
        x1 = std::max(x1, p.x);
        y1 = std::max(y1, p.y);
      }
    }
    const DetectionRecord hull = upright_hull(box, 0.5f, 3);
    ASSERT_NEAR(hull.x0, x0, 1e-4);
    ASSERT_NEAR(hull.y0, y0, 1e-4);
    ASSERT_NEAR(hull.x1, x1, 1e-4);
    ASSERT_NEAR(hull.y1, y1, 1e-4);
    ASSERT_EQ(hull.score, 0.5f);
    ASSERT_EQ(hull.class_id, 3);
  }
}

/// Which indices survive, by repeated selection.
std::vector<std::int32_t> reference(const std::vector<RotatedRecord>& boxes,
                                    const std::vector<Candidate>& candidates, double threshold,
                                    bool agnostic, std::size_t limit) {
  std::vector<bool> gone(candidates.size(), false);
  std::vector<std::int32_t> winners;
  while (winners.size() < limit) {
    const Candidate* best = nullptr;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const Candidate& c = candidates[i];
      if (gone[i]) continue;
      if (best == nullptr || c.record.score > best->record.score ||
          (c.record.score == best->record.score && c.index < best->index)) {
        best = &c;
      }
    }
    if (best == nullptr) break;
    winners.push_back(best->index);
    const RotatedRecord& a = boxes[std::size_t(best->index)];
    const double area_a = double(a.width) * double(a.height);
    gone[std::size_t(best - candidates.data())] = true;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (gone[i] || (!agnostic && candidates[i].record.class_id != best->record.class_id))
        continue;
      const RotatedRecord& b = boxes[std::size_t(candidates[i].index)];
      const double shared = hulled_area(a, b);
      const double joint = area_a + double(b.width) * double(b.height) - shared;
      if (shared > threshold * joint) gone[i] = true;
    }
  }
  return winners;
}

TEST(RotatedNms, GivenRandomBoxesWithEqualScores_WhenThinned_ThenTheReferenceAgrees) {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> level(1, 20), class_id(0, 2);
    std::vector<RotatedRecord> boxes;
    std::vector<Candidate> candidates;
    for (int i = 0; i < 250; ++i) {
      boxes.push_back(random_box(random, 150));
      candidates.push_back(
          {upright_hull(boxes.back(), float(level(random)) / 20, class_id(random)), i});
    }
    DecodeOptions options;
    options.iou_threshold = 0.1f * float(seed % 6);
    options.class_agnostic = seed % 2 == 0;
    options.max_objects = seed % 3 == 0 ? 20 : 300;
    auto thinned = candidates;
    std::ranges::shuffle(thinned, random);
    rotated_non_maximum_suppression(thinned, options,
                                    [&](std::int32_t i) { return boxes[std::size_t(i)]; });
    const auto wanted = reference(boxes, candidates, double(options.iou_threshold),
                                  options.class_agnostic, std::size_t(options.max_objects));
    ASSERT_EQ(thinned.size(), wanted.size()) << seed;
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(thinned[i].index, wanted[i]) << seed;
  }
}

TEST(RotatedNms, GivenAnIouOfJustTheThreshold_WhenThinned_ThenBothStay) {
  const std::vector<RotatedRecord> boxes{{50, 50, 12, 10, 0}, {54, 50, 12, 10, 0}};  // 80 of 160
  std::vector<Candidate> candidates{{upright_hull(boxes[0], 0.9f, 0), 0},
                                    {upright_hull(boxes[1], 0.9f, 0), 1}};
  auto thinned = candidates;
  const auto box_of = [&](std::int32_t i) { return boxes[std::size_t(i)]; };
  rotated_non_maximum_suppression(thinned, {.iou_threshold = 0.5f}, box_of);
  EXPECT_EQ(thinned.size(), 2u);
  rotated_non_maximum_suppression(thinned, {.iou_threshold = 0.499f}, box_of);
  ASSERT_EQ(thinned.size(), 1u);
  EXPECT_EQ(thinned[0].index, 0);
}

TEST(RotatedNms, GivenEqualBoxesAndAThresholdOfOne_WhenThinned_ThenAllStay) {
  std::mt19937 random(9);
  for (int i = 0; i < 200; ++i) {
    const RotatedRecord box = random_box(random, 1000);
    std::vector<Candidate> candidates{{upright_hull(box, 0.9f, 0), 0},
                                      {upright_hull(box, 0.8f, 0), 1}};
    rotated_non_maximum_suppression(candidates, {.iou_threshold = 1},
                                    [&](std::int32_t) { return box; });
    ASSERT_EQ(candidates.size(), 2u) << i;
  }
}

}  // namespace
}  // namespace penstock
