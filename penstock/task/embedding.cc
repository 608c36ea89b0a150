// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/task/box_family.h"
#include "penstock/task/whole_picture.h"

namespace penstock {
namespace {

constexpr std::string_view kFamily = "embedding";
constexpr std::int64_t kMaxValues = kMaxReadBack / sizeof(float);

/// `shape` is known but for the batch.
Result<std::size_t> count_values(const Shape& shape) {
  const std::span<const Shape> shapes(&shape, 1);
  const bool fits = shape.size() == 2 || (shape.size() == 4 && shape[2] == 1 && shape[3] == 1);
  if (!fits) return misfit(kFamily, shapes, "needs [N,values] or [N,values,1,1]");
  if (shape[1] < 1) return misfit(kFamily, shapes, "there is no value");
  if (shape[1] > kMaxValues) {
    return fail(ErrorKind::kExhausted,
                str_format("an embedding of {} values is larger than the {} KiB that may be read "
                           "back",
                           shape[1], kMaxReadBack >> 10));
  }
  return static_cast<std::size_t>(shape[1]);
}

/// In the place of the first value of a vector that can't be used; every other is finite.
constexpr float kNotFinite = std::numeric_limits<float>::quiet_NaN();
constexpr float kNoLength = std::numeric_limits<float>::infinity();

void copy_embedding(std::span<const float> from, std::span<float> to, bool normalise) {
  std::memcpy(to.data(), from.data(), from.size_bytes());
  if (!std::ranges::all_of(from, [](float value) { return std::isfinite(value); })) {
    to[0] = kNotFinite;
    return;
  }
  if (!normalise) return;
  double square = 0;  // of floats, at most 65536 of them: no overflow
  for (const float value : from) square += static_cast<double>(value) * static_cast<double>(value);
  const double length = std::sqrt(square);
  if (!(length > 0)) {
    to[0] = kNoLength;
    return;
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i] = static_cast<float>(static_cast<double>(from[i]) / length);
  }
}

class EmbeddingDecoder final : public OutputDecoder {
 public:
  explicit EmbeddingDecoder(bool normalise) : normalise_(normalise) {}

  Result<Decoded> decode(Device& device, std::span<const Tensor> outputs, int item,
                         const Letterbox* /*letterbox*/) override {
    const auto output = check_only_output(outputs, DataType::kFloat32, item);
    if (!output) return std::unexpected(output.error());
    const Tensor& tensor = **output;
    const auto count = count_values(tensor.shape);
    if (!count) return std::unexpected(count.error());

    auto storage = device.allocate(*count * sizeof(float));
    if (!storage) return std::unexpected(std::move(storage).error());
    const StorageRegion vector{*storage, 0, *count * sizeof(float)};
    auto fence = device.submit({*storage, tensor.data.storage}, {tensor.ready},
                               [region = tensor.data, shape = tensor.shape, item, vector,
                                normalise = normalise_](const Access& access) -> Result<void> {
                                 const auto values = item_of<float>(access, region, shape, item);
                                 auto* to = reinterpret_cast<float*>(access.bytes(vector).data());
                                 copy_embedding(values, {to, values.size()}, normalise);
                                 return {};
                               });
    if (!fence) return std::unexpected(std::move(fence).error());

    Decoded decoded;
    decoded.embedding.resize(*count);
    PENSTOCK_TRY(device.read_back(std::as_writable_bytes(std::span(decoded.embedding)), vector,
                                  {*fence}, TransferPurpose::kMetadata));
    const float first = decoded.embedding.front();
    if (std::isfinite(first)) return decoded;
    Decoded none;
    none.unusable =
        std::isnan(first)
            ? str_format("output '{}': a value of the embedding is not finite", tensor.name)
            : str_format("output '{}': an embedding of length 0 can't be normalised", tensor.name);
    return none;
  }

 private:
  const bool normalise_;
};

}  // namespace

Result<std::unique_ptr<OutputDecoder>> create_embedding_decoder(const Manifest& manifest,
                                                                const DecodeOptions& /*options*/) {
  const auto output = only_output(kFamily, manifest);
  if (!output) return std::unexpected(output.error());
  const Shape shape = shape_of(*output);
  if (output->type != DataType::kFloat32) {
    return misfit(kFamily, std::span(&shape, 1),
                  str_format("'{}' is {}, not float32", output->name, to_string(output->type)));
  }
  if (is_known(shape)) {
    if (const auto count = count_values(shape); !count) return std::unexpected(count.error());
  } else if (shape.size() != 2 && shape.size() != 4) {
    return misfit(kFamily, std::span(&shape, 1), "needs 2 or 4 dimensions");
  }
  return std::make_unique<EmbeddingDecoder>(manifest.normalise);
}

}  // namespace penstock
