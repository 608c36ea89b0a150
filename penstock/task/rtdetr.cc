// SPDX-License-Identifier: Apache-2.0
//
// RT-DETR: boxes as centre and size in parts of the input's side; each query is its own object, so
// there is no NMS. Two forms: one [batch, queries, 4 + classes] with sigmoid applied (Ultralytics),
// or logits [batch, queries, classes] and boxes [batch, queries, 4] in either order (Hugging Face),
// whose scores are the logits' sigmoid.
#include <cmath>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/task/box_family.h"
#include "penstock/task/kernels/score_scan.h"

namespace penstock {
namespace {

constexpr std::string_view kFamily = "rtdetr";

struct Scale {
  float width;
  float height;
};

void add(std::span<const float> box, const BestClass& best, float score, Scale scale,
         std::size_t query, std::vector<Candidate>& candidates) {
  candidates.push_back(
      {.record = box_from_center(box[0] * scale.width, box[1] * scale.height, box[2] * scale.width,
                                 box[3] * scale.height, score, best.class_id),
       .index = static_cast<std::int32_t>(query)});
}

Result<CollectItem> bind_joined(const BoxModel& model, std::span<const Shape> shapes) {
  const auto classes = class_count(kFamily, model, shapes, shapes[0][2], 4);
  if (!classes) return std::unexpected(classes.error());
  const Scale scale{static_cast<float>(model.width), static_cast<float>(model.height)};
  return CollectItem([classes = *classes, threshold = model.threshold, scale](
                         ItemValues outputs, std::vector<Candidate>& candidates) {
    const std::size_t width = 4 + classes;
    std::vector<std::int32_t> reached;
    scan_rows(outputs[0], width, 4, classes, threshold, reached);
    for (const std::int32_t position : reached) {
      const auto query = static_cast<std::size_t>(position);
      const auto values = outputs[0].subspan(query * width, width);
      const BestClass best = best_class(values.subspan(4));
      if (best.class_id < 0 || !(best.score >= threshold)) continue;
      add(values, best, best.score, scale, query, candidates);
    }
  });
}

Result<CollectItem> bind_apart(const BoxModel& model, std::span<const Shape> shapes,
                               std::size_t boxes) {
  const std::size_t logits = 1 - boxes;
  const auto classes = class_count(kFamily, model, shapes, shapes[logits][2], 0);
  if (!classes) return std::unexpected(classes.error());
  const Scale scale{static_cast<float>(model.width), static_cast<float>(model.height)};
  return CollectItem([classes = *classes, boxes, logits, threshold = model.threshold, scale](
                         ItemValues outputs, std::vector<Candidate>& candidates) {
    for (std::size_t query = 0; query < outputs[boxes].size() / 4; ++query) {
      const BestClass best = best_class(outputs[logits].subspan(query * classes, classes));
      const float score = sigmoid(best.score);
      if (best.class_id < 0 || !(score >= threshold)) continue;
      add(outputs[boxes].subspan(query * 4, 4), best, score, scale, query, candidates);
    }
  });
}

}  // namespace

Result<BoxReader> bind_rtdetr(const BoxModel& model, std::span<const Shape> shapes) {
  for (const Shape& shape : shapes) {
    if (shape.size() != 3) return misfit(kFamily, shapes, "each must have three dimensions");
    if (shape[1] > kMaxBoxRows) return misfit(kFamily, shapes, "too many queries");
  }
  if (shapes.size() == 1) return bind_joined(model, shapes);
  if (shapes.size() != 2)
    return misfit(kFamily, shapes, "they need one output, or logits and boxes");
  if (!may_be(shapes[0][1], shapes[1][1]) && shapes[1][1] >= 0) {
    return misfit(kFamily, shapes, "logits and boxes differ in their number of queries");
  }
  const bool first = shapes[0][2] == 4;
  const bool second = shapes[1][2] == 4;
  if (!first && !second) return misfit(kFamily, shapes, "neither has the four values of a box");
  // With four classes the shapes don't tell: exporters write logits first.
  return bind_apart(model, shapes, second ? 1 : 0);
}

}  // namespace penstock
