// SPDX-License-Identifier: Apache-2.0
//
// FrameInference: the one way through a stage: frame -> tensor -> session -> records. Opened once
// from a manifest; makes the BatchRunners of an executor's workers, which share its session.
//
// `throughput`: one single-threaded worker per core. `latency`: one worker whose runs use all
// cores.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "penstock/exec/batch_executor.h"
#include "penstock/memory/device.h"
#include "penstock/model/manifest.h"
#include "penstock/model/session.h"
#include "penstock/task/output_decoder.h"

namespace penstock {

enum class Policy { kThroughput, kLatency };

struct InferenceOptions {
  Policy policy = Policy::kThroughput;
  int workers = 0;  ///< 0: by policy and the cores this process may use.
  std::size_t queue_depth = 64;
  std::size_t source_share = 8;
  int batch_size = 1;  ///< kInvalidArgument when the model's input has a smaller batch.
  Nanoseconds max_wait{};
  DecodeOptions decode{};
  std::filesystem::path engine_library{};
  Clock* clock = nullptr;  ///< Default: Clock::system().
};

class FrameInference {
 public:
  static Result<std::unique_ptr<FrameInference>> open(DevicePtr device, const Manifest& manifest,
                                                      const InferenceOptions& options);
  virtual ~FrameInference() = default;
  virtual SharedBatchExecutor& executor() = 0;
  virtual const Manifest& manifest() const = 0;
  virtual int workers() const = 0;
};

}  // namespace penstock
