// SPDX-License-Identifier: Apache-2.0
//
// WatermarkStream draws the frames of one penwatermark while it runs: buffer in, new BGRA buffer
// out (contracts W01-W03).
//
//   auto drawn = stream.draw(input);
//   if (drawn && *drawn == nullptr) return GST_FLOW_FLUSHING;
//
// It holds `input` until the device has read it; where work outlives a flush, its frame does, too.
#pragma once

#include <gst/gst.h>
#include <gst/video/video.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gst/gst_ptr.h"
#include "gst/output_slots.h"
#include "gst/video_caps.h"
#include "penstock/draw/compositor.h"
#include "penstock/draw/overlay.h"

namespace penstock::gst {

/// What a running element says besides errors; called on the streaming thread.
struct WatermarkEvents {
  std::function<void(const Error&)> on_late;     ///< All output frames have been held for 1 s.
  std::function<void(const Error&)> on_dropped;  ///< A frame had more to draw than the limits let.
};

/// One thread draws; the rest is thread-safe.
class WatermarkStream {
 public:
  struct Stats {
    std::uint64_t frames = 0, commands = 0, dropped = 0, misplaced = 0;
  };

  WatermarkStream(DevicePtr device, std::unique_ptr<Compositor> compositor,
                  std::shared_ptr<OutputSlots> slots, std::vector<OverlayZone> zones,
                  WatermarkEvents events);

  /// Frames from now on. kUnsupported: sides beyond V03's.
  Result<void> set_format(const VideoFormat& format, const OverlayStyle& style);

  /// The frame with its metadata drawn on it, and all of its metadata; null when interrupted.
  Result<BufferPtr> draw(GstBuffer* input);

  OutputSlots& slots() const { return *slots_; }
  Stats stats() const;
  CopyLedger& ledger() const { return device_->ledger(); }

 private:
  Result<std::shared_ptr<const Drawing>> drawing_of(GstBuffer* input);
  /// Makes the memory of one output frame; null when interrupted.
  Result<StoragePtr> take_slot(GstBuffer* input);
  BufferPtr output_of(GstBuffer* input, StoragePtr storage) const;

  const DevicePtr device_;
  const std::unique_ptr<Compositor> compositor_;
  const std::shared_ptr<OutputSlots> slots_;
  const std::vector<OverlayZone> zones_;
  const WatermarkEvents events_;
  const GstPtr<GstAllocator> allocator_;

  VideoFormat format_;
  GstVideoInfo output_info_;
  std::unique_ptr<const Overlay> overlay_;
  bool has_told_dropped_ = false;

  std::atomic<std::uint64_t> frames_{0}, commands_{0}, dropped_{0}, misplaced_{0};
};

}  // namespace penstock::gst
