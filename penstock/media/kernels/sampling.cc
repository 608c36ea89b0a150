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

// The columns of one plane: the left sample of each, and how much of the right one it takes.
class Columns {
 public:
  Columns(const Axis& axis, int count, int sample_bytes)
      : sample_bytes_(sample_bytes),
        last_start_(std::max(axis.samples * sample_bytes - static_cast<int>(kWindowBytes), 0)) {
    taps_.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      const double position = axis.at(i);
      // The last sample is reached from its left neighbour, so that the right one is in the row.
      const int column = std::min(static_cast<int>(position), std::max(axis.samples - 2, 0));
      taps_.push_back({column, static_cast<int>(std::lround((position - column) * kWeightOne))});
    }
  }

  // Where the window of columns from `first` on begins.
  int start(std::size_t first) const {
    return first < taps_.size() ? std::min(taps_[first].left * sample_bytes_, last_start_) : 0;
  }

  // Whether one window has the columns `first` to `first + count`.
  bool near(std::size_t first, std::size_t count) const {
    if (first >= taps_.size()) return true;
    const std::size_t last = std::min(first + count, taps_.size()) - 1;
    return (taps_[last].left + 2) * sample_bytes_ - start(first) <= static_cast<int>(kWindowBytes);
  }

  // For the columns `first` to `first + count`, of byte `component` of each sample. `bytes` is all
  // kNoByte.
  void fill_shuffle(std::size_t first, std::size_t count, int component, HalfShuffle& bytes) const {
    for (std::size_t i = first; i < std::min(first + count, taps_.size()); ++i) {
      const int left = taps_[i].left * sample_bytes_ + component - start(first);
      const std::size_t at = i % kHalfColumns * 4;
      bytes[at] = static_cast<std::uint8_t>(left);
      bytes[at + 2] = static_cast<std::uint8_t>(left + sample_bytes_);
    }
  }

  void fill_weights(std::size_t first, std::array<std::int16_t, 2 * kStepColumns>& pairs) const {
    pairs.fill(0);
    for (std::size_t i = first; i < std::min(first + kStepColumns, taps_.size()); ++i) {
      pairs[2 * (i - first)] = static_cast<std::int16_t>(kWeightOne - taps_[i].right);
      pairs[2 * (i - first) + 1] = static_cast<std::int16_t>(taps_[i].right);
    }
  }

 private:
  struct Tap {
    int left;
    int right;
  };
  std::vector<Tap> taps_;
  int sample_bytes_;
  int last_start_;
};

std::size_t windows_needed(const Columns& columns, std::size_t width) {
  std::size_t needed = 1;
  for (std::size_t first = 0; first < width; first += kHalfColumns) {
    while (needed < kHalfColumns) {
      const std::size_t part = kHalfColumns / needed;
      bool is_near = true;
      for (std::size_t at = first; at < first + kHalfColumns; at += part) {
        is_near = is_near && columns.near(at, part);
      }
      if (is_near) break;
      needed *= 2;
    }
  }
  return needed;
}

void add_windows(const Columns& luma, const Columns& chroma, bool interleaved_chroma,
                 SamplingPlan& plan) {
  ColumnWindows none{};
  for (auto* bytes : {&none.y, &none.u, &none.v}) {
    for (HalfShuffle& half : *bytes) half.fill(kNoByte);
  }
  plan.windows.assign(plan.weights.size() * plan.windows_per_step, none);
  const std::size_t luma_part = kHalfColumns / plan.luma_windows;
  const std::size_t chroma_part = kHalfColumns / plan.chroma_windows;
  for (std::size_t at = 0; at < plan.windows.size(); ++at) {
    ColumnWindows& windows = plan.windows[at];
    const std::size_t w = at % plan.windows_per_step;
    for (std::size_t half = 0; half < 2; ++half) {
      const std::size_t first = at / plan.windows_per_step * kStepColumns + half * kHalfColumns;
      if (w < plan.luma_windows) {
        const std::size_t column = first + w * luma_part;
        windows.y_start[half] = static_cast<std::uint16_t>(luma.start(column));
        luma.fill_shuffle(column, luma_part, 0, windows.y[half]);
      }
      if (w < plan.chroma_windows) {
        const std::size_t column = first + w * chroma_part;
        windows.chroma_start[half] = static_cast<std::uint16_t>(chroma.start(column));
        chroma.fill_shuffle(column, chroma_part, 0, windows.u[half]);
        chroma.fill_shuffle(column, chroma_part, interleaved_chroma ? 1 : 0, windows.v[half]);
      }
    }
  }
}

void add_columns(const Columns& luma, const Columns& chroma, bool interleaved_chroma,
                 SamplingPlan& plan) {
  const auto width = static_cast<std::size_t>(plan.box.scaled_width);
  plan.luma_windows = windows_needed(luma, width);
  plan.chroma_windows = windows_needed(chroma, width);
  plan.windows_per_step = std::max(plan.luma_windows, plan.chroma_windows);
  plan.weights.resize((width + kStepColumns - 1) / kStepColumns);
  for (std::size_t step = 0; step < plan.weights.size(); ++step) {
    luma.fill_weights(step * kStepColumns, plan.weights[step].y);
    chroma.fill_weights(step * kStepColumns, plan.weights[step].chroma);
  }
  add_windows(luma, chroma, interleaved_chroma, plan);
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

SamplingPlan plan_sampling(const Letterbox& box, ChromaSite site, bool interleaved_chroma) {
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
  add_columns(Columns(luma_x, box.scaled_width, 1),
              Columns(chroma_x, box.scaled_width, interleaved_chroma ? 2 : 1), interleaved_chroma,
              plan);
  const auto width = static_cast<std::size_t>(box.crop.width);
  plan.bytes_read = (distinct_rows(plan.luma_rows) + distinct_rows(plan.chroma_rows)) * width;
  return plan;
}

}  // namespace penstock
