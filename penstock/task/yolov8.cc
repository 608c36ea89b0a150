// SPDX-License-Identifier: Apache-2.0
//
// YOLOv8, 9, 11 and 12 (and 26 exported one-to-many): [batch, 4 + classes, rows], the transpose of
// a row's centre x, centre y, width and height in input pixels and class scores (sigmoid applied,
// no objectness).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/task/box_family.h"
#include "penstock/task/kernels/score_scan.h"
#include "penstock/task/yolo_heads.h"

namespace penstock {
namespace {

/// The highest finite score of one row, the first of equals.
BestClass best_of_row(const float* scores, std::size_t stride, std::size_t classes) {
  BestClass best;
  for (std::size_t c = 0; c < classes; ++c) {
    const float score = scores[c * stride];
    if (!std::isfinite(score) || (best.class_id >= 0 && score <= best.score)) continue;
    best = {static_cast<std::int32_t>(c), score};
  }
  return best;
}

}  // namespace

CollectItem collect_yolov8(const RowValues& head, std::size_t classes, float threshold) {
  return CollectItem([head, classes, threshold](ItemValues outputs,
                                                std::vector<Candidate>& candidates) {
    const auto values = outputs[head.output];
    const std::size_t rows = values.size() / head.width;
    std::vector<std::int32_t> reached;
    for (std::size_t first = 0; first < rows; first += kScanBlock) {
      const float* block = values.data() + first;
      reached.clear();
      scan_columns(block + 4 * rows, rows, classes, std::min(kScanBlock, rows - first), threshold,
                   reached);
      for (const std::int32_t i : reached) {
        const float* box = block + i;
        const BestClass best = best_of_row(box + 4 * rows, rows, classes);
        if (best.class_id < 0 || !(best.score >= threshold)) continue;
        candidates.push_back({.record = box_from_center(box[0], box[rows], box[2 * rows],
                                                        box[3 * rows], best.score, best.class_id),
                              .index = static_cast<std::int32_t>(first) + i});
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
