// SPDX-License-Identifier: Apache-2.0
#include "penstock/track/testing/crowd.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "penstock/track/assignment.h"

namespace penstock::testing {
namespace {

struct Walker {
  std::int64_t id;
  float x, y, speed_x, speed_y, width, height;
  int hidden = 0;
};

class Crowd {
 public:
  explicit Crowd(const CrowdOptions& options) : options_(options), random_(options.seed) {
    for (int i = 0; i < options.objects; ++i) walkers_.push_back(enter(uniform(0.1f, 0.9f)));
  }

  CrowdFrame next() {
    CrowdFrame frame;
    for (Walker& walker : walkers_) move(walker);
    for (const Walker& walker : walkers_) {
      if (walker.hidden > 0) continue;
      frame.visible.push_back({walker.id, walker.x - walker.width / 2, walker.y - walker.height / 2,
                               walker.width, walker.height});
    }
    for (const TrueObject& object : frame.visible) {
      if (uniform(0, 1) >= options_.missed) frame.detections.push_back(detect(object));
    }
    const double wrong = frame.detections.size() * double(options_.false_detections);
    const int count = int(wrong) + (uniform(0, 1) < float(wrong - std::floor(wrong)) ? 1 : 0);
    for (int i = 0; i < count; ++i) frame.detections.push_back(invent());
    std::ranges::shuffle(frame.detections, random_);
    return frame;
  }

 private:
  float uniform(float low, float high) {
    // Not std::uniform_real_distribution, whose numbers are each library's own.
    return low + (high - low) * float(random_() >> 8) / float(1 << 24);
  }
  float normal() {
    float sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform(0, 1);
    return sum;
  }

  Walker enter(float across) {
    const bool rightwards = uniform(0, 1) < 0.5f;
    const float height = uniform(80, 180);
    Walker walker{.id = ++last_id_,
                  .x = 0,
                  .y = 0,
                  .speed_x = uniform(1.5f, 6) * (rightwards ? 1.0f : -1.0f),
                  .speed_y = options_.crossings ? 0 : uniform(-0.6f, 0.6f),
                  .width = height * uniform(0.35f, 0.5f),
                  .height = height};
    const auto width = float(options_.width);
    walker.x = rightwards ? across * width : (1 - across) * width;
    const float lane = options_.crossings ? float(1 + random_() % 3) * 0.25f : uniform(0.2f, 0.8f);
    walker.y = lane * float(options_.height);
    return walker;
  }

  void move(Walker& walker) {
    walker.speed_x += normal() * 0.05f;
    walker.speed_y += options_.crossings ? 0 : normal() * 0.03f;
    walker.x += walker.speed_x;
    walker.y += walker.speed_y;
    if (walker.hidden > 0) {
      --walker.hidden;
    } else if (options_.occlusion_frames > 0 && uniform(0, 1) < 0.004f) {
      walker.hidden = 5 + int(random_() % std::uint32_t(options_.occlusion_frames - 4));
    }
    const float half_width = walker.width / 2, half_height = walker.height / 2;
    const bool outside = walker.x < half_width || walker.x > float(options_.width) - half_width ||
                         walker.y < half_height || walker.y > float(options_.height) - half_height;
    if (outside) walker = enter(0.08f);
  }

  Detection detect(const TrueObject& object) {
    const float sigma = options_.jitter * object.height;
    Detection detection;
    detection.label = "person";
    detection.confidence = uniform(0.55f, 0.95f);
    detection.x = object.x + normal() * sigma;
    detection.y = object.y + normal() * sigma;
    detection.width = std::max(object.width + normal() * sigma, 4.0f);
    detection.height = std::max(object.height + normal() * sigma, 4.0f);
    return detection;
  }

  Detection invent() {
    const float height = uniform(80, 180);
    TrueObject object{.width = height * 0.4f, .height = height};
    object.x = uniform(0, float(options_.width) - object.width);
    object.y = uniform(0, float(options_.height) - object.height);
    return detect(object);
  }

  const CrowdOptions options_;
  std::mt19937 random_;
  std::int64_t last_id_ = 0;
  std::vector<Walker> walkers_;
};

double overlap(const TrueObject& a, const Detection& b) {
  const double width = std::min(double(a.x) + a.width, double(b.x) + b.width) - std::max(a.x, b.x);
  const double height =
      std::min(double(a.y) + a.height, double(b.y) + b.height) - std::max(a.y, b.y);
  if (width <= 0 || height <= 0) return 0;
  const double inter = width * height;
  return inter / (double(a.width) * a.height + double(b.width) * b.height - inter);
}

using Ids = std::pair<std::int64_t, std::int64_t>;

/// The frames that true and told ids have in common when each goes with one of the others at most,
/// as many as can be.
std::uint64_t matched_identities(const std::map<Ids, std::uint64_t>& together) {
  std::map<std::int64_t, std::size_t> rows, columns;
  std::uint64_t most = 0;
  for (const auto& [ids, count] : together) {
    rows.try_emplace(ids.first, rows.size());
    columns.try_emplace(ids.second, columns.size());
    most = std::max(most, count);
  }
  std::vector<float> costs(rows.size() * columns.size(), kNoPair);
  std::vector<std::uint64_t> counts(costs.size());
  for (const auto& [ids, count] : together) {
    const std::size_t at = rows[ids.first] * columns.size() + columns[ids.second];
    counts[at] = count;
    costs[at] = 1 - float(double(count) / double(most));
  }
  const std::vector<int> columns_of = assign(costs, rows.size(), columns.size());
  std::uint64_t matched = 0;
  for (std::size_t row = 0; row < columns_of.size(); ++row) {
    if (columns_of[row] < 0) continue;
    matched += counts[row * columns.size() + std::size_t(columns_of[row])];
  }
  return matched;
}

}  // namespace

std::vector<CrowdFrame> make_crowd(const CrowdOptions& options) {
  Crowd crowd(options);
  std::vector<CrowdFrame> frames;
  for (int i = 0; i < options.frames; ++i) frames.push_back(crowd.next());
  return frames;
}

TrackingFigures judge(const std::vector<CrowdFrame>& crowd,
                      const std::vector<std::vector<Detection>>& told) {
  std::map<std::int64_t, std::int64_t> last;  // Told id of each true one.
  std::map<Ids, std::uint64_t> together;
  std::uint64_t true_objects = 0, told_objects = 0, matches = 0, switches = 0;
  for (std::size_t f = 0; f < crowd.size(); ++f) {
    struct Pair {
      double overlap;
      std::size_t truth, told;
      bool was;  ///< The pair of the frame before is kept where it can be (CLEAR).
    };
    std::vector<Pair> pairs;
    const auto& truth = crowd[f].visible;
    true_objects += truth.size();
    for (std::size_t b = 0; b < told[f].size(); ++b) {
      if (told[f][b].track_id == 0) continue;
      ++told_objects;
      for (std::size_t a = 0; a < truth.size(); ++a) {
        const double iou = overlap(truth[a], told[f][b]);
        if (iou < 0.5) continue;
        const auto before = last.find(truth[a].id);
        pairs.push_back({iou, a, b, before != last.end() && before->second == told[f][b].track_id});
      }
    }
    std::ranges::sort(pairs, [](const Pair& a, const Pair& b) {
      return a.was != b.was ? a.was : a.overlap > b.overlap;
    });
    std::vector<bool> used_truth(truth.size()), used_told(told[f].size());
    for (const Pair& pair : pairs) {
      if (used_truth[pair.truth] || used_told[pair.told]) continue;
      used_truth[pair.truth] = used_told[pair.told] = true;
      ++matches;
      const std::int64_t id = told[f][pair.told].track_id;
      ++together[{truth[pair.truth].id, id}];
      const auto [before, is_new] = last.try_emplace(truth[pair.truth].id, id);
      if (!is_new && before->second != id) ++switches;
      before->second = id;
    }
  }
  TrackingFigures figures;
  const auto misses = double(true_objects - matches), wrong = double(told_objects - matches);
  figures.mota = 1 - (misses + wrong + double(switches)) / double(true_objects);
  figures.idf1 = 2 * double(matched_identities(together)) / double(true_objects + told_objects);
  figures.switches = switches;
  return figures;
}

}  // namespace penstock::testing
