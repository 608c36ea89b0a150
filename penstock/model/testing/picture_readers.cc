// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/testing/picture_readers.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::model_testing {
namespace {

const OnnxAttributes kMeanOfPixels{{"axes", std::vector<std::int64_t>{2, 3}},
                                   {"keepdims", std::int64_t{0}}};

void add_output(TestModel& model, OnnxBuilder& graph, const std::string& name, DataType type,
                const std::vector<std::int64_t>& sides) {
  TensorSpec& spec = model.outputs.emplace_back();
  spec.name = name;
  spec.type = type;
  spec.dims.push_back({1, 64, "N"});
  std::vector<OnnxDim> dims{"N"};
  for (const std::int64_t side : sides) {
    spec.dims.push_back(Dimension::fixed(side));
    dims.emplace_back(side);
  }
  graph.output(name, type, dims);
}

/// `logits` [N, 3].
void add_center(OnnxBuilder& graph, int size) {
  graph.constant("starts", {2}, std::vector<std::int64_t>{size / 4, size / 4})
      .constant("ends", {2}, std::vector<std::int64_t>{size - size / 4, size - size / 4})
      .constant("axes", {2}, std::vector<std::int64_t>{2, 3})
      .constant("gain", {}, std::vector<float>{20.0f})
      .node("Slice", {"input", "starts", "ends", "axes"}, {"center"})
      .node("ReduceMean", {"center"}, {"level"}, kMeanOfPixels)
      .node("Mul", {"level", "gain"}, {"logits"});
}

/// `scores` [N, 4, size, size].
void add_color_scores(OnnxBuilder& graph) {
  graph
      .constant("color_weights", {4, 3, 1, 1},
                std::vector<float>{0, 0, 0, 1, -.5f, -.5f, -.5f, 1, -.5f, -.5f, -.5f, 1})
      .constant("color_bias", {4}, std::vector<float>{0.6f, 0, 0, 0})
      .node("Conv", {"input", "color_weights", "color_bias"}, {"scores"});
}

/// `numbers` [N, size, size] of `scores`.
void add_numbers(OnnxBuilder& graph) {
  graph.node("ArgMax", {"scores"}, {"numbers"},
             {{"axis", std::int64_t{1}}, {"keepdims", std::int64_t{0}}});
}

void make_classifier(TestModel& model, OnnxBuilder& graph, int size, bool probabilities) {
  model.task = model.family = "classification";
  model.labels = {"red", "green", "blue"};
  model.postprocess = probabilities ? R"("scores": "probabilities", "top_k": 3)"
                                    : R"("scores": "logits", "top_k": 3)";
  add_center(graph, size);
  if (probabilities) {
    graph.node("Softmax", {"logits"}, {"probabilities"}, {{"axis", std::int64_t{1}}});
  }
  add_output(model, graph, probabilities ? "probabilities" : "logits", DataType::kFloat32, {3});
}

void make_segmenter(TestModel& model, OnnxBuilder& graph, PictureReader reader, int size) {
  model.task = "semantic-segmentation";
  model.family = "semantic";
  model.labels = {"background", "red", "green", "blue"};
  model.postprocess = R"("scores": "logits")";
  if (reader == PictureReader::kRedLogits) {
    model.labels = {"background", "red"};
    graph.constant("red_weights", {1, 3, 1, 1}, std::vector<float>{20, -10, -10})
        .constant("red_bias", {1}, std::vector<float>{-12})
        .node("Conv", {"input", "red_weights", "red_bias"}, {"red"});
    return add_output(model, graph, "red", DataType::kFloat32, {1, size, size});
  }
  add_color_scores(graph);
  if (reader == PictureReader::kColorScores) {
    return add_output(model, graph, "scores", DataType::kFloat32, {4, size, size});
  }
  if (reader == PictureReader::kColorScoresLast) {
    graph.node("Transpose", {"scores"}, {"scores_last"},
               {{"perm", std::vector<std::int64_t>{0, 2, 3, 1}}});
    return add_output(model, graph, "scores_last", DataType::kFloat32, {size, size, 4});
  }
  add_numbers(graph);
  add_output(model, graph, "numbers", DataType::kInt64, {size, size});
}

void make_text_finder(TestModel& model, OnnxBuilder& graph, int size) {
  model.task = "oriented-detection";
  model.family = "db-text";
  model.labels = {"text"};
  model.postprocess = R"("threshold": 0.6, "iou_threshold": 0.5)";
  graph.constant("red_weights", {1, 3, 1, 1}, std::vector<float>{20, -10, -10})
      .constant("red_bias", {1}, std::vector<float>{-10})
      .node("Conv", {"input", "red_weights", "red_bias"}, {"red"})
      .node("Sigmoid", {"red"}, {"texts"});
  add_output(model, graph, "texts", DataType::kFloat32, {1, size, size});
}

void make_letter_reader(TestModel& model, OnnxBuilder& graph, int size) {
  model.task = "text-recognition";
  model.family = "ctc";
  model.labels = {"blank", "r", "g", "b"};
  model.postprocess = R"("scores": "probabilities")";
  add_color_scores(graph);
  graph.constant("gain", {}, std::vector<float>{20.0f})
      .node("AveragePool", {"scores"}, {"columns"},
            {{"kernel_shape", std::vector<std::int64_t>{size, size / 8}},
             {"strides", std::vector<std::int64_t>{size, size / 8}}})
      .constant("row", {1}, std::vector<std::int64_t>{2})
      .node("Squeeze", {"columns", "row"}, {"classes"})
      .node("Transpose", {"classes"}, {"steps"}, {{"perm", std::vector<std::int64_t>{0, 2, 1}}})
      .node("Mul", {"steps", "gain"}, {"logits"})
      .node("Softmax", {"logits"}, {"letters"}, {{"axis", std::int64_t{2}}});
  add_output(model, graph, "letters", DataType::kFloat32, {8, 4});
}

/// A constant [1, rows, width] as the output `name` [N, rows, width].
void add_constant_output(TestModel& model, OnnxBuilder& graph, const std::string& name,
                         std::int64_t rows, std::int64_t width, const std::vector<float>& values) {
  graph.constant(name + "_once", {1, rows, width}, values)
      .node("Expand", {name + "_once", "batch_shape"}, {name});
  add_output(model, graph, name, DataType::kFloat32, {rows, width});
}

void make_face_finder(TestModel& model, OnnxBuilder& graph, int size) {
  model.task = "pose";
  model.family = "blazeface";
  model.labels = {"face"};
  model.postprocess = R"("threshold": 0.5, "iou_threshold": 0.3,
                         "keypoints": ["a", "b", "c", "d", "e", "f"])";
  const auto cell = static_cast<float>(size) / 16;
  std::vector<float> values;
  for (int anchor = 0; anchor < 512; ++anchor) {
    values.insert(values.end(), {0, 0, cell, cell});
    for (int k = 0; k < 6; ++k) {
      const float at = (static_cast<float>(k) / 5 - 0.5f) * cell;
      values.insert(values.end(), {at, at});
    }
  }
  const std::vector<std::int64_t> side{size / 16, size / 16};
  graph.constant("red_weights", {1, 3, 1, 1}, std::vector<float>{20, -10, -10})
      .constant("red_bias", {1}, std::vector<float>{-12})
      .constant("never", {1}, std::vector<float>{-50})
      .constant("zero", {1}, std::vector<std::int64_t>{0})
      .constant("one", {1}, std::vector<std::int64_t>{1})
      .constant("ones", {2}, std::vector<std::int64_t>{1, 1})
      .constant("anchor_shape", {3}, std::vector<std::int64_t>{0, 512, 1})
      .constant("cell_shape", {3}, std::vector<std::int64_t>{0, 256, 1})
      .node("Shape", {"input"}, {"input_shape"})
      .node("Slice", {"input_shape", "zero", "one"}, {"batch"})
      .node("Concat", {"batch", "ones"}, {"batch_shape"}, {{"axis", std::int64_t{0}}})
      .node("Conv", {"input", "red_weights", "red_bias"}, {"red"})
      .node("AveragePool", {"red"}, {"cells"}, {{"kernel_shape", side}, {"strides", side}})
      .node("Reshape", {"cells", "cell_shape"}, {"first_anchors"})
      .node("Min", {"first_anchors", "never"}, {"second_anchors"})
      .node("Concat", {"first_anchors", "second_anchors"}, {"pairs"}, {{"axis", std::int64_t{2}}})
      .node("Reshape", {"pairs", "anchor_shape"}, {"fine_scores"});
  add_output(model, graph, "fine_scores", DataType::kFloat32, {512, 1});
  add_constant_output(model, graph, "coarse_scores", 384, 1, std::vector<float>(384, -50.0f));
  add_constant_output(model, graph, "fine_boxes", 512, 16, values);
  add_constant_output(model, graph, "coarse_boxes", 384, 16, std::vector<float>(384 * 16, 1.0f));
}

}  // namespace

std::string_view to_string(PictureReader reader) {
  switch (reader) {
    case PictureReader::kCenterLogits:
      return "center_logits";
    case PictureReader::kCenterProbabilities:
      return "center_probabilities";
    case PictureReader::kColorScores:
      return "color_scores";
    case PictureReader::kColorScoresLast:
      return "color_scores_last";
    case PictureReader::kColorNumbers:
      return "color_numbers";
    case PictureReader::kRedLogits:
      return "red_logits";
    case PictureReader::kMeanEmbedding:
      return "mean_embedding";
    case PictureReader::kRedTexts:
      return "red_texts";
    case PictureReader::kColorLetters:
      return "color_letters";
    case PictureReader::kRedFaces:
      return "red_faces";
    case PictureReader::kRaw:
      return "raw";
  }
  return "";
}

TestModel make_picture_reader(PictureReader reader, int size) {
  TestModel model;
  model.name = std::string("picture-reader-") + std::string(to_string(reader));
  model.inputs = {
      {"input",
       DataType::kFloat32,
       TensorLayout::kNchw,
       {{1, 64, "N"}, Dimension::fixed(3), Dimension::fixed(size), Dimension::fixed(size)}}};
  model.preprocess = {.input_name = "input",
                      .width = size,
                      .height = size,
                      .scale = 1.0f / 255.0f,
                      .fit = Fit::kLetterboxCenter};
  OnnxBuilder graph;
  graph.input("input", DataType::kFloat32, {"N", 3, size, size});
  switch (reader) {
    case PictureReader::kCenterLogits:
    case PictureReader::kCenterProbabilities:
      make_classifier(model, graph, size, reader == PictureReader::kCenterProbabilities);
      break;
    case PictureReader::kMeanEmbedding:
      model.task = model.family = "embedding";
      model.postprocess = R"("normalise": true)";
      graph.node("ReduceMean", {"input"}, {"mean"}, kMeanOfPixels);
      add_output(model, graph, "mean", DataType::kFloat32, {3});
      break;
    case PictureReader::kRedTexts:
      make_text_finder(model, graph, size);
      break;
    case PictureReader::kColorLetters:
      make_letter_reader(model, graph, size);
      break;
    case PictureReader::kRedFaces:
      make_face_finder(model, graph, size);
      break;
    case PictureReader::kRaw:
      model.task = model.family = "raw";
      model.postprocess = " ";
      graph.node("ReduceMean", {"input"}, {"mean"}, kMeanOfPixels);
      add_output(model, graph, "mean", DataType::kFloat32, {3});
      add_color_scores(graph);
      add_numbers(graph);
      add_output(model, graph, "numbers", DataType::kInt64, {size, size});
      break;
    default:
      make_segmenter(model, graph, reader, size);
  }
  model.onnx = graph.build();
  return model;
}

}  // namespace penstock::model_testing
