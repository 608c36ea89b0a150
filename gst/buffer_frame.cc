// SPDX-License-Identifier: Apache-2.0
#include "gst/buffer_frame.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "gst/storage_memory.h"
#include "penstock/base/checked.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

struct PlaneLayout {
  std::size_t offset = 0;
  std::size_t stride = 0;
  std::size_t bytes = 0;  ///< From the first to behind the last pixel.
};

Result<std::array<PlaneLayout, 3>> layout_of(GstBuffer* buffer, const VideoFormat& format) {
  const int planes = plane_count(format.format);
  const GstVideoMeta* meta = gst_buffer_get_video_meta(buffer);
  if (meta != nullptr &&
      (meta->format != GST_VIDEO_INFO_FORMAT(&format.info) || int(meta->n_planes) != planes ||
       int(meta->width) < format.width || int(meta->height) < format.height)) {
    return fail(ErrorKind::kUnsupported,
                str_format("the buffer's video meta ({}x{}, {}) contradicts the caps ({}x{}, {})",
                           meta->width, meta->height, gst_video_format_to_string(meta->format),
                           format.width, format.height,
                           gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&format.info))));
  }
  if (const GstVideoCropMeta* crop = gst_buffer_get_video_crop_meta(buffer);
      crop != nullptr && (crop->x != 0 || crop->y != 0)) {
    return fail(ErrorKind::kUnsupported,
                str_format("the buffer has a crop meta at ({}, {}), which was not negotiated",
                           crop->x, crop->y));
  }
  std::array<PlaneLayout, 3> layout;
  for (int p = 0; p < planes; ++p) {
    const gint stride =
        meta != nullptr ? meta->stride[p] : GST_VIDEO_INFO_PLANE_STRIDE(&format.info, p);
    const gsize offset =
        meta != nullptr ? meta->offset[p] : GST_VIDEO_INFO_PLANE_OFFSET(&format.info, p);
    const std::size_t rows = p == 0 ? format.height : format.height / 2;
    const std::size_t row =
        p > 0 && format.format == PixelFormat::kI420 ? format.width / 2 : format.width;
    if (stride <= 0 || static_cast<std::size_t>(stride) < row) {
      return fail(ErrorKind::kUnsupported,
                  str_format("plane {} has stride {}, a row has {} bytes", p, stride, row));
    }
    const auto above = checked_product<std::size_t>(stride, rows - 1);
    const auto bytes = above ? checked_sum<std::size_t>(*above, row) : std::nullopt;
    if (!bytes) return fail(ErrorKind::kCorrupt, str_format("plane {} overflows", p));
    layout[p] = {offset, static_cast<std::size_t>(stride), *bytes};
  }
  return layout;
}

}  // namespace

BufferHold::BufferHold(GstBuffer* buffer) : buffer_(gst_buffer_ref(buffer)) {}

Result<StoragePtr> BufferHold::map(const std::shared_ptr<BufferHold>& self, guint index) {
  const std::lock_guard lock(mutex_);
  for (const auto& mapped : maps_) {
    if (mapped->index == index) {
      if (StoragePtr storage = mapped->storage.lock()) return storage;
    }
  }
  auto mapped = std::make_unique<Mapped>();
  mapped->index = index;
  GstMemory* memory = gst_buffer_peek_memory(buffer_.get(), index);
  if (!gst_memory_map(memory, &mapped->info, GST_MAP_READ)) {
    return fail(ErrorKind::kUnsupported,
                str_format("the buffer's memory {} ({}) can't be mapped for reading", index,
                           memory->allocator != nullptr ? memory->allocator->mem_type : "?"));
  }
  StoragePtr storage =
      wrap_host_memory({reinterpret_cast<std::byte*>(mapped->info.data), mapped->info.size}, self);
  mapped->storage = storage;
  maps_.push_back(std::move(mapped));
  return storage;
}

void BufferHold::release() {
  const std::lock_guard lock(mutex_);
  for (const auto& mapped : maps_) gst_memory_unmap(mapped->info.memory, &mapped->info);
  maps_.clear();
  buffer_.reset();
}

// The program takes pictures as the element takes frames.
__attribute__((visibility("default"))) Result<BufferFrame> frame_of(GstBuffer* buffer,
                                                                    const VideoFormat& format,
                                                                    DeviceId device) {
  const auto layout = layout_of(buffer, format);
  if (!layout) return std::unexpected(layout.error());
  BufferFrame made{std::make_shared<VideoFrame>(), std::make_shared<BufferHold>(buffer)};
  VideoFrame& frame = *made.frame;
  frame.format = format.format;
  frame.width = format.width;
  frame.height = format.height;
  frame.color = format.color;
  frame.pts_ns = GST_BUFFER_PTS_IS_VALID(buffer) ? std::int64_t(GST_BUFFER_PTS(buffer)) : -1;
  for (int p = 0; p < plane_count(format.format); ++p) {
    const PlaneLayout& plane = (*layout)[p];
    guint index = 0, length = 0;
    gsize skip = 0;
    if (!gst_buffer_find_memory(buffer, plane.offset, plane.bytes, &index, &length, &skip)) {
      return fail(ErrorKind::kCorrupt,
                  str_format("plane {} needs bytes {}..{}, the buffer has {}", p, plane.offset,
                             plane.offset + plane.bytes, gst_buffer_get_size(buffer)));
    }
    if (length != 1) {
      return fail(
          ErrorKind::kUnsupported,
          str_format("plane {} spans {} memories; joining them would copy the frame", p, length));
    }
    GstMemory* memory = gst_buffer_peek_memory(buffer, index);
    StoragePtr storage = storage_of(memory);
    std::size_t offset = skip;
    if (device.kind == DeviceKind::kCpu && storage == nullptr) {
      auto mapped = made.hold->map(made.hold, index);
      if (!mapped) return std::unexpected(mapped.error());
      storage = *mapped;
    } else if (storage != nullptr && storage->device() == device) {
      offset += memory->offset;
    } else {
      return fail(ErrorKind::kUnsupported,
                  str_format("the buffer's memory is '{}', not that of the device",
                             memory->allocator != nullptr ? memory->allocator->mem_type : "?"));
    }
    frame.planes[p] = {std::move(storage), offset, plane.stride};
  }
  frame.lease = made.hold;
  PENSTOCK_TRY(validate(frame));
  return made;
}

}  // namespace penstock::gst
