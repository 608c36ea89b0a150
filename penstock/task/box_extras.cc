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
    PENSTOCK_TRY(take(made.masks_, made.mask_height_ * made.mask_width_));
  }
  return made;
}

std::vector<StoragePtr> ExtraStorages::storages() const {
  std::vector<StoragePtr> all;
  for (const StoragePtr& storage : {keypoints_, rotated_, masks_}) {
    if (storage) all.push_back(storage);
  }
  return all;
}

void ExtraStorages::gather(const Access& access, ItemValues values, const BoxModel& model,
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
  if (masks_) gather_masks(access, values, model, objects);
}

void ExtraStorages::gather_masks(const Access& access, ItemValues values, const BoxModel& model,
                                 std::span<const Candidate> objects) const {
  const std::size_t pixels = mask_height_ * mask_width_;
  const auto bytes = access.bytes(*masks_);
  auto* const levels = reinterpret_cast<std::uint8_t*>(bytes.data());
  const float scale_x = static_cast<float>(mask_width_) / static_cast<float>(model.width);
  const float scale_y = static_cast<float>(mask_height_) / static_cast<float>(model.height);
  const Prototypes prototypes{values[extras_.prototype_output], mask_width_, mask_height_};
  std::vector<float> coefficients(objects.size() * extras_.prototypes);
  std::vector<MaskJob> jobs;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const DetectionRecord& box = objects[i].record;
    const auto weights =
        std::span(coefficients).subspan(i * extras_.prototypes, extras_.prototypes);
    extras_.coefficients_of(values, static_cast<std::size_t>(objects[i].index), weights);
    jobs.push_back({.coefficients = weights,
                    .window = mask_window(
                        {box.x0 * scale_x, box.y0 * scale_y, box.x1 * scale_x, box.y1 * scale_y},
                        mask_width_, mask_height_),
                    .mask = {levels + i * pixels, pixels}});
  }
  fill_masks(prototypes, jobs);
}

Result<void> ExtraStorages::deliver(Device& device, const Fence& done, Decoded& decoded) const {
  const std::size_t count = decoded.block.count;
  if (keypoints_) {
    decoded.keypoints_per_object = extras_.keypoints;
    PENSTOCK_TRY(read(device, keypoints_, count * extras_.keypoints, done, decoded.keypoints));
  }
  if (rotated_) PENSTOCK_TRY(read(device, rotated_, count, done, decoded.rotated));
  if (masks_ && count > 0) {
    decoded.device.masks =
        Tensor{.name = "masks",
               .type = DataType::kUint8,
               .shape = {static_cast<std::int64_t>(count), static_cast<std::int64_t>(mask_height_),
                         static_cast<std::int64_t>(mask_width_)},
               .data = {.storage = masks_, .offset = 0, .size = count * mask_height_ * mask_width_},
               .ready = done};
  }
  return {};
}

}  // namespace penstock
