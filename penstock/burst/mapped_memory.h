// SPDX-License-Identifier: Apache-2.0
//
// MappedMemory: a burst's memory that came from elsewhere, checked and mapped. It can't shrink, its
// pages are there and stay, and the bytes can change at any time.
//
// BurstQuota counts what all bursts of a service have mapped, before anything is allocated for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/burst/burst_memory.h"
#include "penstock/memory/shared_mapping.h"

namespace penstock {

/// Thread-safe. A quota within another one takes from both.
class BurstQuota : public std::enable_shared_from_this<BurstQuota> {
 public:
  struct Limits {
    std::size_t slots = 1024;
    std::uint64_t bytes = std::uint64_t{1} << 30;
  };
  static std::shared_ptr<BurstQuota> create(Limits limits,
                                            std::shared_ptr<BurstQuota> within = nullptr) {
    return std::shared_ptr<BurstQuota>(new BurstQuota(limits, std::move(within)));
  }

  /// A slot and its bytes; given back when it goes.
  class [[nodiscard]] Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : quota_(std::exchange(other.quota_, nullptr)), bytes_(other.bytes_) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(quota_, other.quota_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() {
      if (quota_ != nullptr) quota_->give_back(bytes_);
    }

   private:
    friend BurstQuota;
    Share(std::shared_ptr<BurstQuota> quota, std::uint64_t bytes)
        : quota_(std::move(quota)), bytes_(bytes) {}
    std::shared_ptr<BurstQuota> quota_;
    std::uint64_t bytes_ = 0;
  };
  /// kExhausted, naming the limit.
  Result<Share> take(std::uint64_t bytes);

  std::size_t slots() const;
  std::uint64_t bytes() const;

 private:
  BurstQuota(Limits limits, std::shared_ptr<BurstQuota> within)
      : limits_(limits), within_(std::move(within)) {}
  Result<void> count(std::uint64_t bytes);
  void give_back(std::uint64_t bytes);

  const Limits limits_;
  const std::shared_ptr<BurstQuota> within_;
  mutable std::mutex mutex_;
  std::size_t slots_ = 0;
  std::uint64_t bytes_ = 0;
};

class MappedMemory {
 public:
  /// Closes the file in any case. kCorrupt for a file that breaks the rules (docs/design/burst.md),
  /// kUnsupported for another kind of memory, kExhausted.
  static Result<std::shared_ptr<MappedMemory>> map(BurstMemory memory, BurstQuota& quota);

  MemoryAccess access() const { return access_; }
  std::span<std::byte> bytes() const {
    return std::span(mapping_.data(), mapping_.size()).subspan(offset_);
  }

 private:
  MappedMemory(BurstQuota::Share share, SharedMapping mapping, std::size_t offset,
               MemoryAccess access)
      : share_(std::move(share)), mapping_(std::move(mapping)), offset_(offset), access_(access) {}

  BurstQuota::Share share_;
  SharedMapping mapping_;
  std::size_t offset_;
  MemoryAccess access_;
};

}  // namespace penstock
