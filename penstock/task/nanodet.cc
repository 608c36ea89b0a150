// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/nanodet.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/task/detection_job.h"
#include "penstock/task/kernels/score_scan.h"

namespace penstock {
namespace {

constexpr std::array<int, 3> kStrides{8, 16, 32};
constexpr std::size_t kBins = 11;
constexpr std::size_t kBoxValues = 4 * kBins;
constexpr std::int64_t kMaxCells = std::int64_t{1} << 20;

// One stride's grid and which outputs hold its predictions.
struct Head {
  int stride = 0;
  int columns = 0;
  std::size_t cells = 0;
  std::int32_t first_index = 0;  // position of its first cell in the model's output
  std::size_t scores = 0;
  std::size_t boxes = 0;
};

struct Layout {
  std::array<Head, kStrides.size()> heads;
  std::size_t classes = 0;
};

std::string list(std::span<const Shape> shapes) {
  std::string text;
  for (const Shape& shape : shapes) {
    if (!text.empty()) text += ", ";
    text += to_string(shape);
  }
  return text;
}

std::unexpected<Error> misfit(std::span<const Shape> shapes, const std::string& why) {
  return fail(ErrorKind::kInvalidArgument,
              str_format("outputs {} are not NanoDet's: {}", list(shapes), why));
}

// `grid` has strides, columns and cells; the rest comes from the shapes.
Result<Layout> match_outputs(const Layout& grid, std::span<const Shape> shapes) {
  if (shapes.size() != 2 * kStrides.size()) {
    return misfit(shapes,
                  str_format("{} outputs instead of {}", shapes.size(), 2 * kStrides.size()));
  }
  Layout layout = grid;
  for (Head& head : layout.heads) {
    std::vector<std::size_t> scores;
    std::vector<std::size_t> boxes;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const Shape& shape = shapes[i];
      if (shape.size() != 3 || shape[1] != static_cast<std::int64_t>(head.cells)) continue;
      (shape[2] == static_cast<std::int64_t>(kBoxValues) ? boxes : scores).push_back(i);
    }
    if (scores.size() != 1 || boxes.size() != 1) {
      return misfit(shapes, str_format("stride {} needs one [batch,{},classes] and one "
                                       "[batch,{},{}]",
                                       head.stride, head.cells, head.cells, kBoxValues));
    }
    head.scores = scores[0];
    head.boxes = boxes[0];
    const std::int64_t classes = shapes[head.scores][2];
    if (classes < 1 || (layout.classes != 0 && std::cmp_not_equal(classes, layout.classes))) {
      return misfit(shapes, "the strides differ in their number of classes");
    }
    layout.classes = static_cast<std::size_t>(classes);
  }
  return layout;
}

// Distance of one side from the cell's centre, in strides.
float expectation(std::span<const float, kBins> logits) {
  const float top = *std::ranges::max_element(logits);
  float sum = 0;
  float weighted = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    const float weight = std::exp(logits[bin] - top);
    sum += weight;
    weighted += weight * static_cast<float>(bin);
  }
  return weighted / sum;
}

void collect_head(const Head& head, std::size_t classes, std::span<const float> scores,
                  std::span<const float> boxes, float threshold,
                  std::vector<Candidate>& candidates) {
  std::vector<std::int32_t> cells;
  scan_scores(scores, classes, threshold, cells);
  for (const std::int32_t cell : cells) {
    const auto at = static_cast<std::size_t>(cell);
    const BestClass best = best_class(scores.subspan(at * classes, classes));
    if (best.class_id < 0 || !(best.score >= threshold)) continue;
    const auto sides = boxes.subspan(at * kBoxValues, kBoxValues);
    const auto stride = static_cast<float>(head.stride);
    const auto distance = [&](std::size_t side) {
      return expectation(std::span<const float, kBins>(sides.subspan(side * kBins, kBins))) *
             stride;
    };
    const float x = (static_cast<float>(cell % head.columns) + 0.5f) * stride;
    const float y = (static_cast<float>(cell / head.columns) + 0.5f) * stride;
    candidates.push_back({.record = {.x0 = x - distance(0),
                                     .y0 = y - distance(1),
                                     .x1 = x + distance(2),
                                     .y1 = y + distance(3),
                                     .score = best.score,
                                     .class_id = best.class_id},
                          .index = head.first_index + cell});
  }
}

class NanodetDecoder final : public OutputDecoder {
 public:
  NanodetDecoder(const Layout& grid, const DecodeOptions& options)
      : grid_(grid), options_(options) {}

  Result<Decoded> decode(Device& device, std::span<const Tensor> outputs, int item,
                         const Letterbox* /*letterbox*/) override {
    const auto layout = accept(outputs, item);
    if (!layout) return std::unexpected(layout.error());
    std::vector<StorageRegion> regions;
    for (const Tensor& output : outputs) regions.push_back(output.data);
    auto block = run_detection_job(
        device, outputs, options_,
        [layout = *layout, regions = std::move(regions), item = static_cast<std::size_t>(item),
         threshold = options_.threshold](const Access& access,
                                         std::vector<Candidate>& candidates) -> Result<void> {
          for (const Head& head : layout.heads) {
            collect_head(
                head, layout.classes,
                item_values(access, regions[head.scores], item, head.cells * layout.classes),
                item_values(access, regions[head.boxes], item, head.cells * kBoxValues), threshold,
                candidates);
          }
          return {};
        });
    if (!block) return std::unexpected(std::move(block).error());
    return Decoded{.block = *block};
  }

 private:
  // Outputs are checked again on every run: their sizes guard the memory that the job reads.
  Result<Layout> accept(std::span<const Tensor> outputs, int item) const {
    std::vector<Shape> shapes;
    for (const Tensor& output : outputs) shapes.push_back(output.shape);
    auto layout = match_outputs(grid_, shapes);
    if (!layout) return layout;
    for (const Tensor& output : outputs) {
      const auto bytes = byte_size(output.type, output.shape);
      if (!bytes) return std::unexpected(bytes.error());
      if (output.type != DataType::kFloat32 || !output.data.storage || output.data.size < *bytes) {
        return fail(
            ErrorKind::kInvalidArgument,
            str_format("output '{}' {} must be float32 with {} bytes, has {} with {}", output.name,
                       to_string(output.shape), *bytes, to_string(output.type), output.data.size));
      }
      if (item < 0 || item >= output.shape[0]) {
        return fail(ErrorKind::kInvalidArgument,
                    str_format("output '{}' {} has no batch item {}", output.name,
                               to_string(output.shape), item));
      }
    }
    return layout;
  }

  const Layout grid_;
  const DecodeOptions options_;
};

Result<Layout> make_grid(int width, int height) {
  Layout grid;
  std::int64_t cells = 0;
  for (std::size_t i = 0; i < kStrides.size(); ++i) {
    const int stride = kStrides[i];
    const std::int64_t columns = (std::int64_t{width} + stride - 1) / stride;
    const std::int64_t rows = (std::int64_t{height} + stride - 1) / stride;
    if (i > 0 && static_cast<std::size_t>(columns * rows) == grid.heads[i - 1].cells) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("input {}x{} is too small: strides {} and {} have the same grid",
                             width, height, kStrides[i - 1], stride));
    }
    grid.heads[i] = {.stride = stride,
                     .columns = static_cast<int>(columns),
                     .cells = static_cast<std::size_t>(columns * rows),
                     .first_index = static_cast<std::int32_t>(cells)};
    cells += columns * rows;
    if (cells > kMaxCells) {
      return fail(ErrorKind::kExhausted, str_format("input {}x{} has more than the budget of {} "
                                                    "cells",
                                                    width, height, kMaxCells));
    }
  }
  return grid;
}

}  // namespace

Result<std::unique_ptr<OutputDecoder>> create_nanodet_decoder(const Manifest& manifest,
                                                              const DecodeOptions& options) {
  if (manifest.preprocess.width < 1 || manifest.preprocess.height < 1) {
    return fail(ErrorKind::kInvalidArgument, "the manifest has no input size");
  }
  const auto grid = make_grid(manifest.preprocess.width, manifest.preprocess.height);
  if (!grid) return std::unexpected(grid.error());

  std::vector<Shape> shapes;
  for (const TensorSpec& output : manifest.outputs) {
    Shape& shape = shapes.emplace_back();
    // -1 for what is not fixed: fine for the batch, never equal to a number of cells or values.
    for (const Dimension& dim : output.dims) shape.push_back(dim.is_fixed() ? dim.minimum : -1);
  }
  const auto layout = match_outputs(*grid, shapes);
  if (!layout) return std::unexpected(layout.error());
  if (!manifest.labels.empty() && manifest.labels.size() != layout->classes) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("{} labels for {} classes", manifest.labels.size(), layout->classes));
  }
  return std::make_unique<NanodetDecoder>(*grid, options);
}

}  // namespace penstock
