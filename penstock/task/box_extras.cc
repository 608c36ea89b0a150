// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/box_extras.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/task/kernels/mask_fill.h"

namespace penstock {
namespace {

Result<StoragePtr> room(Device& device, int max_objects, std::size_t bytes_each) {
  return device.allocate(static_cast<std::size_t>(max_objects) * bytes_each);
}

template <typename Record>
void write(const Access& access, const StoragePtr& storage, const std::vector<Record>& records) {
  if (records.empty()) return;
  std::memcpy(access.bytes(*storage).data(), records.data(), records.size() * sizeof(Record));
}

template <typename Record>
Result<void> read(Device& device, const StoragePtr& storage, std::size_t count, const Fence& done,
                  std::vector<Record>& records) {
  if (count == 0) return {};
  records.resize(count);
  const auto bytes = std::as_writable_bytes(std::span(records));
  return device.read_back(bytes, {.storage = storage, .offset = 0, .size = bytes.size()}, {done},
                          TransferPurpose::kMetadata);
}

}  // namespace

Result<void> check_budget(const BoxExtras& extras, std::span<const Shape> shapes, int max_objects) {
  if (!extras.coefficients_of) return {};
  const Shape& shape = shapes[extras.prototype_output];
  if (shape[2] < 0 || shape[3] < 0) return {};
  // The family has checked the sides, so the product does not overflow.
  const auto bytes = static_cast<std::size_t>(shape[2]) * static_cast<std::size_t>(shape[3]) *
                     static_cast<std::size_t>(max_objects);
  if (bytes <= kMaxMaskBytes) return {};
  return fail(
      ErrorKind::kExhausted,
      str_format("masks of {} objects from prototypes {} would take {} bytes, more than {}; "
                 "allow fewer objects",
                 max_objects, to_string(shape), bytes, kMaxMaskBytes));
}

Result<ExtraStorages> ExtraStorages::allocate(Device& device, const BoxExtras& extras,
                                              std::span<const Shape> shapes, int max_objects) {
  PENSTOCK_TRY(check_budget(extras, shapes, max_objects));
  ExtraStorages made(extras);
  const auto take = [&](StoragePtr& storage, std::size_t bytes_each) -> Result<void> {
    auto got = room(device, max_objects, bytes_each);
    if (!got) return std::unexpected(std::move(got).error());
    storage = *std::move(got);
    return {};
  };
  if (extras.keypoints_of) {
    PENSTOCK_TRY(take(made.keypoints_, extras.keypoints * sizeof(KeypointRecord)));
  }
  if (extras.rotated_of) PENSTOCK_TRY(take(made.rotated_, sizeof(RotatedRecord)));
  if (extras.coefficients_of) {
    const Shape& shape = shapes[extras.prototype_output];
    made.mask_height_ = static_cast<std::size_t>(shape[2]);
    made.mask_width_ = static_cast<std::size_t>(shape[3]);
    PENSTOCK_TRY(take(made.kept_, sizeof(Kept)));
  }
  return made;
}

std::vector<StoragePtr> ExtraStorages::storages() const {
  std::vector<StoragePtr> all;
  for (const StoragePtr& storage : {keypoints_, rotated_, kept_}) {
    if (storage) all.push_back(storage);
  }
  return all;
}

void ExtraStorages::gather(const Access& access, ItemValues values,
                           std::span<const Candidate> objects) const {
  const auto row = [&](std::size_t i) { return static_cast<std::size_t>(objects[i].index); };
  if (keypoints_) {
    std::vector<KeypointRecord> records(objects.size() * extras_.keypoints);
    for (std::size_t i = 0; i < objects.size(); ++i) {
      extras_.keypoints_of(values, row(i),
                           std::span(records).subspan(i * extras_.keypoints, extras_.keypoints));
    }
    write(access, keypoints_, records);
  }
  if (rotated_) {
    std::vector<RotatedRecord> records;
    for (std::size_t i = 0; i < objects.size(); ++i) {
      records.push_back(extras_.rotated_of(values, row(i)));
    }
    write(access, rotated_, records);
  }
  if (kept_) {
    std::vector<Kept> records;
    for (const Candidate& object : objects) records.push_back({object.record, object.index});
    write(access, kept_, records);
  }
}

Result<void> ExtraStorages::deliver(Device& device, const Fence& done, Decoded& decoded) const {
  const std::size_t count = decoded.block.count;
  if (keypoints_) {
    decoded.keypoints_per_object = extras_.keypoints;
    PENSTOCK_TRY(read(device, keypoints_, count * extras_.keypoints, done, decoded.keypoints));
  }
  if (rotated_) PENSTOCK_TRY(read(device, rotated_, count, done, decoded.rotated));
  return {};
}

void ExtraStorages::fill_masks_of(std::span<const Kept> objects, ItemValues values,
                                  const BoxModel& model, std::span<std::uint8_t> levels) const {
  const std::size_t pixels = mask_height_ * mask_width_;
  const float scale_x = static_cast<float>(mask_width_) / static_cast<float>(model.width);
  const float scale_y = static_cast<float>(mask_height_) / static_cast<float>(model.height);
  const Prototypes prototypes{values[extras_.prototype_output], mask_width_, mask_height_};
  std::vector<float> coefficients(objects.size() * extras_.prototypes);
  std::vector<MaskJob> jobs;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const DetectionRecord& box = objects[i].record;
    const auto weights =
        std::span(coefficients).subspan(i * extras_.prototypes, extras_.prototypes);
    extras_.coefficients_of(values, static_cast<std::size_t>(objects[i].row), weights);
    jobs.push_back({.coefficients = weights,
                    .window = mask_window(
                        {box.x0 * scale_x, box.y0 * scale_y, box.x1 * scale_x, box.y1 * scale_y},
                        mask_width_, mask_height_),
                    .mask = levels.subspan(i * pixels, pixels)});
  }
  fill_masks(prototypes, jobs);
}

Result<void> ExtraStorages::make_masks(Device& device, std::span<const Tensor> outputs,
                                       ReadItem item, const BoxModel& model, const Fence& done,
                                       Decoded& decoded) const {
  const std::size_t count = decoded.block.count;
  if (!kept_ || count == 0) return {};
  const std::size_t bytes = count * mask_height_ * mask_width_;
  auto masks = device.allocate(bytes);
  if (!masks) {
    return std::unexpected(
        std::move(masks).error().context(str_format("masks of {} objects", count)));
  }
  std::vector<Device::Owner> uses{*masks, kept_};
  std::vector<Fence> after{done};
  for (const Tensor& output : outputs) {
    uses.push_back(output.data.storage);
    after.push_back(output.ready);
  }
  auto filled = device.submit(
      std::move(uses), std::move(after),
      [extras = *this, item = std::move(item), model, count, bytes,
       target = masks->get()](const Access& access) -> Result<void> {
        std::vector<Kept> objects(count);
        std::memcpy(objects.data(), access.bytes(*extras.kept_).data(), count * sizeof(Kept));
        auto* const levels = reinterpret_cast<std::uint8_t*>(access.bytes(*target).data());
        extras.fill_masks_of(objects, item(access), model, {levels, bytes});
        return {};
      });
  if (!filled) return std::unexpected(std::move(filled).error());
  decoded.device.masks =
      Tensor{.name = "masks",
             .type = DataType::kUint8,
             .shape = {static_cast<std::int64_t>(count), static_cast<std::int64_t>(mask_height_),
                       static_cast<std::int64_t>(mask_width_)},
             .data = {.storage = *std::move(masks), .offset = 0, .size = bytes},
             .ready = *std::move(filled)};
  return {};
}

}  // namespace penstock
