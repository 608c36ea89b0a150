// SPDX-License-Identifier: Apache-2.0
//
// Preprocessor: frame to model input in one fused pass on the frame's device: crop, bilinear scale,
// colour, channel order, normalisation, letterbox padding. The frame is read in place, the tensor
// is newly owned by the caller, nothing is staged between (contract V15, V16). One per stream; not
// thread-safe (workers have their own).
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/media/geometry.h"
#include "penstock/media/video_frame.h"
#include "penstock/memory/device.h"
#include "penstock/memory/tensor.h"

namespace penstock {

enum class ChannelOrder { kRgb, kBgr };

/// value = (level * scale - mean[c]) / std[c], level 0..255, c in the output's channel order.
struct PreprocessSpec {
  std::string input_name;
  /// float32, float16 (rounded to nearest), or uint8: the levels themselves, so scale and std are 1
  /// and mean is 0.
  DataType type = DataType::kFloat32;
  int width = 0, height = 0;
  TensorLayout layout = TensorLayout::kNchw;
  ChannelOrder order = ChannelOrder::kRgb;
  float scale = 1.0f;
  std::array<float, 3> mean{0, 0, 0};
  std::array<float, 3> std{1, 1, 1};
  Fit fit = Fit::kStretch;
  float pad_level = 114.0f;  ///< Level of every channel of the padding, normalised like a pixel.
};

/// Contract P04: no input tensor is larger, whatever the device could hold.
inline constexpr std::size_t kMaxInputBytes = std::size_t{1} << 30;

struct PreprocessedFrame {
  Tensor tensor;        ///< spec().type [1,3,H,W] or [1,H,W,3].
  Letterbox letterbox;  ///< For the way back.
};

/// A pixel of padding in the spec's type and channel order, 3 x size_of(type) bytes.
std::vector<std::byte> padding_pixel(const PreprocessSpec& spec);

class Preprocessor {
 public:
  static Result<std::unique_ptr<Preprocessor>> create(DevicePtr device, const PreprocessSpec& spec);
  virtual ~Preprocessor() = default;

  /// `roi` (source pixels) defaults to the whole frame; it is grown to chroma boundaries, and what
  /// lies outside looks like its edge. The tensor's fence carries failures of the device's work.
  /// kInvalidArgument: a frame that validate() refuses or of another device, a roi outside it.
  /// kExhausted: the device's memory budget.
  virtual Result<PreprocessedFrame> run(const FramePtr& frame, std::optional<RectI> roi = {}) = 0;

  virtual const PreprocessSpec& spec() const = 0;
};

}  // namespace penstock
