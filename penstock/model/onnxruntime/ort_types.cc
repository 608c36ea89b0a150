// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/onnxruntime/ort_types.h"

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

struct TypePair {
  DataType ours;
  ONNXTensorElementDataType theirs;
};
constexpr TypePair kTypes[] = {
    {DataType::kFloat32, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT},
    {DataType::kFloat16, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16},
    {DataType::kFloat64, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE},
    {DataType::kUint8, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8},
    {DataType::kInt8, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8},
    {DataType::kInt32, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32},
    {DataType::kInt64, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64},
    {DataType::kBool, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL},
};

Result<void> read_tensor_type(const OrtRuntime& runtime, const OrtTensorTypeAndShapeInfo* shape,
                              OrtTensorInfo& info) {
  const OrtApi& api = runtime.api();
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::size_t rank = 0;
  PENSTOCK_TRY(runtime.check(api.GetTensorElementType(shape, &type), "reading a type"));
  PENSTOCK_TRY(runtime.check(api.GetDimensionsCount(shape, &rank), "reading a shape"));
  info.type = from_ort(type);
  info.dims.resize(rank);
  return runtime.check(api.GetDimensions(shape, info.dims.data(), rank), "reading a shape");
}

}  // namespace

ONNXTensorElementDataType to_ort(DataType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.ours == type) return pair.theirs;
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

std::optional<DataType> from_ort(ONNXTensorElementDataType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.theirs == type) return pair.ours;
  }
  return std::nullopt;
}

Result<std::vector<OrtTensorInfo>> tensor_infos(const OrtRuntime& runtime,
                                                const OrtSession* session, OrtSide side) {
  const OrtApi& api = runtime.api();
  const bool input = side == OrtSide::kInput;
  OrtAllocator* allocator = nullptr;
  std::size_t count = 0;
  PENSTOCK_TRY(runtime.check(api.GetAllocatorWithDefaultOptions(&allocator), "getting memory"));
  PENSTOCK_TRY(runtime.check(input ? api.SessionGetInputCount(session, &count)
                                   : api.SessionGetOutputCount(session, &count),
                             "counting inputs and outputs"));
  std::vector<OrtTensorInfo> infos(count);
  for (std::size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    PENSTOCK_TRY(runtime.check(input ? api.SessionGetInputName(session, i, allocator, &name)
                                     : api.SessionGetOutputName(session, i, allocator, &name),
                               "reading a name"));
    infos[i].name = name;
    PENSTOCK_TRY(runtime.check(api.AllocatorFree(allocator, name), "freeing a name"));
    auto type = runtime.type_info();
    PENSTOCK_TRY(runtime.check(input ? api.SessionGetInputTypeInfo(session, i, out(type))
                                     : api.SessionGetOutputTypeInfo(session, i, out(type)),
                               "reading a type"));
    const OrtTensorTypeAndShapeInfo* shape = nullptr;  // borrowed from `type`
    PENSTOCK_TRY(runtime.check(api.CastTypeInfoToTensorInfo(type.get(), &shape), "reading a type"));
    if (shape != nullptr) PENSTOCK_TRY(read_tensor_type(runtime, shape, infos[i]));
  }
  return infos;
}

Result<OrtTensorInfo> tensor_info(const OrtRuntime& runtime, const OrtValue* value) {
  const OrtApi& api = runtime.api();
  OrtTensorInfo info;
  int is_tensor = 0;
  PENSTOCK_TRY(runtime.check(api.IsTensor(value, &is_tensor), "reading a type"));
  if (is_tensor == 0) return info;
  auto shape = runtime.shape_info();
  PENSTOCK_TRY(runtime.check(api.GetTensorTypeAndShape(value, out(shape)), "reading a shape"));
  PENSTOCK_TRY(read_tensor_type(runtime, shape.get(), info));
  return info;
}

Result<void> check_spec(const TensorSpec& spec, const OrtTensorInfo& info) {
  if (!info.type) {
    return fail(
        ErrorKind::kUnsupported,
        str_format("'{}' of the model is no tensor of a type that Penstock handles", spec.name));
  }
  if (*info.type != spec.type) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("'{}' is {} in the model, {} in the manifest", spec.name,
                           to_string(*info.type), to_string(spec.type)));
  }
  // The API says rank 0 both for a scalar and for a shape that the model leaves open altogether.
  if (info.dims.empty()) return {};
  if (info.dims.size() != spec.dims.size()) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("'{}' has {} dimensions in the model, {} in the manifest", spec.name,
                           info.dims.size(), spec.dims.size()));
  }
  for (std::size_t i = 0; i < info.dims.size(); ++i) {
    const Dimension& dim = spec.dims[i];
    const std::int64_t size = info.dims[i];
    if (size >= 0 && (!dim.is_fixed() || dim.minimum != size)) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("dimension {} of '{}' is {} in the model, the manifest says {}..{}", i,
                             spec.name, size, dim.minimum, dim.maximum));
    }
  }
  return {};
}

}  // namespace penstock
