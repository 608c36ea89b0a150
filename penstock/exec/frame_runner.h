// SPDX-License-Identifier: Apache-2.0
//
// FrameRunner takes a batch of frames through preprocess -> run -> decode. The three are
// submissions to the device, chained by fences; the host waits only where the compact records are
// read back. When run() returns, also with errors, nothing of the batch is in flight on the device.
//
// Stage times are exact on `cpu`, where work runs inside the call. On a device with queues they are
// the times at which the host sees the stages' fences pass, which is a little late.
#pragma once

#include <cstddef>
#include <memory>

#include "penstock/exec/batch_executor.h"
#include "penstock/exec/constant_inputs.h"
#include "penstock/exec/preprocessor_cache.h"
#include "penstock/model/manifest.h"
#include "penstock/model/session.h"
#include "penstock/task/output_decoder.h"

namespace penstock {

/// What the runners of all workers share; outlives them.
struct FrameStage {
  DevicePtr device;
  Manifest manifest;
  std::shared_ptr<Session> session;
  std::size_t min_batch = 1;   ///< Slots that the model's input has at least.
  ConstantInputs constants{};  ///< Each runner copies them.
  Clock* clock = nullptr;
};

std::unique_ptr<BatchRunner> make_frame_runner(const FrameStage& stage,
                                               std::shared_ptr<PreprocessorCache> preprocessors,
                                               std::unique_ptr<OutputDecoder> decoder);

}  // namespace penstock
