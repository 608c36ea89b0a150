// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/video_frame.h"

#include "penstock/base/checked.h"
#include "penstock/base/str_format.h"
#include "penstock/media/geometry.h"

namespace penstock {
namespace {

Result<void> validate_plane(const VideoFrame& frame, int index) {
  const Plane& plane = frame.planes[static_cast<std::size_t>(index)];
  const bool chroma = index > 0;
  const auto rows = static_cast<std::size_t>(chroma ? frame.height / 2 : frame.height);
  const auto row_bytes = static_cast<std::size_t>(
      chroma && frame.format == PixelFormat::kI420 ? frame.width / 2 : frame.width);
  if (!plane.storage) {
    return fail(ErrorKind::kInvalidArgument, str_format("plane {} has no memory", index));
  }
  if (plane.storage->device() != frame.planes[0].storage->device()) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("plane {} is on device '{}', plane 0 on '{}'", index,
                           to_string(plane.storage->device()),
                           to_string(frame.planes[0].storage->device())));
  }
  if (plane.stride < row_bytes) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("plane {} has a stride of {} bytes for rows of {}", index, plane.stride,
                           row_bytes));
  }
  const auto before_last = checked_product(plane.stride, rows - 1);
  const auto end = before_last ? checked_sum(*before_last, plane.offset, row_bytes) : std::nullopt;
  if (!end || *end > plane.storage->size()) {
    return fail(
        ErrorKind::kInvalidArgument,
        str_format("plane {} ({} rows of {} bytes, stride {}, offset {}) does not fit its "
                   "{} bytes of memory",
                   index, rows, row_bytes, plane.stride, plane.offset, plane.storage->size()));
  }
  return {};
}

}  // namespace

Result<void> validate(const VideoFrame& frame) {
  if (frame.format != PixelFormat::kNv12 && frame.format != PixelFormat::kI420) {
    return fail(ErrorKind::kUnsupported, "pixel format is neither NV12 nor I420");
  }
  if (frame.width < 2 || frame.height < 2 || frame.width > kMaxFrameSide ||
      frame.height > kMaxFrameSide) {
    return fail(ErrorKind::kInvalidArgument, str_format("frame size {}x{} is outside 2..{}",
                                                        frame.width, frame.height, kMaxFrameSide));
  }
  if (frame.width % 2 != 0 || frame.height % 2 != 0) {
    return fail(ErrorKind::kUnsupported,
                str_format("frame size {}x{} is odd; width and height must be even", frame.width,
                           frame.height));
  }
  for (int index = 0; index < plane_count(frame.format); ++index) {
    PENSTOCK_TRY(validate_plane(frame, index));
  }
  return {};
}

}  // namespace penstock
