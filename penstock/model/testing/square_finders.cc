// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/testing/square_finders.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock::model_testing {
namespace {

constexpr int kStrides[] = {8, 16, 32};
constexpr std::int64_t kClasses = 3;
const OnnxAttributes kKeep{{"axis", std::int64_t{2}}, {"keepdims", std::int64_t{1}}};

struct Cell {
  float x, y;  ///< Centre, input pixels.
  float side;  ///< Of the square that the cell stands for.
};

/// All cells of all strides, in the order of score_rows.
std::vector<Cell> cells(int size) {
  std::vector<Cell> all;
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

enum class BoxForm { kCenter, kCorners, kCornersYx, kGrid };

std::vector<float> boxes(int size, BoxForm form, float unit) {
  std::vector<float> values;
  for (const Cell& cell : cells(size)) {
    const float x = cell.x / unit, y = cell.y / unit, side = cell.side / unit;
    switch (form) {
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

/// Declares "input", `rows` [N, rows, 3] of scores and `boxes` [N, rows, 4].
class FinderGraph {
 public:
  FinderGraph(TestModel& model, int size, BoxForm form, bool parts_of_input)
      : rows_(static_cast<std::int64_t>(cells(size).size())) {
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
    add("boxes", 4, boxes(size, form, parts_of_input ? static_cast<float>(size) : 1.0f));
  }

  /// A constant [1, rows, width] as [N, rows, width].
  void add(const std::string& name, std::int64_t width, const std::vector<float>& values) {
    graph_.constant(name + "_once", {1, rows_, width}, values)
        .node("Expand", {name + "_once", "batch_shape"}, {name});
  }
  void join(const std::vector<std::string>& parts, const std::string& name) {
    graph_.node("Concat", parts, {name}, {{"axis", std::int64_t{2}}});
  }
  /// `score` and `class` [N, rows, 1] of the best class.
  void add_best() {
    graph_.node("ReduceMax", {"rows"}, {"score"},
                {{"axes", std::vector<std::int64_t>{2}}, {"keepdims", std::int64_t{1}}});
    graph_.node("ArgMax", {"rows"}, {"class_index"}, kKeep);
    graph_.node("Cast", {"class_index"}, {"class"}, {{"to", std::int64_t{1}}});
  }
  std::int64_t rows() const { return rows_; }
  OnnxBuilder& graph() { return graph_; }

 private:
  std::int64_t rows_;
  OnnxBuilder graph_;
};

void add_output(TestModel& model, OnnxBuilder& graph, const std::string& name,
                const std::vector<std::int64_t>& sides) {
  TensorSpec& spec = model.outputs.emplace_back();
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
  graph.output(name, DataType::kFloat32, dims);
}

const char* family_of(BoxLayout layout) {
  switch (layout) {
    case BoxLayout::kYolov5:
      return "yolov5";
    case BoxLayout::kYolov8:
      return "yolov8";
    case BoxLayout::kEndToEnd:
      return "yolo-end-to-end";
    case BoxLayout::kYolox:
      return "yolox";
    case BoxLayout::kRtdetr:
    case BoxLayout::kRtdetrLogits:
      return "rtdetr";
    case BoxLayout::kSsdList:
    case BoxLayout::kSsdFour:
      return "ssd";
  }
  return "";
}

BoxForm form_of(BoxLayout layout) {
  switch (layout) {
    case BoxLayout::kYolox:
      return BoxForm::kGrid;
    case BoxLayout::kEndToEnd:
    case BoxLayout::kSsdList:
      return BoxForm::kCorners;
    case BoxLayout::kSsdFour:
      return BoxForm::kCornersYx;
    default:
      return BoxForm::kCenter;
  }
}

void add_outputs(TestModel& model, FinderGraph& finder, BoxLayout layout) {
  OnnxBuilder& graph = finder.graph();
  const std::int64_t rows = finder.rows();
  const std::vector<float> one_each(static_cast<std::size_t>(rows), 1.0f);
  switch (layout) {
    case BoxLayout::kYolov5:
    case BoxLayout::kYolox:
      finder.add("objectness", 1, one_each);
      finder.join({"boxes", "objectness", "rows"}, "output");
      return add_output(model, graph, "output", {-1, rows, 5 + kClasses});
    case BoxLayout::kYolov8:
      finder.join({"boxes", "rows"}, "joined");
      graph.node("Transpose", {"joined"}, {"output0"},
                 {{"perm", std::vector<std::int64_t>{0, 2, 1}}});
      return add_output(model, graph, "output0", {-1, 4 + kClasses, rows});
    case BoxLayout::kEndToEnd:
      finder.add_best();
      finder.join({"boxes", "score", "class"}, "output0");
      return add_output(model, graph, "output0", {-1, rows, 6});
    case BoxLayout::kRtdetr:
      finder.join({"boxes", "rows"}, "output0");
      return add_output(model, graph, "output0", {-1, rows, 4 + kClasses});
    case BoxLayout::kRtdetrLogits:
      graph.constant("least", {}, std::vector<float>{1e-6f})
          .constant("most", {}, std::vector<float>{1 - 1e-6f})
          .constant("whole", {}, std::vector<float>{1.0f})
          .node("Clip", {"rows", "least", "most"}, {"chance"})
          .node("Sub", {"whole", "chance"}, {"rest"})
          .node("Div", {"chance", "rest"}, {"odds"})
          .node("Log", {"odds"}, {"logits"})
          .node("Identity", {"boxes"}, {"pred_boxes"});
      add_output(model, graph, "logits", {-1, rows, kClasses});
      return add_output(model, graph, "pred_boxes", {-1, rows, 4});
    case BoxLayout::kSsdList:
      finder.add_best();
      finder.add("image", 1, std::vector<float>(static_cast<std::size_t>(rows), 0.0f));
      finder.join({"image", "class", "score", "boxes"}, "list");
      graph.node("Unsqueeze", {"list", "one"}, {"detection_out"});
      return add_output(model, graph, "detection_out", {1, 1, rows, 7});
    case BoxLayout::kSsdFour:
      finder.add_best();
      graph.constant("last", {1}, std::vector<std::int64_t>{2})
          .node("Squeeze", {"class", "last"}, {"detection_classes"})
          .node("Squeeze", {"score", "last"}, {"detection_scores"})
          .node("Identity", {"boxes"}, {"detection_boxes"})
          .constant("rows_once", {1}, std::vector<float>{static_cast<float>(rows)})
          .node("Expand", {"rows_once", "batch"}, {"num_detections"});
      add_output(model, graph, "detection_boxes", {-1, rows, 4});
      add_output(model, graph, "detection_classes", {-1, rows});
      add_output(model, graph, "detection_scores", {-1, rows});
      return add_output(model, graph, "num_detections", {-1});
  }
}

}  // namespace

std::string_view to_string(BoxLayout layout) {
  switch (layout) {
    case BoxLayout::kYolov5:
      return "yolov5";
    case BoxLayout::kYolov8:
      return "yolov8";
    case BoxLayout::kEndToEnd:
      return "end_to_end";
    case BoxLayout::kYolox:
      return "yolox";
    case BoxLayout::kRtdetr:
      return "rtdetr";
    case BoxLayout::kRtdetrLogits:
      return "rtdetr_logits";
    case BoxLayout::kSsdList:
      return "ssd_list";
    case BoxLayout::kSsdFour:
      return "ssd_four";
  }
  return "";
}

TestModel make_square_finder(BoxLayout layout, int size) {
  TestModel model;
  model.name = std::string("square-finder-") + std::string(to_string(layout));
  model.family = family_of(layout);
  model.labels = {"red", "green", "blue"};
  const Dimension batch =
      layout == BoxLayout::kSsdList ? Dimension::fixed(1) : Dimension{1, 64, "N"};
  model.inputs = {{"input",
                   DataType::kFloat32,
                   TensorLayout::kNchw,
                   {batch, Dimension::fixed(3), Dimension::fixed(size), Dimension::fixed(size)}}};
  model.preprocess = {.input_name = "input",
                      .width = size,
                      .height = size,
                      .scale = 1.0f / 255.0f,
                      .fit = Fit::kLetterboxCenter};
  const bool parts = layout == BoxLayout::kRtdetr || layout == BoxLayout::kRtdetrLogits ||
                     layout == BoxLayout::kSsdList || layout == BoxLayout::kSsdFour;
  FinderGraph finder(model, size, form_of(layout), parts);
  add_outputs(model, finder, layout);
  model.onnx = finder.graph().build();
  return model;
}

}  // namespace penstock::model_testing
