// SPDX-License-Identifier: Apache-2.0
//
// YOLOX, exported without its grid: [batch, cells of strides 8, 16 and 32, 5 + classes]. Centre =
// (value + cell) * stride, size = exp(value) * stride; score = objectness * class score, both with
// sigmoid applied.
#include <array>
#include <cmath>

#include "penstock/base/str_format.h"
#include "penstock/task/box_family.h"
#include "penstock/task/kernels/score_scan.h"

namespace penstock {
namespace {

constexpr std::array<int, 3> kStrides{8, 16, 32};

struct Grid {
  int stride = 0;
  std::size_t columns = 0;
  std::size_t cells = 0;
};

void collect_row(std::span<const float> values, const Grid& grid, std::size_t cell, std::size_t row,
                 float threshold, std::vector<Candidate>& candidates) {
  const BestClass best = best_class(values.subspan(5));
  const float score = values[4] * best.score;
  if (best.class_id < 0 || !(score >= threshold)) return;
  const auto stride = static_cast<float>(grid.stride);
  const float x = (values[0] + static_cast<float>(cell % grid.columns)) * stride;
  const float y = (values[1] + static_cast<float>(cell / grid.columns)) * stride;
  candidates.push_back(
      {.record = box_from_center(x, y, std::exp(values[2]) * stride, std::exp(values[3]) * stride,
                                 score, best.class_id),
       .index = static_cast<std::int32_t>(row)});
}

}  // namespace

Result<BoxReader> bind_yolox(const BoxModel& model, std::span<const Shape> shapes) {
  constexpr std::string_view kFamily = "yolox";
  if (shapes.size() != 1 || shapes[0].size() != 3) {
    return misfit(kFamily, shapes, "they need one [batch, cells, 5 + classes]");
  }
  std::array<Grid, kStrides.size()> grids;
  std::int64_t cells = 0;
  for (std::size_t i = 0; i < kStrides.size(); ++i) {
    const std::int64_t columns = model.width / kStrides[i];
    const std::int64_t rows = model.height / kStrides[i];
    grids[i] = {kStrides[i], static_cast<std::size_t>(columns),
                static_cast<std::size_t>(columns * rows)};
    cells += columns * rows;
  }
  if (cells > kMaxBoxRows) return misfit(kFamily, shapes, "too many cells");
  if (!may_be(shapes[0][1], cells)) {
    return misfit(kFamily, shapes,
                  str_format("an input of {}x{} has {} cells", model.width, model.height, cells));
  }
  const auto classes = class_count(kFamily, model, shapes, shapes[0][2], 5);
  if (!classes) return std::unexpected(classes.error());
  return CollectItem([classes = *classes, threshold = model.threshold, grids](
                         ItemValues outputs, std::vector<Candidate>& candidates) {
    const std::size_t width = 5 + classes;
    std::vector<std::int32_t> reached;
    // Class scores are at most 1, so most rows end here, and those with NaN.
    scan_rows(outputs[0], width, 4, 1, threshold, reached);
    auto at = reached.begin();
    std::size_t first = 0;
    for (const Grid& grid : grids) {
      for (; at != reached.end() && static_cast<std::size_t>(*at) < first + grid.cells; ++at) {
        const auto row = static_cast<std::size_t>(*at);
        collect_row(outputs[0].subspan(row * width, width), grid, row - first, row, threshold,
                    candidates);
      }
      first += grid.cells;
    }
  });
}

}  // namespace penstock
