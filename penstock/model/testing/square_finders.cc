// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/testing/square_finders.h"

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/model/testing/finder_graph.h"
#include "penstock/model/testing/square_finder_extras.h"

namespace penstock::model_testing {
namespace {

constexpr std::int64_t kClasses = kSquareClasses;

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
    case BoxLayout::kYolov8Seg:
      return "yolov8-seg";
    case BoxLayout::kEndToEndSeg:
      return "yolo-end-to-end-seg";
    case BoxLayout::kYolov8Pose:
      return "yolov8-pose";
    case BoxLayout::kEndToEndPose:
      return "yolo-end-to-end-pose";
    case BoxLayout::kYolov8Obb:
      return "yolov8-obb";
    case BoxLayout::kEndToEndObb:
      return "yolo-end-to-end-obb";
    case BoxLayout::kMovenetSingle:
    case BoxLayout::kMovenetMulti:
      return "movenet";
  }
  return "";
}

const char* task_of(BoxLayout layout) {
  switch (layout) {
    case BoxLayout::kYolov8Seg:
    case BoxLayout::kEndToEndSeg:
      return "instance-segmentation";
    case BoxLayout::kYolov8Pose:
    case BoxLayout::kEndToEndPose:
    case BoxLayout::kMovenetSingle:
    case BoxLayout::kMovenetMulti:
      return "pose";
    case BoxLayout::kYolov8Obb:
    case BoxLayout::kEndToEndObb:
      return "oriented-detection";
    default:
      return "detection";
  }
}

bool is_movenet(BoxLayout layout) {
  return layout == BoxLayout::kMovenetSingle || layout == BoxLayout::kMovenetMulti;
}

BoxForm form_of(BoxLayout layout) {
  switch (layout) {
    case BoxLayout::kYolox:
      return BoxForm::kGrid;
    case BoxLayout::kEndToEnd:
    case BoxLayout::kSsdList:
    case BoxLayout::kEndToEndSeg:
    case BoxLayout::kEndToEndPose:
      return BoxForm::kCorners;
    case BoxLayout::kSsdFour:
    case BoxLayout::kMovenetSingle:
    case BoxLayout::kMovenetMulti:
      return BoxForm::kCornersYx;
    default:
      return BoxForm::kCenter;
  }
}

void add_outputs(FinderGraph& finder, BoxLayout layout, int size) {
  OnnxBuilder& graph = finder.graph();
  const std::int64_t rows = finder.rows();
  const std::vector<float> one_each(static_cast<std::size_t>(rows), 1.0f);
  switch (layout) {
    case BoxLayout::kYolov5:
    case BoxLayout::kYolox:
      finder.add("objectness", 1, one_each);
      finder.join({"boxes", "objectness", "rows"}, "output");
      return finder.add_output("output", {-1, rows, 5 + kClasses});
    case BoxLayout::kYolov8:
      finder.join({"boxes", "rows"}, "joined");
      graph.node("Transpose", {"joined"}, {"output0"},
                 {{"perm", std::vector<std::int64_t>{0, 2, 1}}});
      return finder.add_output("output0", {-1, 4 + kClasses, rows});
    case BoxLayout::kEndToEnd:
      finder.add_best();
      finder.join({"boxes", "score", "class"}, "output0");
      return finder.add_output("output0", {-1, rows, 6});
    case BoxLayout::kRtdetr:
      finder.join({"boxes", "rows"}, "output0");
      return finder.add_output("output0", {-1, rows, 4 + kClasses});
    case BoxLayout::kRtdetrLogits:
      graph.constant("least", {}, std::vector<float>{1e-6f})
          .constant("most", {}, std::vector<float>{1 - 1e-6f})
          .constant("whole", {}, std::vector<float>{1.0f})
          .node("Clip", {"rows", "least", "most"}, {"chance"})
          .node("Sub", {"whole", "chance"}, {"rest"})
          .node("Div", {"chance", "rest"}, {"odds"})
          .node("Log", {"odds"}, {"logits"})
          .node("Identity", {"boxes"}, {"pred_boxes"});
      finder.add_output("logits", {-1, rows, kClasses});
      return finder.add_output("pred_boxes", {-1, rows, 4});
    case BoxLayout::kSsdList:
      finder.add_best();
      finder.add("image", 1, std::vector<float>(static_cast<std::size_t>(rows), 0.0f));
      finder.join({"image", "class", "score", "boxes"}, "list");
      graph.node("Unsqueeze", {"list", "one"}, {"detection_out"});
      return finder.add_output("detection_out", {1, 1, rows, 7});
    case BoxLayout::kSsdFour:
      finder.add_best();
      graph.constant("last", {1}, std::vector<std::int64_t>{2})
          .node("Squeeze", {"class", "last"}, {"detection_classes"})
          .node("Squeeze", {"score", "last"}, {"detection_scores"})
          .node("Identity", {"boxes"}, {"detection_boxes"})
          .constant("rows_once", {1}, std::vector<float>{static_cast<float>(rows)})
          .node("Expand", {"rows_once", "batch"}, {"num_detections"});
      finder.add_output("detection_boxes", {-1, rows, 4});
      finder.add_output("detection_classes", {-1, rows});
      finder.add_output("detection_scores", {-1, rows});
      return finder.add_output("num_detections", {-1});
    case BoxLayout::kYolov8Seg:
    case BoxLayout::kEndToEndSeg:
      return add_mask_outputs(finder, layout, size);
    case BoxLayout::kYolov8Pose:
    case BoxLayout::kEndToEndPose:
      return add_pose_output(finder, layout, size);
    case BoxLayout::kYolov8Obb:
    case BoxLayout::kEndToEndObb:
      return add_turned_output(finder, layout);
    case BoxLayout::kMovenetSingle:
    case BoxLayout::kMovenetMulti:
      return add_movenet_output(finder, layout, size);
  }
}

}  // namespace

float box_margin(BoxLayout layout) {
  return layout == BoxLayout::kYolov8Seg || layout == BoxLayout::kEndToEndSeg ? 4.0f : 0.0f;
}

int keypoints_of(BoxLayout layout) {
  if (is_movenet(layout)) return 17;
  return std::string_view(task_of(layout)) == "pose" ? 5 : 0;
}

KeypointPlace keypoint_place(int keypoints, int k) {
  const int side = keypoints == 17 ? 4 : 2;
  if (k == keypoints - 1) return {0.5f, 0.5f};
  return {static_cast<float>(k % side) / static_cast<float>(side - 1),
          static_cast<float>(k / side) / static_cast<float>(side - 1)};
}

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
    case BoxLayout::kYolov8Seg:
      return "yolov8_seg";
    case BoxLayout::kEndToEndSeg:
      return "end_to_end_seg";
    case BoxLayout::kYolov8Pose:
      return "yolov8_pose";
    case BoxLayout::kEndToEndPose:
      return "end_to_end_pose";
    case BoxLayout::kYolov8Obb:
      return "yolov8_obb";
    case BoxLayout::kEndToEndObb:
      return "end_to_end_obb";
    case BoxLayout::kMovenetSingle:
      return "movenet_single";
    case BoxLayout::kMovenetMulti:
      return "movenet_multi";
  }
  return "";
}

TestModel make_square_finder(BoxLayout layout, int size) {
  TestModel model;
  model.name = std::string("square-finder-") + std::string(to_string(layout));
  model.task = task_of(layout);
  model.family = family_of(layout);
  model.labels = {"red", "green", "blue"};
  if (is_movenet(layout)) model.labels = {"square"};
  for (int k = 0; k < keypoints_of(layout); ++k)
    model.keypoints.push_back(str_format("point{}", k));
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
                     layout == BoxLayout::kSsdList || layout == BoxLayout::kSsdFour ||
                     is_movenet(layout);
  FinderGraph finder(
      model, size,
      {.form = form_of(layout), .parts_of_input = parts, .margin = box_margin(layout)});
  add_outputs(finder, layout, size);
  model.onnx = finder.graph().build();
  return model;
}

}  // namespace penstock::model_testing
