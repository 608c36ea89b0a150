// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "penstock/base/checked.h"
#include "penstock/base/str_format.h"
#include "penstock/task/whole_picture.h"

namespace penstock {
namespace {

/// IEEE half precision: sign, 5 bits of exponent with bias 15, 10 of fraction.
double half_to_double(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  double value = 0;
  if (exponent == 0x1f) {
    value = fraction == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(fraction + 0x400, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

template <typename T>
void append_values(std::span<const std::byte> bytes, std::vector<double>& values) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, &bytes[at], sizeof value);
    values.push_back(static_cast<double>(value));
  }
}

Result<void> append_wide_integers(std::span<const std::byte> bytes, const std::string& name,
                                  std::vector<double>& values) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 53;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::int64_t)) {
    std::int64_t value = 0;
    std::memcpy(&value, &bytes[at], sizeof value);
    if (value > kLargest || value < -kLargest) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("output '{}': {} can't be told exactly, its magnitude is more than "
                             "2^53",
                             name, value));
    }
    values.push_back(static_cast<double>(value));
  }
  return {};
}

Result<std::vector<double>> to_values(const Tensor& tensor, std::span<const std::byte> bytes) {
  std::vector<double> values;
  values.reserve(bytes.size() / size_of(tensor.type));
  switch (tensor.type) {
    case DataType::kFloat32:
      append_values<float>(bytes, values);
      break;
    case DataType::kFloat64:
      append_values<double>(bytes, values);
      break;
    case DataType::kUint8:
    case DataType::kBool:
      append_values<std::uint8_t>(bytes, values);
      break;
    case DataType::kInt8:
      append_values<std::int8_t>(bytes, values);
      break;
    case DataType::kInt32:
      append_values<std::int32_t>(bytes, values);
      break;
    case DataType::kFloat16:
      for (std::size_t at = 0; at < bytes.size(); at += 2) {
        std::uint16_t half = 0;
        std::memcpy(&half, &bytes[at], sizeof half);
        values.push_back(half_to_double(half));
      }
      break;
    case DataType::kInt64:
      PENSTOCK_TRY(append_wide_integers(bytes, tensor.name, values));
      break;
  }
  return values;
}

/// The input that gets the picture, whose first dimension is the batch; the others get constants,
/// whatever their shape. Null where nothing tells which one it is.
const TensorSpec* picture_of(const Manifest& manifest) {
  const auto& inputs = manifest.inputs;
  auto picture = std::ranges::find(inputs, manifest.preprocess.input_name, &TensorSpec::name);
  if (picture == inputs.end() && inputs.size() == 1) picture = inputs.begin();
  return picture == inputs.end() || picture->dims.empty() ? nullptr : &*picture;
}

/// A model that takes one frame at a time; its outputs are that frame's, whatever their shape.
bool takes_single_frames(const Manifest& manifest) {
  const TensorSpec* picture = picture_of(manifest);
  return picture != nullptr && picture->dims.front().maximum == 1;
}

std::unexpected<Error> too_large(std::size_t bytes) {
  return fail(ErrorKind::kExhausted,
              str_format("the outputs have {} bytes a frame, more than the {} KiB that may be read "
                         "back; leave them on the device (read-tensors off), or name fewer outputs "
                         "in the manifest",
                         bytes, kMaxReadBack >> 10));
}

class RawDecoder final : public OutputDecoder {
 public:
  RawDecoder(bool single, bool read) : single_(single), read_(read) {}

  /// The part of `tensor` that is the frame's.
  Result<Tensor> part_of(const Tensor& tensor, int item) const {
    const auto bytes = byte_size(tensor.type, tensor.shape);
    if (!bytes) return std::unexpected(bytes.error());
    if (!tensor.data.storage || tensor.data.size != *bytes) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("output '{}' {} must have {} bytes, has {}", tensor.name,
                             to_string(tensor.shape), *bytes, tensor.data.size));
    }
    Tensor part = tensor;
    if (single_ && item == 0) return part;
    if (tensor.shape.empty() || item < 0 || item >= tensor.shape[0]) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("output '{}' {} has no batch item {}", tensor.name,
                             to_string(tensor.shape), item));
    }
    part.data.size /= static_cast<std::size_t>(tensor.shape[0]);
    part.data.offset += part.data.size * static_cast<std::size_t>(item);
    part.shape[0] = 1;
    return part;
  }

  Result<Decoded> decode(Device& device, std::span<const Tensor> outputs, int item,
                         const Letterbox* letterbox) override {
    std::vector<Tensor> parts;
    std::size_t bytes = 0;
    for (const Tensor& output : outputs) {
      auto part = part_of(output, item);
      if (!part) return std::unexpected(std::move(part).error());
      bytes += part->data.size;
      parts.push_back(std::move(*part));
    }
    Decoded decoded;
    decoded.device.tensors.assign(outputs.begin(), outputs.end());
    decoded.device.item = item;
    if (letterbox != nullptr) decoded.device.letterbox = *letterbox;
    if (!read_) return wait(std::move(decoded));
    if (bytes > kMaxReadBack) return too_large(bytes);
    for (const Tensor& part : parts) {
      std::vector<std::byte> content(part.data.size);
      // Nothing to move, but the run's outcome counts all the same.
      if (content.empty()) {
        PENSTOCK_TRY(part.ready.wait());
      } else {
        PENSTOCK_TRY(
            device.read_back(content, part.data, {part.ready}, TransferPurpose::kMetadata));
      }
      auto values = to_values(part, content);
      if (!values) return std::unexpected(std::move(values).error());
      decoded.tensors.push_back(
          {.name = part.name, .shape = part.shape, .values = std::move(*values)});
    }
    return decoded;
  }

 private:
  /// Nothing is read, so nothing else would tell that the run has failed.
  static Result<Decoded> wait(Decoded decoded) {
    for (const Tensor& tensor : decoded.device.tensors) PENSTOCK_TRY(tensor.ready.wait());
    return decoded;
  }

  const bool single_;
  const bool read_;
};

/// Of a model that takes several frames at a time, each output must say which part is whose.
Result<void> check_batch(const Manifest& manifest, const TensorSpec& output) {
  if (output.dims.empty()) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("output '{}' has no batch dimension, and the model takes several frames "
                           "at a time",
                           output.name));
  }
  const TensorSpec* picture = picture_of(manifest);
  const Dimension& first = output.dims.front();
  if (picture == nullptr || !first.is_fixed()) return {};
  const Dimension& batch = picture->dims.front();
  if (batch.is_fixed() && first.minimum == batch.minimum) return {};
  return fail(ErrorKind::kInvalidArgument,
              str_format("output '{}': its first dimension of {} is not the batch of input '{}'",
                         output.name, first.minimum, picture->name));
}

/// Bytes of a frame's part; nothing when a dimension is open.
Result<std::size_t> fixed_bytes(const TensorSpec& spec, bool single) {
  Shape shape = shape_of(spec);
  if (!single && !shape.empty()) shape[0] = 1;
  for (const std::int64_t side : shape) {
    if (side < 0) return std::size_t{0};
  }
  return byte_size(spec.type, shape);
}

}  // namespace

Result<std::unique_ptr<OutputDecoder>> create_raw_decoder(const Manifest& manifest,
                                                          const DecodeOptions& options) {
  if (manifest.outputs.empty()) {
    return fail(ErrorKind::kInvalidArgument, "the manifest names no output");
  }
  const bool single = takes_single_frames(manifest);
  std::size_t bytes = 0;
  for (const TensorSpec& output : manifest.outputs) {
    if (!single) PENSTOCK_TRY(check_batch(manifest, output));
    const auto size = fixed_bytes(output, single);
    if (!size) return std::unexpected(size.error());
    const auto sum = checked_sum(bytes, *size);
    if (!sum) return too_large(*size);
    bytes = *sum;
  }
  if (options.read_tensors && bytes > kMaxReadBack) return too_large(bytes);
  return std::make_unique<RawDecoder>(single, options.read_tensors);
}

}  // namespace penstock
