// SPDX-License-Identifier: Apache-2.0
//
// MoveNet. Single pose: [batch, 1, keypoints, 3] of y, x, score; its object is the upright hull of
// the keypoints whose score reaches the threshold, with their mean score. Multi-pose: [batch,
// people, keypoints x 3 + 5], the same and then y0, x0, y1, x1, score. Positions are parts of the
// input's sides. One class, no NMS.
#include <algorithm>
#include <cmath>

#include "penstock/base/str_format.h"
#include "penstock/task/box_family.h"

namespace penstock {
namespace {

constexpr std::string_view kFamily = "movenet";

struct Layout {
  std::size_t keypoints = 0;
  std::size_t width = 0;  ///< Values a person.
  float input_width = 0, input_height = 0;

  KeypointRecord keypoint(std::span<const float> person, std::size_t k) const {
    return {.x = person[3 * k + 1] * input_width,
            .y = person[3 * k] * input_height,
            .score = person[3 * k + 2]};
  }
};

/// Without a keypoint that is seen, the corners are infinite.
DetectionRecord hull_of_seen(std::span<const float> person, const Layout& layout, float threshold) {
  DetectionRecord hull{.x0 = HUGE_VALF,
                       .y0 = HUGE_VALF,
                       .x1 = -HUGE_VALF,
                       .y1 = -HUGE_VALF,
                       .score = 0,
                       .class_id = 0};
  double sum = 0;
  int seen = 0;
  for (std::size_t k = 0; k < layout.keypoints; ++k) {
    const KeypointRecord at = layout.keypoint(person, k);
    const bool finite = std::isfinite(at.x) && std::isfinite(at.y) && std::isfinite(at.score);
    if (!finite || !(at.score >= threshold)) continue;
    hull.x0 = std::min(hull.x0, at.x);
    hull.y0 = std::min(hull.y0, at.y);
    hull.x1 = std::max(hull.x1, at.x);
    hull.y1 = std::max(hull.y1, at.y);
    sum += at.score;
    ++seen;
  }
  if (seen > 0) hull.score = static_cast<float>(sum / seen);
  return hull;
}

void collect_single(const Layout& layout, float threshold, ItemValues outputs,
                    std::vector<Candidate>& candidates) {
  candidates.push_back({.record = hull_of_seen(outputs[0], layout, threshold), .index = 0});
}

void collect_people(const Layout& layout, float threshold, ItemValues outputs,
                    std::vector<Candidate>& candidates) {
  for (std::size_t row = 0; row < outputs[0].size() / layout.width; ++row) {
    const auto v = outputs[0].subspan(row * layout.width, layout.width).last(5);
    if (!(v[4] >= threshold)) continue;
    candidates.push_back({.record = {.x0 = v[1] * layout.input_width,
                                     .y0 = v[0] * layout.input_height,
                                     .x1 = v[3] * layout.input_width,
                                     .y1 = v[2] * layout.input_height,
                                     .score = v[4],
                                     .class_id = 0},
                          .index = static_cast<std::int32_t>(row)});
  }
}

Result<void> check_manifest(const BoxModel& model, std::span<const Shape> shapes) {
  if (model.keypoints < 1 || model.keypoints > kMaxKeypoints) {
    return misfit(kFamily, shapes,
                  str_format("the manifest's 'postprocess.keypoints' has {} names, not 1 to {}",
                             model.keypoints, kMaxKeypoints));
  }
  if (model.classes > 1) {
    return misfit(kFamily, shapes, str_format("{} labels for 1 class", model.classes));
  }
  return {};
}

}  // namespace

Result<BoxReader> bind_movenet(const BoxModel& model, std::span<const Shape> shapes) {
  PENSTOCK_TRY(check_manifest(model, shapes));
  const auto keypoints = static_cast<std::int64_t>(model.keypoints);
  const bool single = shapes.size() == 1 && shapes[0].size() == 4 && may_be(shapes[0][1], 1) &&
                      shapes[0][2] == keypoints && shapes[0][3] == 3;
  const bool multi =
      shapes.size() == 1 && shapes[0].size() == 3 && shapes[0][2] == 3 * keypoints + 5;
  if (!single && !multi) {
    return misfit(kFamily, shapes,
                  str_format("they need one [batch, 1, {}, 3] or [batch, people, {}]", keypoints,
                             3 * keypoints + 5));
  }
  if (multi && shapes[0][1] > kMaxBoxRows) return misfit(kFamily, shapes, "too many people");
  const Layout layout{.keypoints = model.keypoints,
                      .width = 3 * model.keypoints + (multi ? 5 : 0),
                      .input_width = static_cast<float>(model.width),
                      .input_height = static_cast<float>(model.height)};
  CollectItem collect([layout, threshold = model.threshold, single](
                          ItemValues outputs, std::vector<Candidate>& candidates) {
    (single ? collect_single : collect_people)(layout, threshold, outputs, candidates);
  });
  return BoxReader(std::move(collect),
                   {.keypoints = model.keypoints,
                    .keypoints_of = [layout](ItemValues outputs, std::size_t row,
                                             std::span<KeypointRecord> records) {
                      const auto person = outputs[0].subspan(row * layout.width, layout.width);
                      for (std::size_t k = 0; k < records.size(); ++k)
                        records[k] = layout.keypoint(person, k);
                    }});
}

}  // namespace penstock
