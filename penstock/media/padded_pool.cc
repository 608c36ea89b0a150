// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/padded_pool.h"

#include <algorithm>
#include <utility>

namespace penstock {

Result<PaddedPool::Lent> PaddedPool::acquire(std::size_t bytes,
                                             const std::shared_ptr<const void>& geometry) {
  std::vector<Kept> dropped;  // Freed outside the lock.
  {
    const std::lock_guard lock(mutex_);
    // Another geometry will hardly come back: streams rarely change theirs.
    const auto others =
        std::ranges::partition(free_, [&](const Kept& kept) { return kept.geometry == geometry; });
    dropped.assign(std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
    free_.erase(others.begin(), others.end());
    if (!free_.empty()) {
      Kept kept = std::move(free_.back());
      free_.pop_back();
      kept.counted.reset();
      return lend(std::move(kept), true);
    }
  }
  dropped.clear();
  auto storage = device_->allocate(bytes);
  if (!storage) return std::unexpected(std::move(storage).error());
  return lend({.storage = *std::move(storage), .geometry = geometry}, false);
}

// The lent pointer shares nothing with the pool's own: its deleter is what brings the storage back,
// so there is no use count to poll.
// What all pools of the process keep: streams and workers have one each.
std::atomic<std::size_t> g_kept_bytes = 0;

PaddedPool::Counted::Counted(std::size_t wanted) {
  if (g_kept_bytes.fetch_add(wanted) + wanted > kKeptBytes) {
    g_kept_bytes.fetch_sub(wanted);
  } else {
    bytes = wanted;
  }
}
PaddedPool::Counted::~Counted() { g_kept_bytes.fetch_sub(bytes); }

PaddedPool::Lent PaddedPool::lend(Kept kept, bool is_padded) {
  auto written = std::make_shared<std::atomic<bool>>(is_padded);
  Storage* raw = kept.storage.get();
  StoragePtr storage(
      raw, [pool = shared_from_this(), kept = std::move(kept), written](Storage*) mutable {
        if (written->load()) pool->give_back(std::move(kept));
      });
  return {.storage = std::move(storage), .is_padded = is_padded, .written = std::move(written)};
}

void PaddedPool::give_back(Kept kept) {
  const std::lock_guard lock(mutex_);
  if (retired_ || free_.size() >= kKept) return;
  auto counted = std::make_unique<Counted>(kept.storage->size());
  if (counted->bytes == 0) return;
  kept.counted = std::move(counted);
  free_.push_back(std::move(kept));
}

void PaddedPool::retire() {
  std::vector<Kept> dropped;
  const std::lock_guard lock(mutex_);
  retired_ = true;
  dropped.swap(free_);
}

}  // namespace penstock
