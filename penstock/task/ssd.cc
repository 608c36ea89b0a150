// SPDX-License-Identifier: Apache-2.0
//
// SSD graphs with their NMS inside, in two forms. Caffe and OpenVINO: [1, 1, boxes, 7] of image,
// class, score, x0, y0, x1, y1 in parts of the input's side; an image below 0 ends the list.
// TensorFlow: boxes [batch, boxes, 4] as y0, x0, y1, x1, classes and scores [batch, boxes], and the
// count [batch], in any order but classes before scores.
#include <algorithm>
#include <cmath>
#include <optional>

#include "penstock/base/str_format.h"
#include "penstock/task/box_family.h"

namespace penstock {
namespace {

constexpr std::string_view kFamily = "ssd";

/// `value` as a class that the labels know, if it is one.
std::optional<std::int32_t> class_of(float value, std::size_t classes) {
  if (!(value >= 0.0f && value < 65536.0f)) return std::nullopt;
  const auto class_id = static_cast<std::int32_t>(value);
  if (classes != 0 && static_cast<std::size_t>(class_id) >= classes) return std::nullopt;
  return class_id;
}

Result<CollectItem> bind_list(const BoxModel& model, std::span<const Shape> shapes) {
  const Shape& shape = shapes[0];
  if (shape.size() != 4 || !may_be(shape[0], 1) || !may_be(shape[1], 1) || shape[3] != 7) {
    return misfit(kFamily, shapes, "one output must be [1, 1, boxes, 7]");
  }
  if (shape[2] > kMaxBoxRows) return misfit(kFamily, shapes, "too many boxes");
  return CollectItem([model](ItemValues outputs, std::vector<Candidate>& candidates) {
    const auto width = static_cast<float>(model.width);
    const auto height = static_cast<float>(model.height);
    for (std::size_t row = 0; row < outputs[0].size() / 7; ++row) {
      const auto v = outputs[0].subspan(row * 7, 7);
      if (!(v[0] >= 0.0f)) break;
      const auto class_id = class_of(v[1], model.classes);
      if (!class_id || !(v[2] >= model.threshold)) continue;
      candidates.push_back({.record = {.x0 = v[3] * width,
                                       .y0 = v[4] * height,
                                       .x1 = v[5] * width,
                                       .y1 = v[6] * height,
                                       .score = v[2],
                                       .class_id = *class_id},
                            .index = static_cast<std::int32_t>(row)});
    }
  });
}

struct FourOutputs {
  std::size_t boxes = 4, classes = 4, scores = 4, count = 4;
};

Result<FourOutputs> match_four(std::span<const Shape> shapes) {
  FourOutputs found;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Shape& shape = shapes[i];
    if (shape.size() == 3 && shape[2] == 4) {
      found.boxes = i;
    } else if (shape.size() == 1 || (shape.size() == 2 && shape[1] == 1)) {
      found.count = i;
    } else if (shape.size() == 2) {
      (found.classes == 4 ? found.classes : found.scores) = i;
    }
  }
  if (std::max({found.boxes, found.classes, found.scores, found.count}) == 4) {
    return misfit(kFamily, shapes,
                  "four outputs must be boxes [batch, boxes, 4], classes and scores [batch, boxes] "
                  "and the count [batch]");
  }
  const std::int64_t rows = shapes[found.boxes][1];
  for (const std::size_t i : {found.classes, found.scores}) {
    if (rows >= 0 && !may_be(shapes[i][1], rows)) {
      return misfit(kFamily, shapes, "boxes, classes and scores differ in number");
    }
  }
  return found;
}

Result<CollectItem> bind_four(const BoxModel& model, std::span<const Shape> shapes) {
  const auto found = match_four(shapes);
  if (!found) return std::unexpected(found.error());
  if (shapes[found->boxes][1] > kMaxBoxRows) return misfit(kFamily, shapes, "too many boxes");
  return CollectItem([model, at = *found](ItemValues outputs, std::vector<Candidate>& candidates) {
    const auto width = static_cast<float>(model.width);
    const auto height = static_cast<float>(model.height);
    const std::size_t rows = std::min(
        {outputs[at.boxes].size() / 4, outputs[at.classes].size(), outputs[at.scores].size()});
    const float count = outputs[at.count].empty() ? 0 : outputs[at.count][0];
    for (std::size_t row = 0; row < rows && static_cast<float>(row) < count; ++row) {
      const auto class_id = class_of(outputs[at.classes][row], model.classes);
      const float score = outputs[at.scores][row];
      if (!class_id || !(score >= model.threshold)) continue;
      const auto box = outputs[at.boxes].subspan(row * 4, 4);
      candidates.push_back({.record = {.x0 = box[1] * width,
                                       .y0 = box[0] * height,
                                       .x1 = box[3] * width,
                                       .y1 = box[2] * height,
                                       .score = score,
                                       .class_id = *class_id},
                            .index = static_cast<std::int32_t>(row)});
    }
  });
}

}  // namespace

Result<BoxReader> bind_ssd(const BoxModel& model, std::span<const Shape> shapes) {
  if (shapes.size() == 1) return bind_list(model, shapes);
  if (shapes.size() == 4) return bind_four(model, shapes);
  return misfit(kFamily, shapes, "they need one output or four");
}

}  // namespace penstock
