// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/detection_job.h"

#include <cstddef>
#include <cstring>
#include <utility>

namespace penstock {

Result<DetectionOutcome> run_detection_steps(Device& device, std::span<const Tensor> outputs,
                                             const DecodeOptions& options, DetectionSteps steps) {
  auto storage = device.allocate(sizeof(DetectionBlock));
  if (!storage) return std::unexpected(std::move(storage).error());

  std::vector<Device::Owner> uses{*storage};
  for (StoragePtr& extra : steps.storages) uses.push_back(std::move(extra));
  std::vector<Fence> after;
  for (const Tensor& output : outputs) {
    uses.push_back(output.data.storage);
    after.push_back(output.ready);
  }
  auto fence = device.submit(
      std::move(uses), std::move(after),
      [options, steps = std::move(steps),
       block_storage = storage->get()](const Access& access) mutable -> Result<void> {
        std::vector<Candidate> candidates;
        PENSTOCK_TRY(steps.collect(access, candidates));
        if (steps.thin) {
          steps.thin(access, candidates);
        } else {
          non_maximum_suppression(candidates, options);
        }
        DetectionBlock block{};  // records behind the count are zero, not what the pool held
        for (const Candidate& candidate : candidates) {
          block.records[block.count++] = candidate.record;
        }
        std::memcpy(access.bytes(*block_storage).data(), &block, sizeof block);
        if (steps.gather) steps.gather(access, candidates);
        return {};
      });
  if (!fence) return std::unexpected(std::move(fence).error());

  DetectionBlock block;
  PENSTOCK_TRY(device.read_back(std::as_writable_bytes(std::span(&block, 1)),
                                {.storage = *storage, .offset = 0, .size = sizeof block}, {*fence},
                                TransferPurpose::kDetections));
  return DetectionOutcome{.block = block, .done = *std::move(fence)};
}

Result<DetectionBlock> run_detection_job(Device& device, std::span<const Tensor> outputs,
                                         const DecodeOptions& options, CollectCandidates collect) {
  auto outcome =
      run_detection_steps(device, outputs, options, DetectionSteps{.collect = std::move(collect)});
  if (!outcome) return std::unexpected(std::move(outcome).error());
  return outcome->block;
}

std::span<const float> item_values(const Access& access, const StorageRegion& region,
                                   std::size_t item, std::size_t values_per_item) {
  const auto* values = reinterpret_cast<const float*>(access.bytes(region).data());
  return {values + item * values_per_item, values_per_item};
}

}  // namespace penstock
