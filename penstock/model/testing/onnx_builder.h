// SPDX-License-Identifier: Apache-2.0
//
// OnnxBuilder writes tiny ONNX models inside a test, so that no test needs a download. It is a bare
// protobuf writer of the few messages of onnx.proto that a graph needs; it checks nothing, because
// tests also want models that are wrong. Tests only.
//
//   OnnxBuilder model;
//   model.input("x", DataType::kFloat32, {1, 4}).output("y", DataType::kFloat32, {1, 4});
//   model.node("Relu", {"x"}, {"y"});
//   std::string bytes = model.build();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "penstock/memory/tensor.h"

namespace penstock::model_testing {

/// A fixed size or the name of a symbolic one.
struct OnnxDim {
  OnnxDim(std::int64_t fixed) : value(fixed) {}                // NOLINT: reads as a list of numbers
  OnnxDim(const char* symbol) : value(std::string(symbol)) {}  // NOLINT
  std::variant<std::int64_t, std::string> value;
};

using OnnxValue =
    std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>>;
using OnnxAttributes = std::vector<std::pair<std::string, OnnxValue>>;

class OnnxBuilder {
 public:
  explicit OnnxBuilder(int opset = 13) : opset_(opset) {}

  OnnxBuilder& input(std::string_view name, DataType type, const std::vector<OnnxDim>& dims);
  OnnxBuilder& output(std::string_view name, DataType type, const std::vector<OnnxDim>& dims);
  OnnxBuilder& node(std::string_view op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const OnnxAttributes& attributes = {},
                    std::string_view domain = {});
  /// Initialisers. `dims` need not match the number of values.
  OnnxBuilder& constant(std::string_view name, const Shape& dims, const std::vector<float>& values);
  OnnxBuilder& constant(std::string_view name, const Shape& dims,
                        const std::vector<std::int64_t>& values);
  /// An initialiser of any of ONNX's types, by its number there.
  OnnxBuilder& raw_constant(std::string_view name, std::int64_t onnx_type, const Shape& dims,
                            std::string_view bytes);
  /// A float initialiser whose bytes lie in another file.
  OnnxBuilder& external_constant(std::string_view name, const Shape& dims,
                                 std::string_view location);

  /// The same as the value of a Constant node, which is no initialiser.
  OnnxBuilder& external_constant_node(std::string_view name, const Shape& dims,
                                      std::string_view location);

  /// An entry of metadata_props.
  OnnxBuilder& metadata(std::string_view key, std::string_view value);

  /// The serialised ModelProto.
  std::string build() const;

 private:
  int opset_;
  std::string graph_;
  std::string metadata_;
};

}  // namespace penstock::model_testing
