// SPDX-License-Identifier: Apache-2.0
//
// Small models that tests generate, with the manifest that goes with them. Tests only.
//
//   TestModel model = make_square_finder_nanodet(416);
//   std::filesystem::path manifest = write_model_folder(model, folder);  // folder/manifest.json
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "penstock/media/preprocessor.h"
#include "penstock/memory/tensor.h"
#include "penstock/model/testing/onnx_builder.h"

namespace penstock::model_testing {

struct TestModel {
  std::string name;
  std::string onnx;  ///< Serialised ModelProto.
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::string task = "detection";
  std::string family = "nanodet";
  std::vector<std::string> labels;
  std::vector<std::string> keypoints;  ///< Poses only.
  PreprocessSpec preprocess;
  float threshold = 0.4f;
  float iou_threshold = 0.5f;
  /// What stands within the manifest's "postprocess"; empty: the two thresholds.
  std::string postprocess{};
};

/// What a constant NanoDet reports whatever it sees. Distances are from the cell's centre to the
/// box's sides in units of the stride, 0..10; `score` is the class's sigmoid output.
struct ConstantBox {
  int class_id = 0;
  float score = 0.9f;
  int stride = 8;  ///< 8, 16 or 32.
  int cell_x = 0, cell_y = 0;
  float left = 1, top = 1, right = 1, bottom = 1;
};

/// NanoDet-shaped (inputs [N,3,size,size]; per stride 8, 16, 32 class scores [N,cells,classes] and
/// box distributions [N,cells,44]), always answering `boxes`. The box of `b` in input pixels is
/// ((cell_x + 0.5) * stride - left * stride, ...). `size` is a multiple of 32.
///
/// Each run multiplies `products` pairs of 1024x1024 matrices first (2.1 GFLOP each), for tests
/// that need one in flight.
TestModel make_constant_nanodet(int size, int classes, const std::vector<ConstantBox>& boxes,
                                int products = 0);

/// Really finds squares: pure red, green or blue (classes 0, 1, 2) squares whose side is 3 strides
/// (24, 48 or 96 input pixels) on a grey, black or white ground, with edges on (or within a
/// twentieth of the side of) multiples of the stride, not touching one another. The box is the
/// square's own, to the stride grid. RGB, level / 255, letterboxed. A perfect square scores 1; grey
/// scores 0.
TestModel make_square_finder_nanodet(int size);

/// The finder's scores as `score_rows8`, `score_rows16` and `score_rows32` [N, 3, cells] of a graph
/// that has "input" [N, 3, size, size], for outputs in other layouts (square_finders.h).
void add_square_scores(OnnxBuilder& graph);

/// Writes model.onnx and a schema 2 manifest.json into `folder` (created), and returns the path of
/// the manifest. Aborts the test run when the disk refuses.
std::filesystem::path write_model_folder(const TestModel& model,
                                         const std::filesystem::path& folder);

/// The manifest's text, for tests that break it.
std::string manifest_json(const TestModel& model, const std::string& onnx_sha256);

}  // namespace penstock::model_testing
