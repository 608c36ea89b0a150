// SPDX-License-Identifier: Apache-2.0
//
// YOLOv5 and YOLOv7, exported with their grid: [batch, rows, 5 + classes], a row being centre x,
// centre y, width and height in input pixels, objectness, and class scores; the score of a class is
// the product.
#include <algorithm>

#include "penstock/base/str_format.h"
#include "penstock/task/box_family.h"
#include "penstock/task/kernels/score_scan.h"

namespace penstock {

Result<BoxReader> bind_yolov5(const BoxModel& model, std::span<const Shape> shapes) {
  constexpr std::string_view kFamily = "yolov5";
  if (shapes.size() != 1 || shapes[0].size() != 3) {
    return misfit(kFamily, shapes, "they need one [batch, rows, 5 + classes]");
  }
  if (shapes[0][1] > kMaxBoxRows) return misfit(kFamily, shapes, "too many rows");
  const auto classes = class_count(kFamily, model, shapes, shapes[0][2], 5);
  if (!classes) return std::unexpected(classes.error());
  return CollectItem([classes = *classes, threshold = model.threshold](
                         ItemValues outputs, std::vector<Candidate>& candidates) {
    const std::size_t width = 5 + classes;
    std::vector<std::int32_t> reached;
    // Class scores are at most 1, so most rows end here, and those with NaN.
    scan_rows(outputs[0], width, 4, 1, threshold, reached);
    for (const std::int32_t position : reached) {
      const auto row = static_cast<std::size_t>(position);
      const auto values = outputs[0].subspan(row * width, width);
      const BestClass best = best_class(values.subspan(5));
      const float score = values[4] * best.score;
      if (best.class_id < 0 || !(score >= threshold)) continue;
      candidates.push_back({.record = box_from_center(values[0], values[1], values[2], values[3],
                                                      score, best.class_id),
                            .index = static_cast<std::int32_t>(row)});
    }
  });
}

}  // namespace penstock
