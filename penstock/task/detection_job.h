// SPDX-License-Identifier: Apache-2.0
//
// What every detector's decoder does around its own arithmetic: a device job that collects
// candidates from the outputs, thins them by NMS into a DetectionBlock on the device, and the
// marked read-back of that block.
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

Result<DetectionBlock> run_detection_job(Device& device, std::span<const Tensor> outputs,
                                         const DecodeOptions& options, CollectCandidates collect);

/// The floats of batch item `item` of a contiguous float32 tensor [batch, ...].
std::span<const float> item_values(const Access& access, const StorageRegion& region,
                                   std::size_t item, std::size_t values_per_item);

}  // namespace penstock
