// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/whole_picture.h"

#include <algorithm>

#include "penstock/base/str_format.h"

namespace penstock {

Shape shape_of(const TensorSpec& spec) {
  Shape shape;
  for (const Dimension& dim : spec.dims) shape.push_back(dim.is_fixed() ? dim.minimum : -1);
  return shape;
}

bool is_known(const Shape& shape) {
  return !shape.empty() &&
         std::all_of(shape.begin() + 1, shape.end(), [](std::int64_t side) { return side >= 0; });
}

Result<TensorSpec> only_output(std::string_view family, const Manifest& manifest) {
  if (manifest.outputs.size() == 1) return manifest.outputs.front();
  std::string names;
  for (const TensorSpec& output : manifest.outputs) {
    names += str_format("{}'{}'", names.empty() ? "" : ", ", output.name);
  }
  return fail(ErrorKind::kInvalidArgument,
              str_format("family '{}' reads one output, the manifest names {}: {}", family,
                         manifest.outputs.size(), names.empty() ? "none" : names));
}

Result<void> check_output(const Tensor& output, DataType type, int item) {
  const auto bytes = byte_size(output.type, output.shape);
  if (!bytes) return std::unexpected(bytes.error());
  if (output.type != type || !output.data.storage || output.data.size != *bytes) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("output '{}' {} must be {} with {} bytes, is {} with {}", output.name,
                           to_string(output.shape), to_string(type), *bytes, to_string(output.type),
                           output.data.size));
  }
  if (output.shape.empty() || item < 0 || item >= output.shape[0]) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("output '{}' {} has no batch item {}", output.name,
                           to_string(output.shape), item));
  }
  return {};
}

Result<const Tensor*> check_only_output(std::span<const Tensor> outputs, DataType type, int item) {
  if (outputs.size() != 1) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("{} outputs instead of one", outputs.size()));
  }
  PENSTOCK_TRY(check_output(outputs.front(), type, item));
  return &outputs.front();
}

}  // namespace penstock
