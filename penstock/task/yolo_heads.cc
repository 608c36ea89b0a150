// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/yolo_heads.h"

#include "penstock/base/str_format.h"

namespace penstock {

Result<RowValues> yolo_head(std::string_view family, std::span<const Shape> shapes,
                            std::size_t output, HeadForm form) {
  const Shape& shape = shapes[output];
  const bool columns = form == HeadForm::kYolov8;
  if (shape.size() != 3) {
    return misfit(family, shapes,
                  str_format("output {} must be {}", output + 1,
                             columns ? "[batch, values, rows]" : "[batch, boxes, values]"));
  }
  const std::int64_t width = shape[columns ? 1 : 2];
  const std::int64_t rows = shape[columns ? 2 : 1];
  if (width < 1) {
    return misfit(family, shapes, "the number of values a row must be fixed, and not 0");
  }
  if (rows > kMaxBoxRows) return misfit(family, shapes, "too many rows");
  return RowValues{.output = output, .width = static_cast<std::size_t>(width), .columns = columns};
}

}  // namespace penstock
