// SPDX-License-Identifier: Apache-2.0
//
// OutputPool hands out storage for a session's results and takes it back when the last owner of a
// result lets go, so that memory is reused only when nobody can see it any more (contract M04).
// Held and pooled bytes together stay within a budget; more is kExhausted. Thread-safe; outlives
// its session through the results that are still held.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/memory/device.h"

namespace penstock {

class OutputPool : public std::enable_shared_from_this<OutputPool> {
 public:
  static std::shared_ptr<OutputPool> create(DevicePtr device, std::size_t budget);

  /// `bytes` of device memory, recycled when a storage of exactly this size is free.
  Result<StoragePtr> acquire(std::size_t bytes);

  /// Frees what is pooled, now and as the results that are still held come back.
  void retire();

  std::size_t held_bytes() const;    ///< In results that somebody owns.
  std::size_t pooled_bytes() const;  ///< Free, for reuse.

 private:
  OutputPool(DevicePtr device, std::size_t budget) : device_(std::move(device)), budget_(budget) {}
  StoragePtr lend(StoragePtr storage, std::size_t bytes);
  void give_back(StoragePtr storage, std::size_t bytes);

  const DevicePtr device_;
  const std::size_t budget_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<StoragePtr>> free_;  ///< By size.
  std::size_t held_ = 0;
  bool retired_ = false;
  std::size_t pooled_ = 0;
};

}  // namespace penstock
