// SPDX-License-Identifier: Apache-2.0
//
// Compositor makes a new BGRA picture of a frame with a Drawing on it, as one device job: the frame
// is read once, in place, and never written.
//
//   auto output = device->allocate(4 * width * height);
//   auto done = (*compositor)->run(frame, drawing, *output, 4 * width);
//   done->wait();
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/draw/overlay.h"
#include "penstock/media/video_frame.h"
#include "penstock/memory/device.h"

namespace penstock {

/// Thread-safe.
class Compositor {
 public:
  /// kUnsupported: a device without a kernel in this build.
  static Result<std::unique_ptr<Compositor>> create(DevicePtr device);
  virtual ~Compositor() = default;

  /// Writes height rows of width opaque pixels into `output`, `stride` bytes apart. `frame`,
  /// `drawing`, `output` and `owners` live until the fence has passed. kInvalidArgument: a drawing
  /// of another size than the frame's, an output that is too small, memory of another device.
  virtual Result<Fence> run(const FramePtr& frame, std::shared_ptr<const Drawing> drawing,
                            const StoragePtr& output, std::size_t stride,
                            std::vector<Device::Owner> owners = {}) = 0;
};

}  // namespace penstock
