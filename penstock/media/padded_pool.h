// SPDX-License-Identifier: Apache-2.0
//
// PaddedPool keeps a preprocessor's last tensors with their padding in place, so that the next of
// the same geometry only gets its picture. A tensor comes back when its last owner lets go, and
// only if its padding was written; nobody ever sees one that somebody else still holds (contract
// V16). A few are kept, the device's own pool has the rest.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "penstock/memory/device.h"

namespace penstock {

class PaddedPool : public std::enable_shared_from_this<PaddedPool> {
 public:
  static constexpr std::size_t kKept = 2;
  static constexpr std::size_t kKeptBytes = std::size_t{256} << 20;  ///< Of all pools together.

  static std::shared_ptr<PaddedPool> create(DevicePtr device) {
    return std::shared_ptr<PaddedPool>(new PaddedPool(std::move(device)));
  }

  struct Lent {
    StoragePtr storage;
    bool is_padded = false;  ///< For the geometry that was asked for.
    /// To be set when the padding has been written.
    std::shared_ptr<std::atomic<bool>> written;
  };
  /// `geometry` is compared by address and kept alive with what is pooled.
  Result<Lent> acquire(std::size_t bytes, const std::shared_ptr<const void>& geometry);

  /// Frees what is pooled, now and as what is held comes back.
  void retire();

 private:
  /// Its part of kKeptBytes; 0 bytes when there was no room.
  struct Counted {
    explicit Counted(std::size_t wanted);
    ~Counted();
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    std::size_t bytes = 0;
  };
  struct Kept {
    StoragePtr storage;
    std::shared_ptr<const void> geometry;
    std::unique_ptr<Counted> counted{};  ///< While it is pooled.
  };

  explicit PaddedPool(DevicePtr device) : device_(std::move(device)) {}
  Lent lend(Kept kept, bool is_padded);
  void give_back(Kept kept);

  const DevicePtr device_;
  std::mutex mutex_;
  std::vector<Kept> free_;
  bool retired_ = false;
};

}  // namespace penstock
