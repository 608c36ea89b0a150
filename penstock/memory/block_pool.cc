// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/block_pool.h"

#include <algorithm>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {

BlockPool::BlockPool(DeviceId id, std::unique_ptr<BlockSource> source, const DeviceOptions& options)
    : id_(id), source_(std::move(source)), options_(options) {}

BlockPool::~BlockPool() { close(); }

Result<std::size_t> BlockPool::block_size(std::size_t bytes) const {
  const std::size_t granule = source_->granule();
  // Compared before rounding up, which could overflow. An empty storage still has an address.
  if (bytes <= options_.memory_budget) {
    const std::size_t size = (std::max<std::size_t>(bytes, 1) + granule - 1) / granule * granule;
    if (size <= options_.memory_budget) return size;
  }
  return fail(ErrorKind::kExhausted,
              str_format("{}: cannot allocate {} bytes: the memory budget is {}; raise it",
                         to_string(id_), bytes, options_.memory_budget));
}

bool BlockPool::take_free(std::size_t size, Block& block) {
  const auto best = by_size_.lower_bound(size);
  // A block may exceed the request by a quarter: regions of interest of slightly different sizes
  // share blocks, and no small tensor sits on a frame's worth of budget.
  if (best == by_size_.end() || best->first - size > size / 4) return false;
  block = *best->second;
  pooled_bytes_ -= block.size;
  free_.erase(best->second);
  by_size_.erase(best);
  return true;
}

void BlockPool::drop_oldest(Free& dropped) {
  const auto oldest = free_.begin();
  const auto [first, last] = by_size_.equal_range(oldest->size);
  by_size_.erase(std::find_if(first, last, [&](const auto& e) { return e.second == oldest; }));
  pooled_bytes_ -= oldest->size;
  dropped.splice(dropped.end(), free_, oldest);
}

void BlockPool::destroy_all(const Free& blocks) {
  for (const Block& block : blocks) source_->destroy(block);
}

Result<Block> BlockPool::take(std::size_t bytes) {
  const Result<std::size_t> size = block_size(bytes);
  if (!size) return std::unexpected(size.error());
  Block block;
  Free dropped;
  bool is_reused = false;
  {
    const std::lock_guard lock(mutex_);
    is_reused = take_free(*size, block);
    if (!is_reused) {
      if (*size > options_.memory_budget - live_bytes_) {
        return fail(ErrorKind::kExhausted,
                    str_format("{}: cannot allocate {} bytes: {} of the memory budget of {} are in "
                               "use; raise it or keep fewer results",
                               to_string(id_), bytes, live_bytes_, options_.memory_budget));
      }
      while (pooled_bytes_ > options_.memory_budget - live_bytes_ - *size) drop_oldest(dropped);
      block.size = *size;
    }
    ++live_blocks_;
    live_bytes_ += block.size;
  }
  // Making and destroying blocks takes milliseconds of page faults, so the lock is not held.
  destroy_all(dropped);
  if (!is_reused) {
    Result<Block> made = source_->make(*size);
    if (!made) {
      const std::lock_guard lock(mutex_);
      --live_blocks_;
      live_bytes_ -= *size;
      return std::unexpected(
          made.error().context(str_format("{}: cannot allocate {} bytes", to_string(id_), bytes)));
    }
    block = *made;
  }
  source_->open(block, bytes);
  return block;
}

void BlockPool::give_back(const Block& block) {
  source_->poison(block);
  Free dropped;
  {
    const std::lock_guard lock(mutex_);
    --live_blocks_;
    live_bytes_ -= block.size;
    const auto at = free_.insert(free_.end(), block);
    by_size_.emplace(block.size, at);
    pooled_bytes_ += block.size;
    const std::size_t limit = closed_ ? 0 : options_.pool_limit;
    while (pooled_bytes_ > limit) drop_oldest(dropped);
  }
  destroy_all(dropped);
}

void BlockPool::close() {
  Free dropped;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(free_);
    by_size_.clear();
    pooled_bytes_ = 0;
  }
  destroy_all(dropped);
}

std::size_t BlockPool::live_blocks() const {
  const std::lock_guard lock(mutex_);
  return live_blocks_;
}

std::size_t BlockPool::live_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_bytes_;
}

std::size_t BlockPool::pooled_bytes() const {
  const std::lock_guard lock(mutex_);
  return pooled_bytes_;
}

}  // namespace penstock
