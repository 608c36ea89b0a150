// SPDX-License-Identifier: Apache-2.0
//
// YOLOv8, 9, 11 and 12 (and 26 exported one-to-many): [batch, 4 + classes, rows], the transpose of
// a row's centre x, centre y, width and height in input pixels and class scores (sigmoid applied,
// no objectness).
#include <algorithm>
#include <cmath>

#include "penstock/base/str_format.h"
#include "penstock/task/box_family.h"
#include "penstock/task/yolo_heads.h"

namespace penstock {
namespace {

// Rows that are looked at together, so that their best scores stay in the first-level cache while
// each class's line passes.
constexpr std::size_t kBlock = 1024;

struct Best {
  float scores[kBlock];
  std::int32_t classes[kBlock];
};

void best_of_block(std::span<const float> values, std::size_t rows, std::size_t classes,
                   std::size_t first, std::size_t count, Best& best) {
  std::fill_n(best.scores, count, -1.0f);
  std::fill_n(best.classes, count, -1);
  for (std::size_t c = 0; c < classes; ++c) {
    const float* line = values.data() + (4 + c) * rows + first;
    const auto class_id = static_cast<std::int32_t>(c);
    for (std::size_t i = 0; i < count; ++i) {
      // NaN compares false, infinity is no score.
      const bool wins = line[i] > best.scores[i] && line[i] <= 3.0e38f;
      best.scores[i] = wins ? line[i] : best.scores[i];
      best.classes[i] = wins ? class_id : best.classes[i];
    }
  }
}

}  // namespace

CollectItem collect_yolov8(const RowValues& head, std::size_t classes, float threshold) {
  return CollectItem(
      [head, classes, threshold](ItemValues outputs, std::vector<Candidate>& candidates) {
        const auto values = outputs[head.output];
        const std::size_t rows = values.size() / head.width;
        Best best;
        for (std::size_t first = 0; first < rows; first += kBlock) {
          const std::size_t count = std::min(kBlock, rows - first);
          best_of_block(values, rows, classes, first, count, best);
          for (std::size_t i = 0; i < count; ++i) {
            if (best.classes[i] < 0 || !(best.scores[i] >= threshold)) continue;
            const float* box = values.data() + first + i;
            candidates.push_back(
                {.record = box_from_center(box[0], box[rows], box[2 * rows], box[3 * rows],
                                           best.scores[i], best.classes[i]),
                 .index = static_cast<std::int32_t>(first + i)});
          }
        }
      });
}

Result<BoxReader> bind_yolov8(const BoxModel& model, std::span<const Shape> shapes) {
  constexpr std::string_view kFamily = "yolov8";
  if (shapes.size() != 1 || shapes[0].size() != 3) {
    return misfit(kFamily, shapes, "they need one [batch, 4 + classes, rows]");
  }
  if (shapes[0][2] > kMaxBoxRows) return misfit(kFamily, shapes, "too many rows");
  const auto classes = class_count(kFamily, model, shapes, shapes[0][1], 4);
  if (!classes) return std::unexpected(classes.error());
  return collect_yolov8({.output = 0, .width = 4 + *classes, .columns = true}, *classes,
                        model.threshold);
}

}  // namespace penstock
