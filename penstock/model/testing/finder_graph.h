// SPDX-License-Identifier: Apache-2.0
//
// FinderGraph: what the square finders of all layouts share: scores computed from the picture, and
// constants of the cells that the scores belong to. Tests only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/model/testing/onnx_builder.h"
#include "penstock/model/testing/test_models.h"

namespace penstock::model_testing {

inline constexpr std::int64_t kSquareClasses = 3;

struct FinderCell {
  float x, y;  ///< Centre, input pixels.
  float side;  ///< Of the square that the cell stands for.
};
/// All cells of all strides, in the order of "rows".
std::vector<FinderCell> finder_cells(int size);

enum class BoxForm { kCenter, kCorners, kCornersYx, kGrid };

struct FinderBoxes {
  BoxForm form = BoxForm::kCenter;
  bool parts_of_input = false;  ///< Instead of pixels.
  float margin = 0;             ///< Pixels that a box reaches beyond its square, on each side.
};

/// Declares "input", `rows` [N, rows, 3] of scores and `boxes` [N, rows, 4].
class FinderGraph {
 public:
  FinderGraph(TestModel& model, int size, const FinderBoxes& boxes);

  /// A constant [1, rows, width] as [N, rows, width].
  void add(const std::string& name, std::int64_t width, const std::vector<float>& values);
  void join(const std::vector<std::string>& parts, const std::string& name);
  /// `score` and `class` [N, rows, 1] of the best class.
  void add_best();
  /// Declares an output of the model; -1 is the batch.
  void add_output(const std::string& name, const std::vector<std::int64_t>& sides);
  std::int64_t rows() const { return rows_; }
  OnnxBuilder& graph() { return graph_; }

 private:
  TestModel& model_;
  std::int64_t rows_;
  OnnxBuilder graph_;
};

}  // namespace penstock::model_testing
