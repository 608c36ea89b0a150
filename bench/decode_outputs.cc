// SPDX-License-Identifier: Apache-2.0
#include "bench/decode_outputs.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "penstock/base/str_format.h"

namespace penstock::bench {
namespace {

constexpr int kInput = 640;
constexpr int kClasses = 80;
constexpr int kObjects = 30;
constexpr int kMaskCoefficients = 32;
constexpr int kMaskSide = 160;

/// Rows of [x, y, w, h, objectness, classes..., coefficients...] before a family's layout.
struct Row {
  float x = 0, y = 0, width = 0, height = 0;
  std::vector<float> scores;
  std::vector<float> coefficients;
};

class Scene {
 public:
  Scene(std::size_t count, int boxes_each) : rows_(count) {
    std::uniform_real_distribution<float> place(60, kInput - 60), side(20, 100);
    for (Row& row : rows_) {
      row = {.x = place(random_),
             .y = place(random_),
             .width = side(random_),
             .height = side(random_),
             .scores = {},
             .coefficients = {}};
      row.scores.resize(kClasses);
      for (float& score : row.scores) score = background_(random_);
      row.coefficients.resize(kMaskCoefficients);
      for (float& value : row.coefficients) value = coefficient_(random_);
    }
    std::uniform_int_distribution<std::size_t> any(0, count - 1);
    std::uniform_int_distribution<std::size_t> any_class(0, kClasses - 1);
    std::uniform_real_distribution<float> shift(-3, 3), score(0.45f, 0.95f);
    for (int object = 0; object < kObjects; ++object) {
      const Row center = rows_[any(random_)];
      const std::size_t class_id = any_class(random_);
      for (int box = 0; box < boxes_each; ++box) {
        Row& row = rows_[any(random_)];
        row.x = center.x + shift(random_);
        row.y = center.y + shift(random_);
        row.width = center.width + shift(random_);
        row.height = center.height + shift(random_);
        row.scores[class_id] = score(random_);
      }
    }
  }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::mt19937 random_{7};
  std::uniform_real_distribution<float> background_{0.0f, 0.02f};
  std::normal_distribution<float> coefficient_{0.0f, 0.5f};
  std::vector<Row> rows_;
};

std::vector<float> transposed(const std::vector<float>& rows, std::size_t width) {
  const std::size_t count = rows.size() / width;
  std::vector<float> columns(rows.size());
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t c = 0; c < width; ++c) columns[c * count + r] = rows[r * width + c];
  }
  return columns;
}

std::int64_t size(std::size_t value) { return static_cast<std::int64_t>(value); }

ModelOutputs yolov8(bool with_masks) {
  const Scene scene(8400, 6);
  std::vector<float> rows;
  for (const Row& row : scene.rows()) {
    rows.insert(rows.end(), {row.x, row.y, row.width, row.height});
    rows.insert(rows.end(), row.scores.begin(), row.scores.end());
    if (with_masks) rows.insert(rows.end(), row.coefficients.begin(), row.coefficients.end());
  }
  const std::size_t width = rows.size() / scene.rows().size();
  ModelOutputs outputs{.family = with_masks ? "yolov8-seg" : "yolov8", .shapes = {}, .values = {}};
  outputs.shapes.push_back({1, size(width), size(scene.rows().size())});
  outputs.values.push_back(transposed(rows, width));
  if (!with_masks) return outputs;
  std::mt19937 random(11);
  std::normal_distribution<float> value(0.0f, 1.0f);
  std::vector<float> prototypes(std::size_t{kMaskCoefficients} * kMaskSide * kMaskSide);
  for (float& p : prototypes) p = value(random);
  outputs.shapes.push_back({1, kMaskCoefficients, kMaskSide, kMaskSide});
  outputs.values.push_back(std::move(prototypes));
  return outputs;
}

ModelOutputs yolov5() {
  const Scene scene(25200, 6);
  ModelOutputs outputs{.family = "yolov5", .shapes = {{1, 25200, 5 + kClasses}}, .values = {{}}};
  for (const Row& row : scene.rows()) {
    const float best = *std::ranges::max_element(row.scores);
    const bool object = best > 0.4f;
    outputs.values[0].insert(outputs.values[0].end(),
                             {row.x, row.y, row.width, row.height, object ? 0.98f : 0.01f});
    outputs.values[0].insert(outputs.values[0].end(), row.scores.begin(), row.scores.end());
  }
  return outputs;
}

ModelOutputs yolox() {
  const Scene scene(8400, 6);
  ModelOutputs outputs{.family = "yolox", .shapes = {{1, 8400, 5 + kClasses}}, .values = {{}}};
  std::size_t at = 0;
  for (const int stride : {8, 16, 32}) {
    const int side = kInput / stride;
    for (int cell = 0; cell < side * side; ++cell, ++at) {
      const Row& row = scene.rows()[at];
      const int column = cell % side;
      const int line = cell / side;
      const float best = *std::ranges::max_element(row.scores);
      const auto grid = static_cast<float>(stride);
      outputs.values[0].insert(
          outputs.values[0].end(),
          {row.x / grid - float(column), row.y / grid - float(line), std::log(row.width / grid),
           std::log(row.height / grid), best > 0.4f ? 0.98f : 0.01f});
      outputs.values[0].insert(outputs.values[0].end(), row.scores.begin(), row.scores.end());
    }
  }
  return outputs;
}

ModelOutputs end_to_end() {
  const Scene scene(300, 1);
  ModelOutputs outputs{.family = "yolo-end-to-end", .shapes = {{1, 300, 6}}, .values = {{}}};
  for (const Row& row : scene.rows()) {
    const auto best = std::ranges::max_element(row.scores);
    outputs.values[0].insert(
        outputs.values[0].end(),
        {row.x - row.width / 2, row.y - row.height / 2, row.x + row.width / 2,
         row.y + row.height / 2, *best, static_cast<float>(best - row.scores.begin())});
  }
  return outputs;
}

ModelOutputs rtdetr() {
  const Scene scene(300, 1);
  ModelOutputs outputs{.family = "rtdetr", .shapes = {{1, 300, 4 + kClasses}}, .values = {{}}};
  for (const Row& row : scene.rows()) {
    for (const float v : {row.x, row.y, row.width, row.height}) {
      outputs.values[0].push_back(v / kInput);
    }
    outputs.values[0].insert(outputs.values[0].end(), row.scores.begin(), row.scores.end());
  }
  return outputs;
}

}  // namespace

Manifest ModelOutputs::manifest() const {
  Manifest made;
  made.name = family;
  made.task = family == "yolov8-seg" ? "instance-segmentation" : "detection";
  made.family = family;
  for (int i = 0; i < classes; ++i) made.labels.push_back(str_format("class {}", i));
  made.preprocess.width = made.preprocess.height = input;
  for (const Shape& shape : shapes) {
    TensorSpec& spec = made.outputs.emplace_back();
    spec.name = str_format("output{}", made.outputs.size() - 1);
    for (const std::int64_t side : shape) spec.dims.push_back(Dimension::fixed(side));
  }
  return made;
}

std::vector<ModelOutputs> make_model_outputs() {
  return {yolov8(false), yolov5(), yolox(), end_to_end(), rtdetr(), yolov8(true)};
}

}  // namespace penstock::bench
