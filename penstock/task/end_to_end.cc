// SPDX-License-Identifier: Apache-2.0
//
// End-to-end YOLO (v10, 26): [batch, boxes, 6] of x0, y0, x1, y1 in input pixels, score, class. The
// model gives each object one box, so there is no NMS.
#include <cmath>

#include "penstock/task/box_family.h"
#include "penstock/task/yolo_heads.h"

namespace penstock {

CollectItem collect_end_to_end(const RowValues& head, std::size_t classes, float threshold) {
  return CollectItem(
      [head, classes, threshold](ItemValues outputs, std::vector<Candidate>& candidates) {
        const auto values = outputs[head.output];
        const std::size_t rows = values.size() / head.width;
        const float* v = values.data();
        for (std::size_t row = 0; row < rows; ++row, v += head.width) {
          if (!(v[4] >= threshold)) continue;
          // A class that is no number, or none of the labels', is no class.
          if (!(v[5] >= 0.0f && v[5] < 65536.0f)) continue;
          const auto class_id = static_cast<std::int32_t>(v[5]);
          if (classes != 0 && static_cast<std::size_t>(class_id) >= classes) continue;
          candidates.push_back({.record = {.x0 = v[0],
                                           .y0 = v[1],
                                           .x1 = v[2],
                                           .y1 = v[3],
                                           .score = v[4],
                                           .class_id = class_id},
                                .index = static_cast<std::int32_t>(row)});
        }
      });
}

Result<BoxReader> bind_end_to_end(const BoxModel& model, std::span<const Shape> shapes) {
  constexpr std::string_view kFamily = "yolo-end-to-end";
  if (shapes.size() != 1 || shapes[0].size() != 3 || shapes[0][2] != 6) {
    return misfit(kFamily, shapes, "they need one [batch, boxes, 6]");
  }
  if (shapes[0][1] > kMaxBoxRows) return misfit(kFamily, shapes, "too many boxes");
  return collect_end_to_end({.output = 0, .width = 6}, model.classes, model.threshold);
}

}  // namespace penstock
