// SPDX-License-Identifier: Apache-2.0
#include "penstock/exec/batch_assembly.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "penstock/base/checked.h"

namespace penstock {
namespace {

/// Padding of [slots,3,H,W] or [slots,H,W,3], in the tensor's channel order.
void fill_padding(std::span<std::byte> bytes, const PreprocessSpec& spec) {
  const std::vector<std::byte> pixel = padding_pixel(spec);
  const std::size_t size = pixel.size() / 3;
  const bool interleaved = spec.layout == TensorLayout::kNhwc;
  const std::size_t plane =
      static_cast<std::size_t>(spec.width) * static_cast<std::size_t>(spec.height);
  for (std::size_t i = 0; i < bytes.size() / size; ++i) {
    const std::size_t channel = (interleaved ? i : i / plane) % 3;
    std::copy_n(&pixel[channel * size], size, &bytes[i * size]);
  }
}

}  // namespace

Result<Tensor> assemble_batch(Device& device, std::span<const Tensor> items, std::size_t slots,
                              const PreprocessSpec& spec, std::vector<Fence>& in_flight) {
  if (slots == 1) return items.front();
  const std::size_t item_bytes = items.front().data.size;
  const auto total = checked_product(item_bytes, slots);
  if (!total) return fail(ErrorKind::kExhausted, "the batch's size overflows");
  auto storage = device.allocate(*total);
  if (!storage) return std::unexpected(std::move(storage).error());

  std::vector<Fence> copied;
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto fence = device.copy({.storage = *storage, .offset = i * item_bytes, .size = item_bytes},
                             items[i].data, {items[i].ready});
    if (!fence) return std::unexpected(std::move(fence).error());
    copied.push_back(*fence);
    in_flight.push_back(std::move(*fence));
  }
  // One more job after the copies gives the batch its single fence, padding or not.
  const std::size_t used = items.size() * item_bytes;
  auto ready =
      device.submit({*storage}, std::move(copied),
                    [target = storage->get(), used, spec](const Access& access) -> Result<void> {
                      fill_padding(access.bytes(*target).subspan(used), spec);
                      return {};
                    });
  if (!ready) return std::unexpected(std::move(ready).error());
  in_flight.push_back(*ready);

  Tensor batch = items.front();
  batch.shape[0] = static_cast<std::int64_t>(slots);
  batch.data = {.storage = std::move(*storage), .offset = 0, .size = *total};
  batch.ready = std::move(*ready);
  return batch;
}

}  // namespace penstock
