// SPDX-License-Identifier: Apache-2.0
//
// A model that is described by its shapes, to be planned and not run. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/model/preparation.h"
#include "penstock/model/testing/onnx_builder.h"
#include "penstock/model/testing/temporary_folder.h"

namespace penstock::model_testing {

using Dims = std::vector<OnnxDim>;
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// What Ultralytics writes of that many classes.
inline std::string names(int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += str_format("{}{}: 'thing {}'", i ? ", " : "", i, i);
  return text + "}";
}

class PreparationTest : public testing::Test {
 protected:
  struct Model {
    std::vector<Dims> outputs{};
    Metadata metadata{};
    Dims input{1, 3, 640, 640};
    DataType input_type = DataType::kFloat32;
    std::vector<Dims> more_inputs{};  ///< int64 "more0" and so on.
    std::string output_name = "output";
    DataType type = DataType::kFloat32;
    /// Operations that lead to the only output, the last one first.
    std::vector<std::string> ends_in{};
  };
  std::filesystem::path file(const Model& model) const {
    OnnxBuilder onnx;
    onnx.input("images", model.input_type, model.input);
    for (std::size_t i = 0; i < model.more_inputs.size(); ++i) {
      onnx.input(str_format("more{}", i), DataType::kInt64, model.more_inputs[i]);
    }
    for (std::size_t i = 0; i < model.outputs.size(); ++i) {
      onnx.output(str_format("{}{}", model.output_name, i), model.type, model.outputs[i]);
    }
    std::string value = model.output_name + "0";
    for (const std::string& operation : model.ends_in) {
      onnx.node(operation, {value + "_"}, {value});
      value += "_";
    }
    for (const auto& [key, text] : model.metadata) onnx.metadata(key, text);
    return folder_.write("model.onnx", onnx.build());
  }
  Result<Preparation> plan(const Model& model, const PrepareOptions& options = {}) const {
    return plan_preparation(file(model), options);
  }
  std::string refusal(const Model& model, const PrepareOptions& options = {}) const {
    const auto planned = plan(model, options);
    return planned ? "was planned as " + planned->manifest.family : planned.error().message();
  }
  /// The same with a .modelinfo of `groups` beside the model.
  Result<Preparation> plan_with(const Model& model, const std::string& groups,
                                const PrepareOptions& options = {}) const {
    folder_.write("model.onnx.modelinfo", "[modelinfo]\nversion=1.0\n" + groups);
    return plan(model, options);
  }
  std::string refusal_with(const Model& model, const std::string& groups,
                           const PrepareOptions& options = {}) const {
    const auto planned = plan_with(model, groups, options);
    return planned ? "was planned as " + planned->manifest.family : planned.error().message();
  }
  static PrepareOptions usual_input() {
    PrepareOptions options;
    options.order = ChannelOrder::kRgb;
    options.scale = 1.0f / 255;
    options.fit = Fit::kStretch;
    return options;
  }

  TemporaryFolder folder_;
};

}  // namespace penstock::model_testing
