// SPDX-License-Identifier: Apache-2.0
#include "penstock/draw/compositor.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "penstock/base/checked.h"
#include "penstock/base/str_format.h"
#include "penstock/draw/kernels/raster.h"
#include "penstock/draw/kernels/yuv420_to_bgra.h"

namespace penstock {
namespace {

// Rows that are converted and then drawn on: 16 of a wide picture are 256 KiB, which the second
// level of any cache holds.
constexpr std::size_t kBlockRows = 16;

Yuv420Source source_of(const VideoFrame& frame, const Access& access) {
  Yuv420Source source;
  source.interleaved_chroma = frame.format == PixelFormat::kNv12;
  for (std::size_t p = 0; p < static_cast<std::size_t>(plane_count(frame.format)); ++p) {
    const Plane& plane = frame.planes[p];
    source.planes[p] =
        reinterpret_cast<const std::uint8_t*>(access.bytes(*plane.storage).data()) + plane.offset;
    source.strides[p] = plane.stride;
  }
  return source;
}

/// The last two dimensions are height and width, the one before them, if any, counts masks.
MaskPlanes planes_of(const std::optional<Tensor>& tensor, const Access& access) {
  if (!tensor) return {};
  const Shape& shape = tensor->shape;
  const auto side = [&](std::size_t from_end) {
    return static_cast<std::size_t>(shape[shape.size() - from_end]);
  };
  return {.data = reinterpret_cast<const std::uint8_t*>(access.bytes(tensor->data).data()),
          .count = shape.size() > 2 ? side(3) : 1,
          .height = side(2),
          .width = side(1)};
}

void compose(const VideoFrame& frame, const Drawing& drawing, const Access& access,
             std::uint8_t* output, std::size_t stride) {
  const BgraPicture picture{.data = output,
                            .stride = stride,
                            .width = static_cast<std::size_t>(frame.width),
                            .height = static_cast<std::size_t>(frame.height)};
  const Yuv420Source source = source_of(frame, access);
  const YuvCoefficients color = yuv_coefficients(frame.color.matrix, frame.color.range);
  const RasterSource commands{.commands = drawing.list.commands(),
                              .atlas = drawing.atlas.get(),
                              .masks = planes_of(drawing.masks, access),
                              .class_map = planes_of(drawing.class_map, access)};
  std::vector<std::uint16_t> scratch(bgra_scratch(picture.width));
  for (std::size_t row = 0; row < picture.height; row += kBlockRows) {
    const std::size_t end = std::min(row + kBlockRows, picture.height);
    yuv420_to_bgra(source, color, frame.color.site, picture, row, end, scratch);
    draw_rows(commands, picture, row, end);
  }
}

/// Runs the host kernels as a job of any device whose jobs run on the host.
class HostCompositor final : public Compositor {
 public:
  explicit HostCompositor(DevicePtr device) : device_(std::move(device)) {}

  Result<Fence> run(const FramePtr& frame, std::shared_ptr<const Drawing> drawing,
                    const StoragePtr& output, std::size_t stride,
                    std::vector<Device::Owner> owners) override;

 private:
  Result<void> check_device(const StoragePtr& storage, std::string_view what) const;
  Result<void> check(const FramePtr& frame, const Drawing* drawing, const StoragePtr& output,
                     std::size_t stride) const;

  const DevicePtr device_;
};

Result<void> HostCompositor::check_device(const StoragePtr& storage, std::string_view what) const {
  if (storage != nullptr && storage->device() == device_->id()) return {};
  return fail(ErrorKind::kInvalidArgument,
              str_format("{} is not in memory of device '{}'", what, to_string(device_->id())));
}

Result<void> HostCompositor::check(const FramePtr& frame, const Drawing* drawing,
                                   const StoragePtr& output, std::size_t stride) const {
  if (!frame || drawing == nullptr) return fail(ErrorKind::kInvalidArgument, "no frame or drawing");
  PENSTOCK_TRY(validate(*frame));
  PENSTOCK_TRY(check_device(frame->planes[0].storage, "the frame"));
  PENSTOCK_TRY(check_device(output, "the output"));
  if (drawing->masks) PENSTOCK_TRY(check_device(drawing->masks->data.storage, "the masks' tensor"));
  if (drawing->class_map) {
    PENSTOCK_TRY(check_device(drawing->class_map->data.storage, "the class map"));
  }
  const DrawList& list = drawing->list;
  if (list.width() != frame->width || list.height() != frame->height) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("the drawing is for {}x{} pixels, the frame has {}x{}", list.width(),
                           list.height(), frame->width, frame->height));
  }
  const std::size_t row = kBgraBytes * static_cast<std::size_t>(frame->width);
  const auto above = checked_product(stride, static_cast<std::size_t>(frame->height - 1));
  const auto bytes = above ? checked_sum(*above, row) : std::nullopt;
  if (stride < row || !bytes || *bytes > output->size()) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("an output of {} bytes with a stride of {} is too small for {}x{} BGRA",
                           output->size(), stride, frame->width, frame->height));
  }
  return {};
}

Result<Fence> HostCompositor::run(const FramePtr& frame, std::shared_ptr<const Drawing> drawing,
                                  const StoragePtr& output, std::size_t stride,
                                  std::vector<Device::Owner> owners) {
  PENSTOCK_TRY(check(frame, drawing.get(), output, stride));
  std::vector<Fence> after{frame->ready};
  owners.insert(owners.end(), {frame, drawing, output});
  for (const auto* tensor : {&drawing->masks, &drawing->class_map}) {
    if (!tensor->has_value()) continue;
    after.push_back((*tensor)->ready);
    owners.push_back((*tensor)->data.storage);
  }
  auto job = [source = frame.get(), drawn = drawing.get(), target = output.get(), stride,
              ledger = &device_->ledger()](const Access& access) -> Result<void> {
    compose(*source, *drawn, access, reinterpret_cast<std::uint8_t*>(access.bytes(*target).data()),
            stride);
    const auto pixels =
        static_cast<std::uint64_t>(source->width) * static_cast<std::uint64_t>(source->height);
    ledger->record(CopyClass::kSweep, "draw/compose", pixels * 3 / 2);
    return {};
  };
  return device_->submit(std::move(owners), std::move(after), std::move(job));
}

}  // namespace

Result<std::unique_ptr<Compositor>> Compositor::create(DevicePtr device) {
  if (!device) return fail(ErrorKind::kInvalidArgument, "drawing needs a device");
  switch (device->id().kind) {
    case DeviceKind::kCpu:
    case DeviceKind::kSim:
      return std::make_unique<HostCompositor>(std::move(device));
    case DeviceKind::kCuda:
    case DeviceKind::kHip:
      break;
  }
  return fail(ErrorKind::kUnsupported, str_format("no drawing kernel for device '{}' in this build",
                                                  to_string(device->id())));
}

}  // namespace penstock
