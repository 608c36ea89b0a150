// SPDX-License-Identifier: Apache-2.0
//
// VideoFrame: one decoded picture where the decoder left it. Immutable once made; shared as
// std::shared_ptr<const VideoFrame>. The frame keeps its planes' Storage, and through it the
// decoder's memory, until the last owner lets go.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "penstock/base/error.h"
#include "penstock/media/colorimetry.h"
#include "penstock/memory/fence.h"
#include "penstock/memory/storage.h"

namespace penstock {

enum class PixelFormat { kNv12, kI420 };
inline constexpr int plane_count(PixelFormat format) {
  return format == PixelFormat::kNv12 ? 2 : 3;
}

/// Identifies a stream for life (its stream-start identity). Where several requests of one stream
/// may share a batch, as regions of a frame do, they come on lanes: each is a source in its own
/// right to who schedules, and all are one stream to who preprocesses.
struct SourceId {
  std::string name;
  std::uint32_t lane = 0;
  auto operator<=>(const SourceId&) const = default;
};
/// The flush epoch within a stream.
using Generation = std::uint64_t;

struct Plane {
  StoragePtr storage;
  std::size_t offset = 0;  ///< Of the first row, in bytes.
  std::size_t stride = 0;  ///< Bytes between rows.
};

struct VideoFrame {
  PixelFormat format = PixelFormat::kI420;
  int width = 0;   ///< Even.
  int height = 0;  ///< Even.
  Colorimetry color;
  std::array<Plane, 3> planes;
  std::int64_t pts_ns = -1;  ///< -1: none.
  SourceId source;
  Generation generation = 0;
  Fence ready;
  std::shared_ptr<const void> lease;  ///< Whatever must live as long as the frame.
};
using FramePtr = std::shared_ptr<const VideoFrame>;

/// Contract V02/V03 for a frame as built: even size within 32766, enough bytes in every plane.
Result<void> validate(const VideoFrame& frame);

}  // namespace penstock
