// SPDX-License-Identifier: Apache-2.0
//
// BlockPool keeps a device's memory blocks: it hands out the best-fitting free block, makes a new
// one within the budget, and keeps what comes back up to the pool limit, dropping the longest
// unused first. Blocks may come back after their device is gone. Thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "penstock/base/error.h"
#include "penstock/memory/device.h"
#include "penstock/memory/shared_file.h"

namespace penstock {

struct Block {
  std::byte* address = nullptr;  ///< Handed out as the storage's identity.
  std::byte* bytes = nullptr;    ///< What jobs read and write; equals address on `cpu`.
  std::size_t size = 0;
  std::shared_ptr<SharedFile> file = nullptr;  ///< Of memory that other processes can map.
};

/// Where blocks come from, one a device kind. Thread-safe.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  /// `size` is a multiple of granule().
  virtual Result<Block> make(std::size_t size) = 0;
  virtual void destroy(const Block& block) = 0;
  virtual std::size_t granule() const = 0;
  /// A block is about to serve a storage of `size` bytes; a storage has let go of it.
  virtual void open(const Block& block, std::size_t size) = 0;
  virtual void poison(const Block& block) = 0;
};

class BlockPool {
 public:
  BlockPool(DeviceId id, std::unique_ptr<BlockSource> source, const DeviceOptions& options);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// kExhausted when live blocks leave no room in the budget.
  Result<Block> take(std::size_t bytes);
  void give_back(const Block& block);
  /// The device is gone: frees the pool, and from now on everything that comes back.
  void close();

  std::size_t live_blocks() const;
  std::size_t live_bytes() const;
  std::size_t pooled_bytes() const;

 private:
  using Free = std::list<Block>;

  Result<std::size_t> block_size(std::size_t bytes) const;
  bool take_free(std::size_t size, Block& block);
  void drop_oldest(Free& dropped);
  void destroy_all(const Free& blocks);

  const DeviceId id_;
  const std::unique_ptr<BlockSource> source_;
  const DeviceOptions options_;

  mutable std::mutex mutex_;
  Free free_;  // Longest unused first.
  std::multimap<std::size_t, Free::iterator> by_size_;
  std::size_t live_blocks_ = 0;
  std::size_t live_bytes_ = 0;
  std::size_t pooled_bytes_ = 0;
  bool closed_ = false;
};

}  // namespace penstock
