// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/detection_job.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace penstock {

Result<Fence> run_detection_steps(Device& device, std::span<const Tensor> outputs,
                                  const DecodeOptions& options, DetectionSteps steps,
                                  DetectionBlock& block) {
  auto storage = device.allocate(sizeof(DetectionBlock));
  if (!storage) return std::unexpected(std::move(storage).error());

  std::vector<Device::Owner> uses{*storage};
  for (StoragePtr& extra : steps.storages) uses.push_back(std::move(extra));
  std::vector<Fence> after;
  for (const Tensor& output : outputs) {
    uses.push_back(output.data.storage);
    after.push_back(output.ready);
  }
  auto fence =
      device.submit(std::move(uses), std::move(after),
                    [options, steps = std::move(steps),
                     block_storage = storage->get()](const Access& access) mutable -> Result<void> {
                      std::vector<Candidate> candidates;
                      candidates.reserve(64);
                      PENSTOCK_TRY(steps.collect(access, candidates));
                      if (steps.thin) {
                        steps.thin(access, candidates);
                      } else {
                        non_maximum_suppression(candidates, options);
                      }
                      // Records behind the count are zero, not what the pool held.
                      std::byte* const bytes = access.bytes(*block_storage).data();
                      std::memset(bytes, 0, sizeof(DetectionBlock));
                      candidates.resize(std::min(candidates.size(), std::size_t{kMaxDetections}));
                      const auto count = static_cast<std::uint32_t>(candidates.size());
                      std::memcpy(bytes + offsetof(DetectionBlock, count), &count, sizeof count);
                      std::byte* record = bytes + offsetof(DetectionBlock, records);
                      for (const Candidate& candidate : candidates) {
                        std::memcpy(record, &candidate.record, sizeof candidate.record);
                        record += sizeof candidate.record;
                      }
                      if (steps.gather) steps.gather(access, candidates);
                      return {};
                    });
  if (!fence) return std::unexpected(std::move(fence).error());

  PENSTOCK_TRY(device.read_back(std::as_writable_bytes(std::span(&block, 1)),
                                {.storage = *storage, .offset = 0, .size = sizeof block}, {*fence},
                                TransferPurpose::kDetections));
  return *std::move(fence);
}

Result<DetectionBlock> run_detection_job(Device& device, std::span<const Tensor> outputs,
                                         const DecodeOptions& options, CollectCandidates collect) {
  Result<DetectionBlock> block(std::in_place);
  auto done = run_detection_steps(device, outputs, options,
                                  DetectionSteps{.collect = std::move(collect)}, *block);
  if (!done) return std::unexpected(std::move(done).error());
  return block;
}

std::span<const float> item_values(const Access& access, const StorageRegion& region,
                                   std::size_t item, std::size_t values_per_item) {
  const auto* values = reinterpret_cast<const float*>(access.bytes(region).data());
  return {values + item * values_per_item, values_per_item};
}

}  // namespace penstock
