// SPDX-License-Identifier: Apache-2.0
//
// What YOLO's heads share whatever they say beside boxes. A YOLOv8 head is [batch, 4 + classes +
// others, rows]: centre, size and class scores of a row, then what else there is. An end-to-end
// head is [batch, boxes, 6 + others]: corners, score, class, then the same. Positions are in input
// pixels.
#pragma once

#include <cstddef>
#include <string_view>

#include "penstock/task/box_family.h"

namespace penstock {

/// Where the rows of values lie in an output: [rows, width], or by columns [width, rows].
struct RowValues {
  std::size_t output = 0;
  std::size_t width = 0;
  bool columns = false;

  float at(ItemValues outputs, std::size_t row, std::size_t value) const {
    const auto values = outputs[output];
    return columns ? values[value * (values.size() / width) + row] : values[row * width + value];
  }
};

/// Candidates of a YOLOv8 head: the best class, the first of equals.
CollectItem collect_yolov8(const RowValues& head, std::size_t classes, float threshold);

/// Candidates of an end-to-end head. Classes that labels don't have are none; 0 `classes`: all are.
CollectItem collect_end_to_end(const RowValues& head, std::size_t classes, float threshold);

enum class HeadForm { kYolov8, kEndToEnd };

/// Output `output` as a head. Its number of values a row must be fixed, its rows within
/// kMaxBoxRows.
Result<RowValues> yolo_head(std::string_view family, std::span<const Shape> shapes,
                            std::size_t output, HeadForm form);

}  // namespace penstock
