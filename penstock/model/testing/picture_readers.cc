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
