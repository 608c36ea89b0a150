// SPDX-License-Identifier: Apache-2.0
//
// From a frame that arrived to the executor's requests for its regions.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "gst/buffer_frame.h"
#include "gst/frame_budget.h"
#include "gst/frame_task.h"
#include "gst/infer_sources.h"
#include "gst/stream_container.h"
#include "penstock/exec/batch_executor.h"

namespace penstock::gst {

/// A frame that is analysed.
struct FrameRequests {
  FramePlace place;
  std::unique_ptr<FrameTask> task;  ///< Null: nothing is to be done.
  guint64 number = 0;
  std::shared_ptr<BufferHold> hold{};        ///< Null: no pixel of it is read.
  std::vector<InferenceRequest> requests{};  ///< One a region, until they are submitted.
  std::size_t count = 0;                     ///< Of them.
};

/// Each request keeps the buffer and its maps, the lease and the identity. The error names the
/// frame, and its stream if it is of a container.
Result<FrameRequests> begin_frame(const ArrivedFrame& frame, const InferSources::Ticket& ticket,
                                  Generation generation, const FrameBudget::Lease& lease,
                                  DeviceId device);

}  // namespace penstock::gst
