// SPDX-License-Identifier: Apache-2.0
//
// TensorSpec says what a tensor must look like (a model's named input, say); Tensor is one: a fully
// known shape, a view of a Storage, and the Fence to pass before reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/memory/fence.h"
#include "penstock/memory/storage.h"

namespace penstock {

enum class DataType { kFloat32, kFloat16, kFloat64, kUint8, kInt8, kInt32, kInt64, kBool };
std::size_t size_of(DataType type);
std::string_view to_string(DataType type);

enum class TensorLayout { kAny, kNchw, kNhwc };
std::string_view to_string(TensorLayout layout);

using Shape = std::vector<std::int64_t>;
std::string to_string(const Shape& shape);  ///< "[1,3,416,416]"

/// One dimension of a spec: fixed (minimum == maximum), a range, or a named symbol within a range.
struct Dimension {
  std::int64_t minimum = 1;
  std::int64_t maximum = 1;
  std::string symbol;  ///< Equal symbols must bind to equal values.
  static Dimension fixed(std::int64_t value) { return {value, value, {}}; }
  bool is_fixed() const { return minimum == maximum; }
  bool accepts(std::int64_t value) const { return value >= minimum && value <= maximum; }
};

struct TensorSpec {
  std::string name;
  DataType type = DataType::kFloat32;
  TensorLayout layout = TensorLayout::kAny;
  std::vector<Dimension> dims;
};

struct Tensor {
  std::string name;
  DataType type = DataType::kFloat32;
  Shape shape;
  StorageRegion data;  ///< Contiguous, row-major.
  Fence ready;         ///< To pass before reading.
};

/// Bytes of a contiguous tensor; kInvalidArgument when negative or overflowing.
Result<std::size_t> byte_size(DataType type, const Shape& shape);

/// Contract M03: type, rank and dimensions, byte size, contiguity and device of `tensor` against
/// `spec`. The message names the input and the offending property.
Result<void> check(const Tensor& tensor, const TensorSpec& spec, DeviceId device);

}  // namespace penstock
