// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/testing/square_measurer.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace penstock::model_testing {
namespace {

constexpr std::int64_t kRows = 3;
const OnnxAttributes kLast{{"axis", std::int64_t{2}}};
const std::vector<float> kOneHot{1, 0, 0, 0, 1, 0, 0, 0, 1};

class Measurer {
 public:
  Measurer(TestModel& model, BoxLayout layout, int size)
      : model_(model), layout_(layout), size_(size) {}

  void build() {
    graph_.input("input", DataType::kFloat32, {"N", 3, size_, size_});
    add_colors();
    measure("x", 2);
    measure("y", 3);
    add_boxes();
    switch (layout_) {
      case BoxLayout::kYolov5:
        join({"boxes", "whole", "scores"}, "output0");
        return add_output("output0", {-1, kRows, 8});
      case BoxLayout::kEndToEnd:
        graph_.constant("numbers", {1, kRows, 1}, std::vector<float>{0, 1, 2})
            .node("Add", {"nothing", "numbers"}, {"class"});
        join({"boxes", "peak", "class"}, "output0");
        return add_output("output0", {-1, kRows, 6});
      case BoxLayout::kRtdetr:
        join({"boxes", "scores"}, "output0");
        return add_output("output0", {-1, kRows, 7});
      case BoxLayout::kYolov8Seg:
        return add_masks();
      case BoxLayout::kYolov8Pose:
        return add_keypoints();
      case BoxLayout::kYolov8Obb:
        return add_columns({"boxes", "scores", "nothing"}, 8);
      default:
        return add_columns({"boxes", "scores"}, 7);
    }
  }
  std::string bytes() const { return graph_.build(); }

 private:
  /// `color` [N, 3, size, size] as in the finders, 0..1; `peak` [N, 3, 1] its largest; `scores` [N,
  /// 3, 3] with each row's own class; `nothing` and `whole` are 0 and 1 in the shape of `peak`.
  void add_colors() {
    graph_
        .constant("color_weights", {3, 3, 1, 1},
                  std::vector<float>{1, -.5f, -.5f, -.5f, 1, -.5f, -.5f, -.5f, 1})
        .constant("low", {}, std::vector<float>{0})
        .constant("high", {}, std::vector<float>{1})
        .constant("least", {}, std::vector<float>{1e-3f})
        .constant("one_hot", {1, kRows, kRows}, kOneHot)
        .constant("half", {}, std::vector<float>{0.5f})
        .node("Conv", {"input", "color_weights"}, {"any_color"})
        .node("Clip", {"any_color", "low", "high"}, {"color"})
        .node("ReduceMax", {"color"}, {"peaks"}, {{"axes", std::vector<std::int64_t>{2, 3}}})
        .constant("rows_shape", {3}, std::vector<std::int64_t>{0, kRows, 1})
        .node("Reshape", {"peaks", "rows_shape"}, {"peak"})
        .node("Max", {"peak", "least"}, {"some_peak"})
        .node("Mul", {"peak", "one_hot"}, {"scores"})
        .node("Mul", {"peak", "low"}, {"nothing"})
        .node("Add", {"nothing", "high"}, {"whole"});
  }

  /// `center_AXIS` and `side_AXIS` [N, 3, 1], model pixels.
  void measure(const std::string& axis, std::int64_t over) {
    std::vector<float> places;
    for (int i = 0; i < size_; ++i) places.push_back(static_cast<float>(i) + 0.5f);
    const OnnxAttributes sum{{"keepdims", std::int64_t{1}}};
    // Shares are stretched about the half, so that the rounding of colours is no colour.
    graph_
        .node("ReduceMax", {"color"}, {"profile_" + axis},
              {{"axes", std::vector<std::int64_t>{over}}, {"keepdims", std::int64_t{0}}})
        .node("Div", {"profile_" + axis, "some_peak"}, {"share_" + axis})
        .constant("gain_" + axis, {}, std::vector<float>{1 / 0.9f})
        .constant("offset_" + axis, {}, std::vector<float>{-0.05f / 0.9f})
        .node("Mul", {"share_" + axis, "gain_" + axis}, {"wide_" + axis})
        .node("Add", {"wide_" + axis, "offset_" + axis}, {"moved_" + axis})
        .node("Clip", {"moved_" + axis, "low", "high"}, {"part_" + axis})
        .constant("places_" + axis, {1, 1, size_}, places)
        .constant("last_" + axis, {1}, std::vector<std::int64_t>{2})
        .node("ReduceSum", {"part_" + axis, "last_" + axis}, {"side_" + axis}, sum)
        .node("Mul", {"part_" + axis, "places_" + axis}, {"moment_" + axis})
        .node("ReduceSum", {"moment_" + axis, "last_" + axis}, {"moments_" + axis}, sum)
        .node("Max", {"side_" + axis, "least"}, {"some_side_" + axis})
        .node("Div", {"moments_" + axis, "some_side_" + axis}, {"center_" + axis});
  }

  void add_boxes() {
    graph_.constant("margin", {}, std::vector<float>{2 * box_margin(layout_)})
        .constant("unit", {},
                  std::vector<float>{
                      layout_ == BoxLayout::kRtdetr ? 1.0f / static_cast<float>(size_) : 1.0f});
    for (const char* axis : {"x", "y"}) {
      const std::string a = axis;
      graph_.node("Add", {"side_" + a, "margin"}, {"width_" + a})
          .node("Mul", {"width_" + a, "half"}, {"reach_" + a})
          .node("Sub", {"center_" + a, "reach_" + a}, {"start_" + a})
          .node("Add", {"center_" + a, "reach_" + a}, {"end_" + a});
    }
    if (layout_ == BoxLayout::kEndToEnd) {
      join({"start_x", "start_y", "end_x", "end_y"}, "pixel_boxes");
    } else {
      join({"center_x", "center_y", "width_x", "width_y"}, "pixel_boxes");
    }
    graph_.node("Mul", {"pixel_boxes", "unit"}, {"boxes"});
  }

  void add_keypoints() {
    std::vector<std::string> parts{"boxes", "scores"};
    const int count = keypoints_of(layout_);
    graph_.constant("sure", {}, std::vector<float>{kKeypointConfidence})
        .node("Add", {"nothing", "sure"}, {"confidence"});
    for (int k = 0; k < count; ++k) {
      const KeypointPlace place = keypoint_place(count, k);
      for (const auto& [axis, at] : {std::pair<std::string, float>{"x", place.x}, {"y", place.y}}) {
        const std::string name = std::to_string(k) + axis;
        graph_.constant("place" + name, {}, std::vector<float>{at - 0.5f})
            .node("Mul", {"side_" + axis, "place" + name}, {"off" + name})
            .node("Add", {"center_" + axis, "off" + name}, {"keypoint" + name});
        parts.push_back("keypoint" + name);
      }
      parts.emplace_back("confidence");
    }
    add_columns(parts, 7 + 3 * count);
  }

  // As the finders': prototypes are the colours and ones, an object's logit 20 x its colour - 10.
  void add_masks() {
    const std::int64_t side = size_ / 4;
    const std::vector<std::int64_t> square{4, 4};
    graph_
        .node("AveragePool", {"color"}, {"color_small"},
              {{"kernel_shape", square}, {"strides", square}})
        .constant("first", {1}, std::vector<std::int64_t>{0})
        .constant("second", {1}, std::vector<std::int64_t>{1})
        .constant("channel", {1}, std::vector<std::int64_t>{1})
        .node("Slice", {"color_small", "first", "second", "channel"}, {"one_color"})
        .node("Mul", {"one_color", "low"}, {"no_color"})
        .node("Add", {"no_color", "high"}, {"plane"})
        .node("Concat", {"color_small", "plane"}, {"output1"}, {{"axis", std::int64_t{1}}})
        .constant("mask_gains", {1, kRows, kRows}, std::vector<float>{20, 0, 0, 0, 20, 0, 0, 0, 20})
        .constant("mask_bias", {}, std::vector<float>{-10})
        .node("Add", {"nothing", "mask_gains"}, {"gains"})
        .node("Add", {"nothing", "mask_bias"}, {"bias"});
    add_columns({"boxes", "scores", "gains", "bias"}, 11);
    add_output("output1", {-1, kRows + 1, side, side});
  }

  void join(const std::vector<std::string>& parts, const std::string& name) {
    graph_.node("Concat", parts, {name}, kLast);
  }
  /// "output0" [N, values, rows].
  void add_columns(const std::vector<std::string>& parts, std::int64_t values) {
    join(parts, "joined");
    graph_.node("Transpose", {"joined"}, {"output0"},
                {{"perm", std::vector<std::int64_t>{0, 2, 1}}});
    add_output("output0", {-1, values, kRows});
  }
  void add_output(const std::string& name, const std::vector<std::int64_t>& sides) {
    TensorSpec& spec = model_.outputs.emplace_back();
    spec.name = name;
    std::vector<OnnxDim> dims;
    for (const std::int64_t side : sides) {
      spec.dims.push_back(side < 0 ? Dimension{1, 64, "N"} : Dimension::fixed(side));
      dims.push_back(side < 0 ? OnnxDim("N") : OnnxDim(side));
    }
    graph_.output(name, DataType::kFloat32, dims);
  }

  TestModel& model_;
  const BoxLayout layout_;
  const int size_;
  OnnxBuilder graph_;
};

}  // namespace

TestModel make_square_measurer(BoxLayout layout, int size) {
  // Name, task, family, labels, input and preprocessing are the finder's.
  TestModel model = make_square_finder(layout, size);
  model.name = "square-measurer-" + std::string(to_string(layout));
  model.outputs.clear();
  Measurer measurer(model, layout, size);
  measurer.build();
  model.onnx = measurer.bytes();
  return model;
}

}  // namespace penstock::model_testing
