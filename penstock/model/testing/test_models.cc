// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/testing/test_models.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "penstock/base/str_format.h"
#include "penstock/model/manifest.h"
#include "penstock/model/testing/onnx_builder.h"

namespace penstock::model_testing {
namespace {

constexpr int kStrides[] = {8, 16, 32};
constexpr int kBins = 11;  ///< Distances 0..10 of NanoDet's distribution, for each of four sides.

std::string scores_name(int stride) { return str_format("cls_pred_stride_{}", stride); }
std::string boxes_name(int stride) { return str_format("dis_pred_stride_{}", stride); }

Dimension batch_dimension() { return {1, 64, "N"}; }

/// Everything of a NanoDet-shaped model but its graph.
TestModel nanodet_frame(std::string name, int size, std::vector<std::string> labels) {
  TestModel model;
  model.name = std::move(name);
  model.labels = std::move(labels);
  model.inputs = {
      {"input",
       DataType::kFloat32,
       TensorLayout::kNchw,
       {batch_dimension(), Dimension::fixed(3), Dimension::fixed(size), Dimension::fixed(size)}}};
  const auto classes = static_cast<std::int64_t>(model.labels.size());
  for (const bool scores : {true, false}) {
    for (const int stride : kStrides) {
      const std::int64_t cells = std::int64_t{size / stride} * (size / stride);
      model.outputs.push_back({scores ? scores_name(stride) : boxes_name(stride),
                               DataType::kFloat32,
                               TensorLayout::kAny,
                               {batch_dimension(), Dimension::fixed(cells),
                                Dimension::fixed(scores ? classes : 4 * kBins)}});
    }
  }
  model.preprocess = {.input_name = "input",
                      .width = size,
                      .height = size,
                      .scale = 1.0f / 255.0f,
                      .fit = Fit::kLetterboxCenter};
  return model;
}

/// Declares the graph's input and outputs, and `batch_shape` = [N,1,1] to expand constants with.
OnnxBuilder nanodet_graph(const TestModel& model) {
  OnnxBuilder graph;
  for (const auto* specs : {&model.inputs, &model.outputs}) {
    for (const TensorSpec& spec : *specs) {
      std::vector<OnnxDim> dims;
      for (const Dimension& dim : spec.dims) {
        if (dim.is_fixed()) {
          dims.emplace_back(dim.minimum);
        } else {
          dims.emplace_back(dim.symbol.c_str());
        }
      }
      if (specs == &model.inputs) {
        graph.input(spec.name, spec.type, dims);
      } else {
        graph.output(spec.name, spec.type, dims);
      }
    }
  }
  graph.constant("zero", {1}, std::vector<std::int64_t>{0})
      .constant("one", {1}, std::vector<std::int64_t>{1})
      .constant("ones", {2}, std::vector<std::int64_t>{1, 1})
      .node("Shape", {"input"}, {"input_shape"})
      .node("Slice", {"input_shape", "zero", "one"}, {"batch"})
      .node("Concat", {"batch", "ones"}, {"batch_shape"}, {{"axis", std::int64_t{0}}});
  return graph;
}

/// `nothing` = 0 after `products` matrix products that depend on the input, so that no optimiser
/// computes them once while loading.
void add_work(OnnxBuilder& graph, int products) {
  graph.constant("null", {}, std::vector<float>{0.0f})
      .constant("square", {2}, std::vector<std::int64_t>{1024, 1024})
      .constant("shrink", {}, std::vector<float>{1.0f / 1024})
      .node("ReduceMean", {"input"}, {"level"}, {{"keepdims", std::int64_t{0}}});
  std::string last = "level";
  if (products > 0) graph.node("Expand", {"level", "square"}, {"work0"});
  for (int i = 1; i <= products; ++i) {
    const std::string n = std::to_string(i);
    graph.node("MatMul", {"work" + std::to_string(i - 1), "work0"}, {"product" + n})
        .node("Mul", {"product" + n, "shrink"}, {"work" + n});
    last = "work" + n;
  }
  graph.node("ReduceMean", {last}, {"done"}, {{"keepdims", std::int64_t{0}}})
      .node("Mul", {"done", "null"}, {"nothing"});
}

/// Logits whose softmax has the expectation `distance` (0..10): the two bins around it share it.
void put_distance(float* logits, float distance) {
  for (int bin = 0; bin < kBins; ++bin) logits[bin] = -30.0f;
  const int low = std::min(static_cast<int>(distance), kBins - 2);
  const float high_share = distance - static_cast<float>(low);
  logits[low] = std::log(std::max(1.0f - high_share, 1e-12f));
  logits[low + 1] = std::log(std::max(high_share, 1e-12f));
}

const char* json_name(Fit fit) {
  switch (fit) {
    case Fit::kStretch:
      return "stretch";
    case Fit::kLetterboxCenter:
      return "letterbox-center";
    case Fit::kLetterboxTopLeft:
      return "letterbox-top-left";
  }
  return "";
}

std::string json_dims(const TensorSpec& spec) {
  std::string out;
  for (const Dimension& dim : spec.dims) {
    if (!out.empty()) out += ", ";
    out += dim.is_fixed() ? std::to_string(dim.minimum)
                          : str_format(R"({{"min": {}, "max": {}, "symbol": "{}"}})", dim.minimum,
                                       dim.maximum, dim.symbol);
  }
  return out;
}

std::string json_specs(const std::vector<TensorSpec>& specs) {
  std::string out;
  for (const TensorSpec& spec : specs) {
    if (!out.empty()) out += ",\n    ";
    out += str_format(R"({{"name": "{}", "type": "{}", "layout": "{}", "dims": [{}]}})", spec.name,
                      to_string(spec.type),
                      spec.layout == TensorLayout::kNchw   ? "NCHW"
                      : spec.layout == TensorLayout::kNhwc ? "NHWC"
                                                           : "any",
                      json_dims(spec));
  }
  return out;
}

[[noreturn]] void give_up(const std::filesystem::path& path) {
  std::fprintf(stderr, "cannot write test model %s\n", path.c_str());
  std::abort();
}

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) give_up(path);
}

std::string json_strings(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) {
    text += str_format("{}\"{}\"", text.empty() ? "" : ", ", value);
  }
  return text;
}

}  // namespace

TestModel make_constant_nanodet(int size, int classes, const std::vector<ConstantBox>& boxes,
                                int products) {
  std::vector<std::string> labels;
  for (int i = 0; i < classes; ++i) labels.push_back(str_format("class{}", i));
  TestModel model = nanodet_frame("constant-nanodet", size, std::move(labels));
  OnnxBuilder graph = nanodet_graph(model);
  add_work(graph, products);
  for (const int stride : kStrides) {
    const int side = size / stride;
    const auto cells = static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
    std::vector<float> scores(cells * static_cast<std::size_t>(classes), 0.0f);
    std::vector<float> logits(cells * 4 * kBins, 0.0f);
    for (const ConstantBox& box : boxes) {
      if (box.stride != stride) continue;
      const auto cell = static_cast<std::size_t>(box.cell_y * side + box.cell_x);
      scores.at(cell * static_cast<std::size_t>(classes) + static_cast<std::size_t>(box.class_id)) =
          box.score;
      float* sides = &logits.at(cell * 4 * kBins);
      put_distance(sides, box.left);
      put_distance(sides + kBins, box.top);
      put_distance(sides + 2 * kBins, box.right);
      put_distance(sides + 3 * kBins, box.bottom);
    }
    const std::string s = std::to_string(stride);
    graph.constant("scores" + s, {1, static_cast<std::int64_t>(cells), classes}, scores)
        .constant("logits" + s, {1, static_cast<std::int64_t>(cells), 4 * kBins}, logits)
        .node("Add", {"scores" + s, "nothing"}, {"worked" + s})
        .node("Expand", {"worked" + s, "batch_shape"}, {scores_name(stride)})
        .node("Expand", {"logits" + s, "batch_shape"}, {boxes_name(stride)});
  }
  model.onnx = graph.build();
  return model;
}

// One colour plane a class: redness = R - (G + B) / 2, and so on. Per stride s, `inner` is its mean
// over the 3s x 3s window around a cell and `outer` over 5s x 5s, so ring = (25 outer - 9 inner) /
// 16 and score = clip(4 (inner - ring) - 3, 0, 1): 1 for a square that fills the window exactly, 0
// when it is a stride off, larger or smaller. `score_rows<s>` = [N, classes, cells].
void add_square_scores(OnnxBuilder& graph) {
  graph
      .constant("color_weights", {3, 3, 1, 1},
                std::vector<float>{1, -.5f, -.5f, -.5f, 1, -.5f, -.5f, -.5f, 1})
      .node("Conv", {"input", "color_weights"}, {"color"})
      .constant("gain", {1}, std::vector<float>{6.25f})
      .constant("offset", {1}, std::vector<float>{-3.0f})
      .constant("low", {}, std::vector<float>{0.0f})
      .constant("high", {}, std::vector<float>{1.0f})
      .constant("flat", {3}, std::vector<std::int64_t>{0, 3, -1});
  for (const int stride : kStrides) {
    const std::string s = std::to_string(stride);
    const auto pool = [&](std::int64_t strides_wide) {
      const std::int64_t kernel = strides_wide * stride;
      const std::int64_t pad = (strides_wide - 1) / 2 * stride;
      return OnnxAttributes{{"kernel_shape", std::vector<std::int64_t>{kernel, kernel}},
                            {"strides", std::vector<std::int64_t>{stride, stride}},
                            {"pads", std::vector<std::int64_t>{pad, pad, pad, pad}},
                            {"count_include_pad", std::int64_t{1}}};
    };
    graph.node("AveragePool", {"color"}, {"inner" + s}, pool(3))
        .node("AveragePool", {"color"}, {"outer" + s}, pool(5))
        .node("Sub", {"inner" + s, "outer" + s}, {"contrast" + s})
        .node("Mul", {"contrast" + s, "gain"}, {"scaled" + s})
        .node("Add", {"scaled" + s, "offset"}, {"shifted" + s})
        .node("Clip", {"shifted" + s, "low", "high"}, {"score_map" + s})
        .node("Reshape", {"score_map" + s, "flat"}, {"score_rows" + s});
  }
}

TestModel make_square_finder_nanodet(int size) {
  TestModel model = nanodet_frame("square-finder", size, {"red", "green", "blue"});
  OnnxBuilder graph = nanodet_graph(model);
  add_square_scores(graph);
  for (const int stride : kStrides) {
    const std::string s = std::to_string(stride);
    graph.node("Transpose", {"score_rows" + s}, {scores_name(stride)},
               {{"perm", std::vector<std::int64_t>{0, 2, 1}}});
    const auto cells =
        static_cast<std::size_t>(size / stride) * static_cast<std::size_t>(size / stride);
    std::vector<float> logits(cells * 4 * kBins);
    for (std::size_t side = 0; side < cells * 4; ++side) put_distance(&logits[side * kBins], 1.5f);
    graph.constant("logits" + s, {1, static_cast<std::int64_t>(cells), 4 * kBins}, logits)
        .node("Expand", {"logits" + s, "batch_shape"}, {boxes_name(stride)});
  }
  model.onnx = graph.build();
  return model;
}

std::string manifest_json(const TestModel& model, const std::string& onnx_sha256) {
  const std::string labels = json_strings(model.labels);
  const std::string keypoints =
      model.keypoints.empty() ? ""
                              : str_format(", \"keypoints\": [{}]", json_strings(model.keypoints));
  const PreprocessSpec& p = model.preprocess;
  const std::string postprocess = model.postprocess.empty()
                                      ? str_format(R"("threshold": {}, "iou_threshold": {}{})",
                                                   model.threshold, model.iou_threshold, keypoints)
                                      : model.postprocess;
  return str_format(
      R"({{
  "schema": 2,
  "name": "{}",
  "artefacts": [{{"path": "model.onnx", "sha256": "{}", "role": "model"}}],
  "engine": {{"name": "onnxruntime", "provider": "CPUExecutionProvider"}},
  "inputs": [
    {}
  ],
  "outputs": [
    {}
  ],
  "task": "{}",
  "family": "{}",
  "labels": [{}],
  "preprocess": {{
    "input": "{}", "width": {}, "height": {}, "layout": "{}", "order": "{}",
    "scale": {}, "mean": [{}, {}, {}], "std": [{}, {}, {}], "fit": "{}", "pad": {}
  }},
  "postprocess": {{{}}},
  "licence": {{"spdx": "Apache-2.0", "confidence": "generated by a test"}}
}}
)",
      model.name, onnx_sha256, json_specs(model.inputs), json_specs(model.outputs), model.task,
      model.family, labels, p.input_name, p.width, p.height,
      p.layout == TensorLayout::kNhwc ? "NHWC" : "NCHW",
      p.order == ChannelOrder::kBgr ? "BGR" : "RGB", p.scale, p.mean[0], p.mean[1], p.mean[2],
      p.std[0], p.std[1], p.std[2], json_name(p.fit), p.pad_level, postprocess);
}

std::filesystem::path write_model_folder(const TestModel& model,
                                         const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  write_file(folder / "model.onnx", model.onnx);
  const auto hash = sha256_file(folder / "model.onnx");
  if (!hash) give_up(folder);
  write_file(folder / "manifest.json", manifest_json(model, *hash));
  return folder / "manifest.json";
}

}  // namespace penstock::model_testing
