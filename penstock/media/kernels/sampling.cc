// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/kernels/sampling.h"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

// Position on one axis of a plane, in samples relative to the crop, of output sample `i`.
struct Axis {
  int samples;    // of the plane inside the crop
  double scale;   // luma pixels an output pixel
  double offset;  // of the plane's sample 0, in luma pixels
  double step;    // luma pixels a sample

  double at(int i) const {
    const double luma = (i + 0.5) * scale - 0.5;
    return std::clamp((luma - offset) / step, 0.0, static_cast<double>(samples - 1));
  }
};

std::vector<RowTap> row_taps(const Axis& axis, int count, int first_row) {
  std::vector<RowTap> taps(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const double position = axis.at(i);
    int row = static_cast<int>(position);
    auto weight = static_cast<int>(std::lround((position - row) * 32768.0));
    if (weight == 32768) {
      ++row;
      weight = 0;
    }
    const int second = weight == 0 ? row : std::min(row + 1, axis.samples - 1);
    taps[static_cast<std::size_t>(i)] = {first_row + row, first_row + second,
                                         static_cast<std::int16_t>(weight)};
  }
  return taps;
}

ColumnTaps column_taps(const Axis& axis, int count) {
  ColumnTaps taps;
  taps.index.resize(static_cast<std::size_t>(count) + SamplingPlan::kColumnPadding);
  taps.weights.resize(taps.index.size());
  for (int i = 0; i < count; ++i) {
    const double position = axis.at(i);
    // The last sample is reached from its left neighbour, so that index + 1 stays inside the row.
    const int column = std::min(static_cast<int>(position), std::max(axis.samples - 2, 0));
    const auto second = static_cast<std::uint32_t>(std::lround((position - column) * 16384.0));
    taps.index[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(column);
    taps.weights[static_cast<std::size_t>(i)] = (16384u - second) | (second << 16);
  }
  return taps;
}

std::size_t distinct_rows(const std::vector<RowTap>& taps) {
  std::size_t rows = 0;
  std::int32_t last = -1;
  for (const RowTap& tap : taps) {
    for (const std::int32_t row : {tap.first, tap.second}) {
      if (row <= last) continue;
      last = row;
      ++rows;
    }
  }
  return rows;
}

}  // namespace

SamplingPlan plan_sampling(const Letterbox& box, ChromaSite site) {
  const double scale_x = static_cast<double>(box.crop.width) / box.scaled_width;
  const double scale_y = static_cast<double>(box.crop.height) / box.scaled_height;
  const Axis luma_x{box.crop.width, scale_x, 0.0, 1.0};
  const Axis luma_y{box.crop.height, scale_y, 0.0, 1.0};
  const Axis chroma_x{box.crop.width / 2, scale_x, site == ChromaSite::kLeft ? 0.0 : 0.5, 2.0};
  const Axis chroma_y{box.crop.height / 2, scale_y, 0.5, 2.0};

  SamplingPlan plan;
  plan.box = box;
  plan.luma_rows = row_taps(luma_y, box.scaled_height, box.crop.y);
  plan.chroma_rows = row_taps(chroma_y, box.scaled_height, box.crop.y / 2);
  plan.luma_columns = column_taps(luma_x, box.scaled_width);
  plan.chroma_columns = column_taps(chroma_x, box.scaled_width);
  const auto width = static_cast<std::size_t>(box.crop.width);
  plan.bytes_read = (distinct_rows(plan.luma_rows) + distinct_rows(plan.chroma_rows)) * width;
  return plan;
}

}  // namespace penstock
