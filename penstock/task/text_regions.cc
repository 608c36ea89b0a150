// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/text_regions.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace penstock {
namespace {

constexpr float kLeastSide = 3;

/// Pixels begin..end of a row; `parent` leads to the region's first run.
struct Run {
  std::int32_t row, begin, end;
  std::uint32_t parent;
};

std::uint32_t root_of(std::vector<Run>& runs, std::uint32_t i) {
  while (runs[i].parent != i) {
    runs[i].parent = runs[runs[i].parent].parent;
    i = runs[i].parent;
  }
  return i;
}

/// The lower one stays the root, so that regions are in the order of their first runs.
void join(std::vector<Run>& runs, std::uint32_t a, std::uint32_t b) {
  a = root_of(runs, a);
  b = root_of(runs, b);
  runs[std::max(a, b)].parent = std::min(a, b);
}

void append_runs(const ProbabilityMap& map, std::size_t row, float threshold,
                 std::vector<Run>& runs) {
  const auto values = map.values.subspan(row * map.width, map.width);
  const auto is_text = [&](std::size_t x) {
    return values[x] >= threshold && values[x] <= std::numeric_limits<float>::max();
  };
  for (std::size_t x = 0; x < map.width; ++x) {
    if (!is_text(x)) continue;
    const std::size_t begin = x;
    while (x < map.width && is_text(x)) ++x;
    runs.push_back({.row = static_cast<std::int32_t>(row),
                    .begin = static_cast<std::int32_t>(begin),
                    .end = static_cast<std::int32_t>(x),
                    .parent = static_cast<std::uint32_t>(runs.size())});
  }
}

std::vector<Run> connected_runs(const ProbabilityMap& map, float threshold) {
  std::vector<Run> runs;
  std::size_t above = 0;  // runs[above .. here) are of the row above
  for (std::size_t row = 0; row < map.height; ++row) {
    const std::size_t here = runs.size();
    append_runs(map, row, threshold, runs);
    std::size_t upper = above;
    for (std::size_t i = here; i < runs.size(); ++i) {
      // Corners touch, too: begin may be the other's end.
      while (upper < here && runs[upper].end < runs[i].begin) ++upper;
      for (std::size_t u = upper; u < here && runs[u].begin <= runs[i].end; ++u) {
        join(runs, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(u));
      }
    }
    above = here;
  }
  return runs;
}

struct Corner {
  std::int64_t x, y;
};

/// Of the way a, b, c: positive when it turns clockwise as seen.
std::int64_t turn_of(const Corner& a, const Corner& b, const Corner& c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

/// Corners of the convex hull; `corners` are in any order and are spent.
std::vector<Corner> hull_of(std::vector<Corner>& corners) {
  std::ranges::sort(
      corners, [](const Corner& a, const Corner& b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
  std::vector<Corner> hull;
  const auto append = [&](const Corner& corner, std::size_t least) {
    while (hull.size() >= least + 2 && turn_of(hull[hull.size() - 2], hull.back(), corner) <= 0) {
      hull.pop_back();
    }
    hull.push_back(corner);
  };
  for (const Corner& corner : corners) append(corner, 0);
  hull.pop_back();
  const std::size_t half = hull.size();
  for (auto corner = corners.rbegin(); corner != corners.rend(); ++corner) append(*corner, half);
  hull.pop_back();
  return hull;
}

/// The hull's extent along a direction (dx, dy) and across it, both times the direction's length:
/// integers, so that areas compare exactly.
struct Extent {
  Corner along;
  std::int64_t least_along, most_along, least_across, most_across;

  double squared() const { return static_cast<double>(along.x * along.x + along.y * along.y); }
  double area() const {
    return static_cast<double>(most_along - least_along) *
           static_cast<double>(most_across - least_across) / squared();
  }
};

Extent extent_of(const std::vector<Corner>& hull, const Corner& along) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  Extent extent{along, kMost, -kMost, kMost, -kMost};
  for (const Corner& corner : hull) {
    const std::int64_t a = corner.x * along.x + corner.y * along.y;
    const std::int64_t b = corner.y * along.x - corner.x * along.y;
    extent.least_along = std::min(extent.least_along, a);
    extent.most_along = std::max(extent.most_along, a);
    extent.least_across = std::min(extent.least_across, b);
    extent.most_across = std::max(extent.most_across, b);
  }
  return extent;
}

RotatedRecord box_of(const Extent& extent) {
  const double squared = extent.squared(), length = std::sqrt(squared);
  const double along = static_cast<double>(extent.least_along + extent.most_along) / 2 / squared;
  const double across = static_cast<double>(extent.least_across + extent.most_across) / 2 / squared;
  const auto x = static_cast<double>(extent.along.x), y = static_cast<double>(extent.along.y);
  return {.center_x = static_cast<float>(along * x - across * y),
          .center_y = static_cast<float>(along * y + across * x),
          .width = static_cast<float>(static_cast<double>(extent.most_along - extent.least_along) /
                                      length),
          .height = static_cast<float>(
              static_cast<double>(extent.most_across - extent.least_across) / length),
          .angle = static_cast<float>(std::atan2(y, x))};
}

/// One side of the smallest box lies on a side of the hull.
RotatedRecord smallest_box(const std::vector<Corner>& hull) {
  Extent best = extent_of(hull, {1, 0});
  for (std::size_t i = 0; i < hull.size(); ++i) {
    const Corner& from = hull[i];
    const Corner& to = hull[(i + 1) % hull.size()];
    Corner along{to.x - from.x, to.y - from.y};
    // A quarter turn makes the same box: the one that runs more to the right than down or up.
    if (std::abs(along.y) > std::abs(along.x)) along = {along.y, -along.x};
    if (along.x < 0) along = {-along.x, -along.y};
    const Extent extent = extent_of(hull, along);
    if (extent.area() < best.area()) best = extent;
  }
  return box_of(best);
}

std::size_t within(double value, std::size_t most) {
  return static_cast<std::size_t>(std::clamp(value, 0.0, static_cast<double>(most)));
}

struct Span {
  std::size_t begin = 0, end = 0;
};

/// A turned box, asked row by row for the pixels whose centres it holds.
class BoxRows {
 public:
  BoxRows(const RotatedRecord& box, const ProbabilityMap& map)
      : x_(double{box.center_x}),
        y_(double{box.center_y}),
        half_width_(double{box.width} / 2),
        half_height_(double{box.height} / 2),
        cosine_(std::cos(double{box.angle})),
        sine_(std::sin(double{box.angle})),
        columns_(map.width) {
    const double reach = std::hypot(half_width_, half_height_);
    rows_ = {within(y_ - reach, map.height), within(std::ceil(y_ + reach), map.height)};
  }

  /// No other row has pixels.
  const Span& rows() const { return rows_; }

  Span pixels(std::size_t row) const {
    const double down = static_cast<double>(row) + 0.5 - y_;
    Crossing crossing;
    // |right * cosine + down * sine| <= width / 2 and |down * cosine - right * sine| <= height / 2
    crossing.clip(cosine_, down * sine_, half_width_);
    crossing.clip(-sine_, down * cosine_, half_height_);
    // Written so that an empty crossing, or one that is no number, has no pixel.
    if (!(crossing.begin < crossing.end)) return {};
    return {within(std::ceil(crossing.begin + x_ - 0.5), columns_),
            within(std::floor(crossing.end + x_ - 0.5) + 1, columns_)};
  }

 private:
  /// Where a row's line through the pixels' centres enters and leaves the box.
  struct Crossing {
    double begin = -std::numeric_limits<double>::infinity();
    double end = std::numeric_limits<double>::infinity();

    void clip(double slope, double offset, double half) {
      if (std::abs(slope) < 1e-12) {
        if (std::abs(offset) > half) end = begin;
        return;
      }
      const double a = (-half - offset) / slope, b = (half - offset) / slope;
      begin = std::max(begin, std::min(a, b));
      end = std::min(end, std::max(a, b));
    }
  };

  double x_, y_, half_width_, half_height_, cosine_, sine_;
  std::size_t columns_;
  Span rows_;
};

/// The sum and number of finite values.
struct Total {
  double sum = 0;
  std::uint32_t count = 0;

  Total& operator+=(const Total& other) {
    sum += other.sum;
    count += other.count;
    return *this;
  }
};

/// A row's sums over pairs, pairs of pairs and so on, so that any part of it is a few of them: no
/// difference of large sums, in which small values would be lost.
class RowSums {
 public:
  explicit RowSums(std::size_t width) : width_(width), totals_(2 * width) {}

  void take(std::span<const float> values) {
    for (std::size_t x = 0; x < width_; ++x) {
      const bool counts = std::isfinite(values[x]);
      totals_[width_ + x] = {counts ? double{values[x]} : 0.0, counts ? 1u : 0u};
    }
    for (std::size_t i = width_ - 1; i > 0; --i) {
      totals_[i] = totals_[2 * i];
      totals_[i] += totals_[2 * i + 1];
    }
    work_ += width_;
  }

  Total of(const Span& pixels) {
    Total all;
    std::size_t begin = pixels.begin + width_, end = pixels.end + width_;
    while (begin < end) {
      if (begin % 2 == 1) all += part(begin++);
      if (end % 2 == 1) all += part(--end);
      begin /= 2;
      end /= 2;
    }
    return all;
  }

  std::uint64_t work() const { return work_; }

 private:
  const Total& part(std::size_t i) {
    ++work_;
    return totals_[i];
  }

  std::size_t width_;
  /// Pixel x at width + x, and at i the total of 2 i and 2 i + 1.
  std::vector<Total> totals_;
  std::uint64_t work_ = 0;
};

/// The upright box around a region. A turned one is nowhere wider or higher.
struct Bounds {
  std::int32_t left = std::numeric_limits<std::int32_t>::max(), right = 0, top = 0, bottom = 0;

  bool may_hold_text() const {
    return static_cast<float>(right - left) >= kLeastSide &&
           static_cast<float>(bottom - top) >= kLeastSide;
  }
};

/// Those of a region are at its root.
std::vector<Bounds> bounds_of(std::vector<Run>& runs) {
  std::vector<Bounds> bounds(runs.size());
  for (std::uint32_t i = 0; i < runs.size(); ++i) {
    const std::uint32_t root = root_of(runs, i);
    Bounds& all = bounds[root];
    if (root == i) all.top = runs[i].row;
    all.left = std::min(all.left, runs[i].begin);
    all.right = std::max(all.right, runs[i].end);
    all.bottom = runs[i].row + 1;
  }
  return bounds;
}

}  // namespace

std::vector<TextRegion> find_text_regions(const ProbabilityMap& map, float pixel_threshold) {
  std::vector<Run> runs = connected_runs(map, pixel_threshold);
  const std::vector<Bounds> bounds = bounds_of(runs);
  // A region's corners: of each row the outermost runs' only.
  std::vector<std::vector<Corner>> regions;
  std::vector<std::size_t> region_of(runs.size(), kMostTextRegions);
  for (std::uint32_t i = 0; i < runs.size(); ++i) {
    const std::uint32_t root = root_of(runs, i);
    if (root == i && bounds[i].may_hold_text() && regions.size() < kMostTextRegions) {
      region_of[i] = regions.size();
      regions.emplace_back();
    }
    if (region_of[root] == kMostTextRegions) continue;
    const Run& run = runs[i];
    auto& corners = regions[region_of[root]];
    const std::int64_t begin = run.begin, end = run.end, row = run.row;
    if (corners.empty() || corners.back().y != row + 1) {
      corners.insert(corners.end(), {{begin, row}, {begin, row + 1}, {end, row}, {end, row + 1}});
    } else {
      corners[corners.size() - 2].x = corners.back().x = end;
    }
  }
  std::vector<TextRegion> found;
  for (std::vector<Corner>& corners : regions) {
    const RotatedRecord box = smallest_box(hull_of(corners));
    if (box.width >= kLeastSide && box.height >= kLeastSide) found.push_back({box});
  }
  return found;
}

std::vector<float> means_inside(const ProbabilityMap& map, std::span<const RotatedRecord> boxes,
                                std::uint64_t* work) {
  std::vector<BoxRows> lines;
  lines.reserve(boxes.size());
  for (const RotatedRecord& box : boxes) lines.emplace_back(box, map);
  std::vector<Total> totals(boxes.size());
  RowSums sums(map.width);
  for (std::size_t row = 0; row < map.height; ++row) {
    bool is_taken = false;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (row < lines[i].rows().begin || row >= lines[i].rows().end) continue;
      const Span pixels = lines[i].pixels(row);
      if (pixels.begin >= pixels.end) continue;
      if (!is_taken) sums.take(map.values.subspan(row * map.width, map.width));
      is_taken = true;
      totals[i] += sums.of(pixels);
    }
  }
  if (work != nullptr) *work = sums.work();
  std::vector<float> means;
  for (const Total& total : totals) {
    means.push_back(
        total.count == 0 ? 0.0f : static_cast<float>(total.sum / static_cast<double>(total.count)));
  }
  return means;
}

}  // namespace penstock
