// SPDX-License-Identifier: Apache-2.0
//
// ONNX Runtime's words for element types and tensor specs.
#pragma once

#include <onnxruntime_c_api.h>

#include <optional>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/memory/tensor.h"
#include "penstock/model/onnxruntime/ort_runtime.h"

namespace penstock {

ONNXTensorElementDataType to_ort(DataType type);
std::optional<DataType> from_ort(ONNXTensorElementDataType type);

/// A loaded model's own view of an input or output; -1 is a dimension that it leaves open.
struct OrtTensorInfo {
  std::string name;
  std::optional<DataType> type;  ///< Nothing: no tensor, or a type that Penstock has no word for.
  Shape dims;
};
enum class OrtSide { kInput, kOutput };
Result<std::vector<OrtTensorInfo>> tensor_infos(const OrtRuntime& runtime,
                                                const OrtSession* session, OrtSide side);

/// Type and shape of a value that a run made.
Result<OrtTensorInfo> tensor_info(const OrtRuntime& runtime, const OrtValue* value);

/// kInvalidArgument unless `spec` (the manifest's) describes `info` (the model's).
Result<void> check_spec(const TensorSpec& spec, const OrtTensorInfo& info);

}  // namespace penstock
