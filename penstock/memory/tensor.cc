// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/tensor.h"

#include <map>

#include "penstock/base/checked.h"
#include "penstock/base/str_format.h"

namespace penstock {
namespace {

std::string wanted(const Dimension& dimension) {
  std::string text = dimension.is_fixed()
                         ? std::to_string(dimension.minimum)
                         : str_format("{}..{}", dimension.minimum, dimension.maximum);
  if (!dimension.symbol.empty()) text += str_format(" ('{}')", dimension.symbol);
  return text;
}

Result<void> check_shape(const Shape& shape, const std::vector<Dimension>& dims) {
  if (shape.size() != dims.size()) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("shape {} has {} dimensions, the model needs {}", to_string(shape),
                           shape.size(), dims.size()));
  }
  std::map<std::string_view, std::int64_t> bound;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i].accepts(shape[i])) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("dimension {} of shape {} is {}, the model needs {}", i,
                             to_string(shape), shape[i], wanted(dims[i])));
    }
    if (dims[i].symbol.empty()) continue;
    const auto [first, is_new] = bound.try_emplace(dims[i].symbol, shape[i]);
    if (!is_new && first->second != shape[i]) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("dimension {} of shape {} is {}, but '{}' is already {}", i,
                             to_string(shape), shape[i], dims[i].symbol, first->second));
    }
  }
  return {};
}

Result<void> check_memory(const Tensor& tensor, DeviceId device) {
  const StorageRegion& data = tensor.data;
  if (!data.storage) return fail(ErrorKind::kInvalidArgument, "the tensor has no memory");
  if (data.storage->device() != device) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("its memory is on {}, the model runs on {}",
                           to_string(data.storage->device()), to_string(device)));
  }
  const Result<std::size_t> needed = byte_size(tensor.type, tensor.shape);
  if (!needed) return std::unexpected(needed.error());
  // A contiguous tensor fills its region exactly; a region of another size is a strided view or a
  // wrong shape.
  if (data.size != *needed) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("{} bytes of memory, but a contiguous {} tensor of shape {} has {}",
                           data.size, to_string(tensor.type), to_string(tensor.shape), *needed));
  }
  PENSTOCK_TRY(validate(data));
  if ((data.storage->address() + data.offset) % size_of(tensor.type) != 0) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("its memory at offset {} is not aligned to {} elements", data.offset,
                           to_string(tensor.type)));
  }
  return {};
}

}  // namespace

std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::kUint8:
    case DataType::kInt8:
    case DataType::kBool:
      return 1;
    case DataType::kFloat16:
      return 2;
    case DataType::kFloat32:
    case DataType::kInt32:
      return 4;
    case DataType::kFloat64:
    case DataType::kInt64:
      return 8;
  }
  return 1;
}

std::string_view to_string(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return "float32";
    case DataType::kFloat16:
      return "float16";
    case DataType::kFloat64:
      return "float64";
    case DataType::kUint8:
      return "uint8";
    case DataType::kInt8:
      return "int8";
    case DataType::kInt32:
      return "int32";
    case DataType::kInt64:
      return "int64";
    case DataType::kBool:
      return "bool";
  }
  return "unknown";
}

std::string_view to_string(TensorLayout layout) {
  switch (layout) {
    case TensorLayout::kAny:
      return "any";
    case TensorLayout::kNchw:
      return "NCHW";
    case TensorLayout::kNhwc:
      return "NHWC";
  }
  return "unknown";
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(shape[i]);
  }
  return text + ']';
}

Result<std::size_t> byte_size(DataType type, const Shape& shape) {
  std::size_t bytes = size_of(type);
  for (const std::int64_t dimension : shape) {
    if (dimension < 0) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("shape {} has a negative dimension", to_string(shape)));
    }
    const auto product = checked_product(bytes, static_cast<std::size_t>(dimension));
    if (!product) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("a {} tensor of shape {} has more bytes than memory can address",
                             to_string(type), to_string(shape)));
    }
    bytes = *product;
  }
  return bytes;
}

Result<void> check(const Tensor& tensor, const TensorSpec& spec, DeviceId device) {
  const auto named = [&](Result<void> result) -> Result<void> {
    if (result) return result;
    return std::unexpected(result.error().context(str_format("input '{}'", spec.name)));
  };
  if (tensor.type != spec.type) {
    return named(fail(ErrorKind::kInvalidArgument,
                      str_format("element type is {}, the model needs {}", to_string(tensor.type),
                                 to_string(spec.type))));
  }
  PENSTOCK_TRY(named(check_shape(tensor.shape, spec.dims)));
  return named(check_memory(tensor, device));
}

}  // namespace penstock
