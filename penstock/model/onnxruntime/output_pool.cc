// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/onnxruntime/output_pool.h"

#include "penstock/base/str_format.h"

namespace penstock {

std::shared_ptr<OutputPool> OutputPool::create(DevicePtr device, std::size_t budget) {
  return std::shared_ptr<OutputPool>(new OutputPool(std::move(device), budget));
}

Result<StoragePtr> OutputPool::acquire(std::size_t bytes) {
  std::vector<StoragePtr> dropped;  // freed outside the lock
  {
    const std::lock_guard lock(mutex_);
    if (auto found = free_.find(bytes); found != free_.end()) {
      StoragePtr storage = std::move(found->second.back());
      found->second.pop_back();
      if (found->second.empty()) free_.erase(found);
      pooled_ -= bytes;
      held_ += bytes;
      return lend(std::move(storage), bytes);
    }
    if (bytes > budget_ || held_ > budget_ - bytes) {
      return fail(ErrorKind::kExhausted,
                  str_format("{} bytes of results are wanted and {} are still held, of a budget of "
                             "{}: let go of earlier results",
                             bytes, held_, budget_));
    }
    // Free storage of other sizes makes room.
    while (!free_.empty() && held_ + pooled_ > budget_ - bytes) {
      const auto first = free_.begin();
      pooled_ -= first->first;
      dropped.push_back(std::move(first->second.back()));
      first->second.pop_back();
      if (first->second.empty()) free_.erase(first);
    }
    held_ += bytes;
  }
  dropped.clear();
  auto storage = device_->allocate(bytes);
  if (!storage) {
    const std::lock_guard lock(mutex_);
    held_ -= bytes;
    return std::unexpected(storage.error());
  }
  return lend(*std::move(storage), bytes);
}

// The lent pointer shares nothing with the pool's own: its deleter is what brings the storage back,
// so there is no use count to poll and no window in which a new owner could appear.
StoragePtr OutputPool::lend(StoragePtr storage, std::size_t bytes) {
  Storage* raw = storage.get();
  return StoragePtr(raw, [pool = shared_from_this(), storage = std::move(storage),
                          bytes](Storage*) mutable { pool->give_back(std::move(storage), bytes); });
}

void OutputPool::give_back(StoragePtr storage, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  held_ -= bytes;
  if (retired_) return;
  pooled_ += bytes;
  free_[bytes].push_back(std::move(storage));
}

void OutputPool::retire() {
  std::map<std::size_t, std::vector<StoragePtr>> dropped;
  const std::lock_guard lock(mutex_);
  retired_ = true;
  pooled_ = 0;
  dropped.swap(free_);
}

std::size_t OutputPool::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

std::size_t OutputPool::pooled_bytes() const {
  const std::lock_guard lock(mutex_);
  return pooled_;
}

}  // namespace penstock
