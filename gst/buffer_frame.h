// SPDX-License-Identifier: Apache-2.0
//
// A GstBuffer seen as a VideoFrame, in place. System memory is mapped for reading one GstMemory at
// a time, with the strides and offsets of its GstVideoMeta (a plain buffer map would merge, that is
// copy, several memories); device memory gives its Storage.
#pragma once

#include <gst/gst.h>

#include <memory>
#include <mutex>
#include <vector>

#include "gst/gst_ptr.h"
#include "gst/video_caps.h"
#include "penstock/base/error.h"
#include "penstock/media/video_frame.h"

namespace penstock::gst {

/// Keeps a buffer and the read maps of its memories until release() or destruction. Thread-safe.
class BufferHold {
 public:
  explicit BufferHold(GstBuffer* buffer);
  BufferHold(const BufferHold&) = delete;
  BufferHold& operator=(const BufferHold&) = delete;
  ~BufferHold() { release(); }

  /// The bytes of the buffer's memory `index`, mapped once.
  Result<StoragePtr> map(const std::shared_ptr<BufferHold>& self, guint index);

  /// Unmaps and lets the buffer go. Only for when no reader is left: the owner of a finished
  /// request calls it so that downstream may write the memory although a worker has yet to drop its
  /// frame.
  void release();

 private:
  struct Mapped {
    guint index;
    GstMapInfo info;
    std::weak_ptr<Storage> storage;
  };
  std::mutex mutex_;
  BufferPtr buffer_;
  std::vector<std::unique_ptr<Mapped>> maps_;
};

struct BufferFrame {
  std::shared_ptr<VideoFrame> frame;  ///< Still to be given source and generation.
  std::shared_ptr<BufferHold> hold;
};

/// kUnsupported: memory of another kind than the device's, a plane that spans several memories, a
/// video meta that contradicts the caps. kCorrupt: a plane that reaches past the buffer.
Result<BufferFrame> frame_of(GstBuffer* buffer, const VideoFormat& format, DeviceId device);

}  // namespace penstock::gst
