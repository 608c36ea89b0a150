// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/model_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/model/npy.h"

namespace penstock {
namespace {

std::filesystem::path file_of(const std::filesystem::path& folder, std::string_view side,
                              std::string name) {
  std::ranges::replace_if(name, [](char c) { return c == '/' || c == ':'; }, '_');
  return folder / str_format("{}.{}.npy", side, name);
}

Result<Tensor> load_tensor(const TensorSpec& spec, const std::filesystem::path& folder) {
  if (spec.type != DataType::kFloat32) {
    return fail(ErrorKind::kUnsupported, str_format("'{}' is not float32", spec.name));
  }
  auto array = read_npy(file_of(folder, "in", spec.name));
  if (!array) return std::unexpected(array.error());
  auto values = std::make_shared<std::vector<float>>(std::move(array->values));
  const auto bytes = std::as_writable_bytes(std::span(*values));
  return Tensor{.name = spec.name,
                .type = spec.type,
                .shape = std::move(array->shape),
                .data = StorageRegion::whole(wrap_host_memory(bytes, values)),
                .ready = {}};
}

Result<OutputDifference> compare(const Tensor& got, const std::filesystem::path& folder) {
  if (got.type != DataType::kFloat32) {
    return fail(ErrorKind::kUnsupported, str_format("'{}' is not float32", got.name));
  }
  const auto want = read_npy(file_of(folder, "out", got.name));
  if (!want) return std::unexpected(want.error());
  if (want->shape != got.shape) {
    return fail(ErrorKind::kCorrupt, str_format("'{}' has shape {}, its reference {}", got.name,
                                                to_string(got.shape), to_string(want->shape)));
  }
  const auto bytes = got.data.storage->host_bytes().subspan(got.data.offset, got.data.size);
  OutputDifference difference{.output = got.name};
  for (std::size_t i = 0; i < want->values.size(); ++i) {
    float value = 0;
    std::memcpy(&value, bytes.data() + i * sizeof(float), sizeof(float));
    const double apart = std::abs(double{value} - double{want->values[i]});
    // A NaN compares false with everything.
    difference.largest = std::max(
        difference.largest, std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart);
    difference.scale = std::max(difference.scale, std::abs(double{want->values[i]}));
  }
  return difference;
}

}  // namespace

Result<std::vector<OutputDifference>> compare_with_reference(const Manifest& manifest,
                                                             const std::filesystem::path& folder,
                                                             const SessionOptions& options) {
  auto device = open_device(DeviceId{});
  if (!device) return std::unexpected(device.error());
  auto session = open_session(*device, manifest, options);
  if (!session) return std::unexpected(session.error());
  std::vector<Tensor> inputs;
  for (const TensorSpec& spec : (*session)->inputs()) {
    auto tensor = load_tensor(spec, folder);
    if (!tensor) return std::unexpected(tensor.error());
    inputs.push_back(*std::move(tensor));
  }
  auto outputs = (*session)->run(inputs);
  if (!outputs) return std::unexpected(outputs.error());
  std::vector<OutputDifference> differences;
  for (const Tensor& output : *outputs) {
    PENSTOCK_TRY(output.ready.wait());
    auto difference = compare(output, folder);
    if (!difference) return std::unexpected(difference.error());
    differences.push_back(*std::move(difference));
  }
  return differences;
}

}  // namespace penstock
