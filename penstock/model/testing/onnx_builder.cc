// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/testing/onnx_builder.h"

#include <bit>
#include <cstring>

namespace penstock::model_testing {
namespace {

// Field numbers and enumerators are those of onnx.proto (ONNX IR version 8).
namespace proto {
constexpr int kModelIrVersion = 1, kModelProducer = 2, kModelGraph = 7, kModelOpset = 8,
              kModelMetadata = 14;
constexpr int kOpsetVersion = 2;
constexpr int kGraphNode = 1, kGraphName = 2, kGraphInitializer = 5, kGraphInput = 11,
              kGraphOutput = 12;
constexpr int kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeOp = 4, kNodeAttribute = 5,
              kNodeDomain = 7;
constexpr int kAttrName = 1, kAttrFloat = 2, kAttrInt = 3, kAttrString = 4, kAttrTensor = 5,
              kAttrFloats = 7, kAttrInts = 8, kAttrType = 20;
constexpr int kTensorDims = 1, kTensorType = 2, kTensorName = 8, kTensorRaw = 9,
              kTensorExternal = 13, kTensorLocation = 14;
constexpr int kEntryKey = 1, kEntryValue = 2;
constexpr int kInfoName = 1, kInfoType = 2, kTypeTensor = 1, kTensorTypeElem = 1,
              kTensorTypeShape = 2, kShapeDim = 1, kDimValue = 1, kDimParam = 2;
}  // namespace proto

enum WireType { kVarint = 0, kBytes = 2, kFixed32 = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void put_int(std::string& out, int field, std::int64_t value) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | kVarint);
  put_varint(out, static_cast<std::uint64_t>(value));
}

void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | kBytes);
  put_varint(out, bytes.size());
  out.append(bytes);
}

void put_float(std::string& out, int field, float value) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | kFixed32);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  out.append(reinterpret_cast<const char*>(&bits), sizeof bits);  // little-endian hosts only
}

int onnx_type(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return 1;
    case DataType::kUint8:
      return 2;
    case DataType::kInt8:
      return 3;
    case DataType::kInt32:
      return 6;
    case DataType::kInt64:
      return 7;
    case DataType::kBool:
      return 9;
    case DataType::kFloat16:
      return 10;
    case DataType::kFloat64:
      return 11;
  }
  return 0;
}

std::string value_info(std::string_view name, DataType type, const std::vector<OnnxDim>& dims) {
  std::string shape;
  for (const OnnxDim& dim : dims) {
    std::string message;
    if (const auto* fixed = std::get_if<std::int64_t>(&dim.value)) {
      put_int(message, proto::kDimValue, *fixed);
    } else {
      put_bytes(message, proto::kDimParam, std::get<std::string>(dim.value));
    }
    put_bytes(shape, proto::kShapeDim, message);
  }
  std::string tensor;
  put_int(tensor, proto::kTensorTypeElem, onnx_type(type));
  put_bytes(tensor, proto::kTensorTypeShape, shape);
  std::string type_message;
  put_bytes(type_message, proto::kTypeTensor, tensor);
  std::string info;
  put_bytes(info, proto::kInfoName, name);
  put_bytes(info, proto::kInfoType, type_message);
  return info;
}

std::string attribute(const std::string& name, const OnnxValue& value) {
  std::string out;
  put_bytes(out, proto::kAttrName, name);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    put_int(out, proto::kAttrInt, *integer);
    put_int(out, proto::kAttrType, 2);
  } else if (const auto* real = std::get_if<float>(&value)) {
    put_float(out, proto::kAttrFloat, *real);
    put_int(out, proto::kAttrType, 1);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    put_bytes(out, proto::kAttrString, *text);
    put_int(out, proto::kAttrType, 3);
  } else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
    for (std::int64_t item : *integers) put_int(out, proto::kAttrInts, item);
    put_int(out, proto::kAttrType, 7);
  } else {
    for (float item : std::get<std::vector<float>>(value)) put_float(out, proto::kAttrFloats, item);
    put_int(out, proto::kAttrType, 6);
  }
  return out;
}

std::string tensor_header(std::string_view name, DataType type, const Shape& dims) {
  std::string out;
  for (std::int64_t dim : dims) put_int(out, proto::kTensorDims, dim);
  put_int(out, proto::kTensorType, onnx_type(type));
  put_bytes(out, proto::kTensorName, name);
  return out;
}

std::string external_tensor(std::string_view name, const Shape& dims, std::string_view location) {
  std::string tensor = tensor_header(name, DataType::kFloat32, dims);
  std::string entry;
  put_bytes(entry, proto::kEntryKey, "location");
  put_bytes(entry, proto::kEntryValue, location);
  put_bytes(tensor, proto::kTensorExternal, entry);
  put_int(tensor, proto::kTensorLocation, 1);
  return tensor;
}

template <typename T>
std::string_view raw_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

OnnxBuilder& OnnxBuilder::input(std::string_view name, DataType type,
                                const std::vector<OnnxDim>& dims) {
  put_bytes(graph_, proto::kGraphInput, value_info(name, type, dims));
  return *this;
}

OnnxBuilder& OnnxBuilder::output(std::string_view name, DataType type,
                                 const std::vector<OnnxDim>& dims) {
  put_bytes(graph_, proto::kGraphOutput, value_info(name, type, dims));
  return *this;
}

OnnxBuilder& OnnxBuilder::node(std::string_view op, const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs,
                               const OnnxAttributes& attributes, std::string_view domain) {
  std::string message;
  for (const std::string& name : inputs) put_bytes(message, proto::kNodeInput, name);
  for (const std::string& name : outputs) put_bytes(message, proto::kNodeOutput, name);
  put_bytes(message, proto::kNodeName, outputs.empty() ? std::string(op) : outputs.front());
  put_bytes(message, proto::kNodeOp, op);
  for (const auto& [name, value] : attributes) {
    put_bytes(message, proto::kNodeAttribute, attribute(name, value));
  }
  if (!domain.empty()) put_bytes(message, proto::kNodeDomain, domain);
  put_bytes(graph_, proto::kGraphNode, message);
  return *this;
}

OnnxBuilder& OnnxBuilder::constant(std::string_view name, const Shape& dims,
                                   const std::vector<float>& values) {
  std::string tensor = tensor_header(name, DataType::kFloat32, dims);
  put_bytes(tensor, proto::kTensorRaw, raw_bytes(values));
  put_bytes(graph_, proto::kGraphInitializer, tensor);
  return *this;
}

OnnxBuilder& OnnxBuilder::constant(std::string_view name, const Shape& dims,
                                   const std::vector<std::int64_t>& values) {
  std::string tensor = tensor_header(name, DataType::kInt64, dims);
  put_bytes(tensor, proto::kTensorRaw, raw_bytes(values));
  put_bytes(graph_, proto::kGraphInitializer, tensor);
  return *this;
}

OnnxBuilder& OnnxBuilder::raw_constant(std::string_view name, std::int64_t onnx_type,
                                       const Shape& dims, std::string_view bytes) {
  std::string tensor;
  for (const std::int64_t dim : dims) put_int(tensor, proto::kTensorDims, dim);
  put_int(tensor, proto::kTensorType, onnx_type);
  put_bytes(tensor, proto::kTensorName, name);
  put_bytes(tensor, proto::kTensorRaw, bytes);
  put_bytes(graph_, proto::kGraphInitializer, tensor);
  return *this;
}

OnnxBuilder& OnnxBuilder::external_constant(std::string_view name, const Shape& dims,
                                            std::string_view location) {
  put_bytes(graph_, proto::kGraphInitializer, external_tensor(name, dims, location));
  return *this;
}

OnnxBuilder& OnnxBuilder::external_constant_node(std::string_view name, const Shape& dims,
                                                 std::string_view location) {
  std::string value;
  put_bytes(value, proto::kAttrName, "value");
  put_bytes(value, proto::kAttrTensor, external_tensor(name, dims, location));
  put_int(value, proto::kAttrType, 4);
  std::string message;
  put_bytes(message, proto::kNodeOutput, name);
  put_bytes(message, proto::kNodeOp, "Constant");
  put_bytes(message, proto::kNodeAttribute, value);
  put_bytes(graph_, proto::kGraphNode, message);
  return *this;
}

OnnxBuilder& OnnxBuilder::metadata(std::string_view key, std::string_view value) {
  std::string entry;
  put_bytes(entry, proto::kEntryKey, key);
  put_bytes(entry, proto::kEntryValue, value);
  put_bytes(metadata_, proto::kModelMetadata, entry);
  return *this;
}

std::string OnnxBuilder::build() const {
  std::string graph;
  put_bytes(graph, proto::kGraphName, "test");
  graph += graph_;
  std::string opset;
  put_int(opset, proto::kOpsetVersion, opset_);
  std::string model;
  put_int(model, proto::kModelIrVersion, 8);
  put_bytes(model, proto::kModelProducer, "penstock-test");
  put_bytes(model, proto::kModelOpset, opset);
  put_bytes(model, proto::kModelGraph, graph);
  model += metadata_;
  return model;
}

}  // namespace penstock::model_testing
