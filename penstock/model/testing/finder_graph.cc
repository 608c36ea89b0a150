// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/testing/finder_graph.h"

#include <cmath>

namespace penstock::model_testing {
namespace {

constexpr int kStrides[] = {8, 16, 32};
const OnnxAttributes kKeep{{"axis", std::int64_t{2}}, {"keepdims", std::int64_t{1}}};

std::vector<float> boxes_of(int size, const FinderBoxes& boxes) {
  const float unit = boxes.parts_of_input ? static_cast<float>(size) : 1.0f;
  std::vector<float> values;
  for (const FinderCell& cell : finder_cells(size)) {
    const float x = cell.x / unit, y = cell.y / unit, side = (cell.side + 2 * boxes.margin) / unit;
    switch (boxes.form) {
      case BoxForm::kCenter:
        values.insert(values.end(), {x, y, side, side});
        break;
      case BoxForm::kCorners:
        values.insert(values.end(), {x - side / 2, y - side / 2, x + side / 2, y + side / 2});
        break;
      case BoxForm::kCornersYx:
        values.insert(values.end(), {y - side / 2, x - side / 2, y + side / 2, x + side / 2});
        break;
      case BoxForm::kGrid:
        values.insert(values.end(), {0.5f, 0.5f, std::log(3.0f), std::log(3.0f)});
        break;
    }
  }
  return values;
}

}  // namespace

std::vector<FinderCell> finder_cells(int size) {
  std::vector<FinderCell> all;
  for (const int stride : kStrides) {
    for (int row = 0; row < size / stride; ++row) {
      for (int column = 0; column < size / stride; ++column) {
        all.push_back({(static_cast<float>(column) + 0.5f) * static_cast<float>(stride),
                       (static_cast<float>(row) + 0.5f) * static_cast<float>(stride),
                       3.0f * static_cast<float>(stride)});
      }
    }
  }
  return all;
}

FinderGraph::FinderGraph(TestModel& model, int size, const FinderBoxes& boxes)
    : model_(model), rows_(static_cast<std::int64_t>(finder_cells(size).size())) {
  std::vector<OnnxDim> dims;
  for (const TensorSpec& spec : model.inputs) {
    for (const Dimension& dim : spec.dims) {
      if (dim.is_fixed()) {
        dims.emplace_back(dim.minimum);
      } else {
        dims.emplace_back(dim.symbol.c_str());
      }
    }
  }
  graph_.input("input", DataType::kFloat32, dims);
  graph_.constant("zero", {1}, std::vector<std::int64_t>{0})
      .constant("one", {1}, std::vector<std::int64_t>{1})
      .constant("ones", {2}, std::vector<std::int64_t>{1, 1})
      .node("Shape", {"input"}, {"input_shape"})
      .node("Slice", {"input_shape", "zero", "one"}, {"batch"})
      .node("Concat", {"batch", "ones"}, {"batch_shape"}, {{"axis", std::int64_t{0}}});
  add_square_scores(graph_);
  graph_.node("Concat", {"score_rows8", "score_rows16", "score_rows32"}, {"classes"},
              {{"axis", std::int64_t{2}}});
  graph_.node("Transpose", {"classes"}, {"rows"}, {{"perm", std::vector<std::int64_t>{0, 2, 1}}});
  add("boxes", 4, boxes_of(size, boxes));
}

void FinderGraph::add(const std::string& name, std::int64_t width,
                      const std::vector<float>& values) {
  graph_.constant(name + "_once", {1, rows_, width}, values)
      .node("Expand", {name + "_once", "batch_shape"}, {name});
}

void FinderGraph::join(const std::vector<std::string>& parts, const std::string& name) {
  graph_.node("Concat", parts, {name}, {{"axis", std::int64_t{2}}});
}

void FinderGraph::add_best() {
  graph_.node("ReduceMax", {"rows"}, {"score"},
              {{"axes", std::vector<std::int64_t>{2}}, {"keepdims", std::int64_t{1}}});
  graph_.node("ArgMax", {"rows"}, {"class_index"}, kKeep);
  graph_.node("Cast", {"class_index"}, {"class"}, {{"to", std::int64_t{1}}});
}

void FinderGraph::add_output(const std::string& name, const std::vector<std::int64_t>& sides) {
  TensorSpec& spec = model_.outputs.emplace_back();
  spec.name = name;
  std::vector<OnnxDim> dims;
  for (const std::int64_t side : sides) {
    if (side < 0) {
      spec.dims.push_back({1, 64, "N"});
      dims.emplace_back("N");
    } else {
      spec.dims.push_back(Dimension::fixed(side));
      dims.emplace_back(side);
    }
  }
  graph_.output(name, DataType::kFloat32, dims);
}

}  // namespace penstock::model_testing
