// SPDX-License-Identifier: Apache-2.0
#include "penstock/exec/constant_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "penstock/base/checked.h"
#include "penstock/base/str_format.h"

namespace penstock {
namespace {

/// False when T can't hold the number.
template <typename T>
bool append_as(double value, std::vector<std::byte>& bytes) {
  if constexpr (std::is_integral_v<T>) {
    // One past the largest is a power of two, and exact where the largest itself is not.
    const double low = static_cast<double>(std::numeric_limits<T>::min());
    const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (!(value >= low && value < end) || value != std::trunc(value)) return false;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (std::isfinite(value) && std::abs(value) > double{std::numeric_limits<float>::max()}) {
      return false;
    }
  }
  const T number = static_cast<T>(value);
  const auto* begin = reinterpret_cast<const std::byte*>(&number);
  bytes.insert(bytes.end(), begin, begin + sizeof number);
  return true;
}

bool append(DataType type, double value, std::vector<std::byte>& bytes) {
  switch (type) {
    case DataType::kFloat32:
      return append_as<float>(value, bytes);
    case DataType::kFloat64:
      return append_as<double>(value, bytes);
    case DataType::kUint8:
      return append_as<std::uint8_t>(value, bytes);
    case DataType::kInt8:
      return append_as<std::int8_t>(value, bytes);
    case DataType::kInt32:
      return append_as<std::int32_t>(value, bytes);
    case DataType::kInt64:
      return append_as<std::int64_t>(value, bytes);
    case DataType::kFloat16:
    case DataType::kBool:
      return false;
  }
  return false;
}

Result<std::vector<std::byte>> to_bytes(const TensorSpec& spec, std::span<const double> values) {
  std::vector<std::byte> bytes;
  for (const double value : values) {
    if (append(spec.type, value, bytes)) continue;
    return fail(ErrorKind::kInvalidArgument,
                str_format("input '{}' is {}, which can't hold the constant {}", spec.name,
                           to_string(spec.type), value));
  }
  return bytes;
}

/// How many values an item has: the product of the dimensions behind an open first one.
Result<std::size_t> values_of(const TensorSpec& spec, bool is_batched) {
  std::size_t count = 1;
  for (std::size_t i = is_batched ? 1 : 0; i < spec.dims.size(); ++i) {
    if (!spec.dims[i].is_fixed()) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("input '{}': dimension {} is open, so that a constant has no shape",
                             spec.name, i));
    }
    const auto product = checked_product(count, static_cast<std::size_t>(spec.dims[i].minimum));
    if (!product) {
      return fail(ErrorKind::kInvalidArgument, str_format("input '{}' is too large", spec.name));
    }
    count = *product;
  }
  return count;
}

/// So that no batch fails later what a model was opened for.
Result<void> check_upload(const TensorSpec& spec, std::size_t item_bytes, std::size_t slots) {
  const std::size_t limit = transfer_limit(TransferPurpose::kMetadata);
  const auto bytes = checked_product(item_bytes, slots);
  if (bytes && *bytes <= limit) return {};
  return fail(
      ErrorKind::kInvalidArgument,
      str_format("input '{}': its constant has {} bytes an item, and a batch of {} more than "
                 "the {} that may be uploaded; use a batch of at most {}",
                 spec.name, item_bytes, slots, limit, limit / item_bytes));
}

}  // namespace

Result<ConstantInputs> ConstantInputs::create(std::span<const TensorSpec> inputs,
                                              const Manifest& manifest, std::size_t most_slots) {
  ConstantInputs result;
  for (const TensorSpec& spec : inputs) {
    if (spec.name == manifest.preprocess.input_name) continue;
    const auto constant = std::ranges::find(manifest.constants, spec.name, &InputConstant::input);
    if (constant == manifest.constants.end()) {
      return fail(ErrorKind::kUnsupported,
                  str_format("it has {} inputs, and nothing says what '{}' gets: a video stage "
                             "feeds '{}' and the manifest's 'constants'",
                             inputs.size(), spec.name, manifest.preprocess.input_name));
    }
    Input input{.spec = spec, .item = {}, .is_batched = false};
    input.is_batched = !spec.dims.empty() && !spec.dims.front().is_fixed();
    const auto count = values_of(spec, input.is_batched);
    if (!count) return std::unexpected(count.error());
    if (*count != constant->values.size()) {
      return fail(
          ErrorKind::kInvalidArgument,
          str_format("input '{}' takes {} numbers{}, the manifest's constant has {}", spec.name,
                     *count, input.is_batched ? " a batch item" : "", constant->values.size()));
    }
    auto bytes = to_bytes(spec, constant->values);
    if (!bytes) return std::unexpected(bytes.error());
    input.item = *std::move(bytes);
    PENSTOCK_TRY(check_upload(spec, input.item.size(), input.is_batched ? most_slots : 1));
    result.inputs_.push_back(std::move(input));
  }
  return result;
}

Result<std::span<const Tensor>> ConstantInputs::get(Device& device, std::size_t slots) {
  if (const auto found = made_.find(slots); found != made_.end()) return found->second;
  std::vector<Tensor> tensors;
  for (const Input& input : inputs_) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < (input.is_batched ? slots : 1); ++i) {
      bytes.insert(bytes.end(), input.item.begin(), input.item.end());
    }
    auto storage = device.allocate(bytes.size());
    if (!storage) return std::unexpected(std::move(storage).error());
    Tensor& tensor = tensors.emplace_back(Tensor{
        .name = input.spec.name, .type = input.spec.type, .shape = {}, .data = {}, .ready = {}});
    for (const Dimension& dim : input.spec.dims) tensor.shape.push_back(dim.minimum);
    if (input.is_batched) tensor.shape.front() = static_cast<std::int64_t>(slots);
    tensor.data = {.storage = *std::move(storage), .offset = 0, .size = bytes.size()};
    PENSTOCK_TRY(device.upload(tensor.data, bytes, TransferPurpose::kMetadata));
  }
  return made_.emplace(slots, std::move(tensors)).first->second;
}

}  // namespace penstock
