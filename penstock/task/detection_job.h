// SPDX-License-Identifier: Apache-2.0
//
// What every detector's decoder does around its own arithmetic: a device job that collects
// candidates from the outputs, thins them by NMS into a DetectionBlock on the device, gathers what
// else belongs to those that are left, and the marked read-back of the block.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "penstock/memory/device.h"
#include "penstock/memory/tensor.h"
#include "penstock/task/nms.h"
#include "penstock/task/output_decoder.h"

namespace penstock {

/// Runs inside the job, so it must not refer to anything that could end before the device's work:
/// capture by value. Appends candidates whose score is >= the threshold.
using CollectCandidates =
    std::move_only_function<Result<void>(const Access&, std::vector<Candidate>&)>;

/// Thins the candidates to the result, in order; max_objects at most.
using ThinCandidates = std::move_only_function<void(const Access&, std::vector<Candidate>&)>;
/// Writes what belongs to the objects into the steps' storages.
using GatherExtras = std::move_only_function<void(const Access&, std::span<const Candidate>)>;

/// All run inside the one job.
struct DetectionSteps {
  CollectCandidates collect;
  ThinCandidates thin{};               ///< Empty: non_maximum_suppression.
  GatherExtras gather{};               ///< Empty: there is nothing else.
  std::vector<StoragePtr> storages{};  ///< What `gather` writes; lives until the job is done.
};

/// Reads the records back into `block`; answers the job's fence.
Result<Fence> run_detection_steps(Device& device, std::span<const Tensor> outputs,
                                  const DecodeOptions& options, DetectionSteps steps,
                                  DetectionBlock& block);

/// The same without extras.
Result<DetectionBlock> run_detection_job(Device& device, std::span<const Tensor> outputs,
                                         const DecodeOptions& options, CollectCandidates collect);

/// The floats of batch item `item` of a contiguous float32 tensor [batch, ...].
std::span<const float> item_values(const Access& access, const StorageRegion& region,
                                   std::size_t item, std::size_t values_per_item);

}  // namespace penstock
