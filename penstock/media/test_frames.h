// SPDX-License-Identifier: Apache-2.0
//
// For tests: pictures with known samples, frames that hold them on any device, and the float oracle
// of the preprocessor. The oracle shares no code with what it judges: own coefficients (as BT.601,
// BT.709 and JFIF print them), own geometry, double precision, one pixel at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/media/preprocessor.h"
#include "penstock/media/video_frame.h"
#include "penstock/memory/device.h"

namespace penstock::testing {

/// Planar 4:2:0 samples without stride.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> y, u, v;

  Picture(int w, int h, std::uint8_t luma = 16, std::uint8_t cb = 128, std::uint8_t cr = 128);
  std::uint8_t& y_at(int column, int row) {
    return y[static_cast<std::size_t>(row) * static_cast<std::size_t>(width) +
             static_cast<std::size_t>(column)];
  }
};

Picture color_bars(int width, int height);                    ///< 75 %, BT.709 limited levels.
Picture gray_ramp(int width, int height);                     ///< 16..235 from left to right.
Picture noise(int width, int height, std::uint32_t seed);     ///< All levels.
Picture extremes(int width, int height, std::uint32_t seed);  ///< Only 0 and 255.
/// Mid gray, one U and one V sample far from 128 at chroma position (cx, cy).
Picture chroma_impulse(int width, int height, int cx, int cy);

struct FrameLayout {
  PixelFormat format = PixelFormat::kNv12;
  std::size_t extra_stride = 0;  ///< Bytes behind each row, filled with 0xee.
  std::size_t offset = 0;        ///< Bytes before each plane, filled with 0xee.
  Colorimetry color{};
};

/// `device` is "cpu" or "sim".
DevicePtr make_device(const std::string& device);
/// A frame in memory of `device`; bytes around the samples are 0xee.
std::shared_ptr<VideoFrame> make_frame(Device& device, const Picture& picture,
                                       const FrameLayout& layout = {});
/// Waits for the tensor and reads it, by a transfer that only tests may make.
std::vector<float> read_tensor(Device& device, const Tensor& tensor);
/// All bytes of a storage.
std::vector<std::uint8_t> read_storage(Device& device, const StoragePtr& storage);

/// What the preprocessor should have stored, in the tensor's order. `crop` must be even.
std::vector<double> preprocess_oracle(const Picture& picture, const Colorimetry& color,
                                      const PreprocessSpec& spec, std::optional<RectI> crop = {});

}  // namespace penstock::testing
