// SPDX-License-Identifier: Apache-2.0
//
// The peers of bench preprocess: what people write today to get a decoded frame into a model's
// input. Each makes the same letterboxed float32 NCHW tensor, on one thread, into memory that was
// allocated and padded before.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "penstock/base/error.h"
#include "penstock/media/geometry.h"
#include "penstock/media/test_frames.h"

namespace penstock::bench {

/// A frame of samples without stride, as one block: NV12 or I420.
struct RawFrame {
  RawFrame(const testing::Picture& picture, PixelFormat pixel_format);
  int width = 0, height = 0;
  PixelFormat format;
  std::vector<std::uint8_t> samples;
};

class PreprocessPeer {
 public:
  virtual ~PreprocessPeer() = default;
  virtual std::string_view name() const = 0;
  /// The tensor [3, input_height, input_width], RGB / 255, padding 114 / 255.
  virtual std::span<const float> run() = 0;
};

/// Planes scaled first, then colour: the faster order with OpenCV. `frame` outlives the peer.
std::unique_ptr<PreprocessPeer> make_opencv_planes_first(const RawFrame& frame,
                                                         const Letterbox& box);
/// Colour first, at full size.
std::unique_ptr<PreprocessPeer> make_opencv_convert_first(const RawFrame& frame,
                                                          const Letterbox& box);
/// GstVideoConverter, what videoconvertscale works with, to planar RGB, then to floats.
Result<std::unique_ptr<PreprocessPeer>> make_videoconvertscale(const RawFrame& frame,
                                                               const Letterbox& box);

}  // namespace penstock::bench
