// SPDX-License-Identifier: Apache-2.0
//
// ExtraStorages: the device memory of what belongs to objects besides their boxes, from its
// allocation before the job to the compact read-back after it. Keypoints and turned boxes are read
// back; masks stay on the device (contract P03). Masks are large, so theirs is allocated when the
// number of objects is known, and filled by a second job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/memory/device.h"
#include "penstock/memory/storage.h"
#include "penstock/task/box_family.h"

namespace penstock {

/// Contract P04. No model has so many prototypes, or a prototype side so long (YOLO's at 2048 x
/// 2048 are 32 of 512 x 512).
inline constexpr std::int64_t kMaxPrototypes = 256;
inline constexpr std::int64_t kMaxPrototypeSide = 4096;
/// Masks of one frame: 300 of 640 x 640, with some room.
inline constexpr std::size_t kMaxMaskBytes = std::size_t{128} << 20;

/// kExhausted: masks of `max_objects` objects would not fit into kMaxMaskBytes. Sides of `shapes`
/// that are not fixed yet pass.
Result<void> check_budget(const BoxExtras& extras, std::span<const Shape> shapes, int max_objects);

/// One batch item's values of each output, inside a job.
using ReadItem = std::function<std::vector<std::span<const float>>(const Access&)>;

class ExtraStorages {
 public:
  /// Room for what is compact of `max_objects` objects. kExhausted when their masks would go over
  /// the budget, before anything is allocated.
  static Result<ExtraStorages> allocate(Device& device, const BoxExtras& extras,
                                        std::span<const Shape> shapes, int max_objects);

  /// For the job to keep; empty when there are no extras.
  std::vector<StoragePtr> storages() const;

  /// Inside the job: what is compact and belongs to `objects`, at most max_objects, in their order.
  void gather(const Access& access, ItemValues values, std::span<const Candidate> objects) const;

  /// After the job, whose fence is `done`: reads back what is compact, for decoded.block.count
  /// objects.
  Result<void> deliver(Device& device, const Fence& done, Decoded& decoded) const;

  /// After that: allocates the masks of these objects and submits the job that fills them from
  /// `outputs`, which it keeps alive.
  Result<void> make_masks(Device& device, std::span<const Tensor> outputs, ReadItem item,
                          const BoxModel& model, const Fence& done, Decoded& decoded) const;

 private:
  /// An object that was kept, from the first job to the second.
  struct Kept {
    DetectionRecord record;
    std::int32_t row;
  };

  explicit ExtraStorages(BoxExtras extras) : extras_(std::move(extras)) {}
  void fill_masks_of(std::span<const Kept> objects, ItemValues values, const BoxModel& model,
                     std::span<std::uint8_t> levels) const;

  BoxExtras extras_;
  StoragePtr keypoints_, rotated_, kept_;
  std::size_t mask_height_ = 0, mask_width_ = 0;
};

}  // namespace penstock
