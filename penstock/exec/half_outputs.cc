// SPDX-License-Identifier: Apache-2.0
#include "penstock/exec/half_outputs.h"

#include <cstdint>
#include <utility>

#include "penstock/task/kernels/widen_half.h"

namespace penstock {

Manifest with_widened_outputs(Manifest manifest) {
  if (manifest.task == "raw") return manifest;
  for (TensorSpec& output : manifest.outputs) {
    if (output.type == DataType::kFloat16) output.type = DataType::kFloat32;
  }
  return manifest;
}

Result<void> widen_outputs(Device& device, std::vector<Tensor>& outputs,
                           std::vector<Fence>& in_flight) {
  for (Tensor& output : outputs) {
    if (output.type != DataType::kFloat16) continue;
    const auto bytes = byte_size(DataType::kFloat32, output.shape);
    if (!bytes) return std::unexpected(bytes.error());
    auto storage = device.allocate(*bytes);
    if (!storage) return std::unexpected(std::move(storage).error());
    const StorageRegion floats{.storage = *std::move(storage), .offset = 0, .size = *bytes};
    // Plain pointers to what `uses` keeps alive.
    auto done = device.submit(
        {output.data.storage, floats.storage}, {output.ready},
        [from = output.data.storage.get(), offset = output.data.offset, to = floats.storage.get(),
         count = *bytes / sizeof(float)](const Access& access) -> Result<void> {
          widen_half(reinterpret_cast<const std::uint16_t*>(access.bytes(*from).data() + offset),
                     count, reinterpret_cast<float*>(access.bytes(*to).data()));
          return {};
        });
    if (!done) return std::unexpected(std::move(done).error());
    in_flight.push_back(*done);
    output.type = DataType::kFloat32;
    output.data = floats;
    output.ready = *std::move(done);
  }
  return {};
}

}  // namespace penstock
