// SPDX-License-Identifier: Apache-2.0
//
// FrameTask: which regions of a frame go through the model, and what their results make of the
// frame. The InferStream between peninfer's pads submits the regions and waits for their results;
// it knows nothing of what they are.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/exec/batch_executor.h"
#include "penstock/media/geometry.h"
#include "penstock/records/records.h"

namespace penstock::gst {

/// One frame's. Made on the sink pad's thread, from conclude() on used by the source pad's task.
class FrameTask {
 public:
  virtual ~FrameTask() = default;

  /// In pixels of the frame, nothing for the whole of it. May be empty: then no pixel is read.
  virtual std::vector<std::optional<RectI>> regions() const = 0;
  /// Takes the results, one a region, in the order of the stream's frames.
  virtual void conclude(std::vector<InferenceResult> results) = 0;
  /// Puts what was found onto the frame, whose metadata is writable.
  virtual Result<void> attach(GstBuffer* frame) = 0;
};

/// Makes the tasks of one stream, from its begin or a flush on, in order. Keeps what the stream's
/// frames have to remember of those before them.
class FrameTasks {
 public:
  virtual ~FrameTasks() = default;
  /// `about` has the frame's source, number, times and size, and no findings. Null: the frame
  /// passes as it is.
  virtual Result<std::unique_ptr<FrameTask>> begin(GstBuffer* frame, const FrameResult& about) = 0;
};

/// What regions have come to, over all streams. Objects, where regions are objects.
struct RegionCounts {
  std::atomic<guint64> inferred{0};
  std::atomic<guint64> kept{0};      ///< Not looked at again: looked at a short while ago.
  std::atomic<guint64> left_out{0};  ///< More than a frame may have.
};

/// One task a frame: all of it, as one region. `model` is who says what is found.
std::shared_ptr<FrameTasks> whole_frame_tasks(const std::string& model);

}  // namespace penstock::gst
