// SPDX-License-Identifier: Apache-2.0
//
// Memory for the outputs of one burst: files that its service has mapped, which serve again when
// nobody holds them any more, within a budget. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/str_format.h"
#include "penstock/memory/shared_file.h"
#include "penstock/memory/storage.h"

namespace penstock {

/// Bytes of outputs alive at once, of all bursts of a session.
class OutputBudget {
 public:
  explicit OutputBudget(std::size_t bytes) : bytes_(bytes) {}
  bool take(std::size_t bytes) {
    std::size_t used = used_;
    do {
      if (bytes > bytes_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return true;
  }
  void give_back(std::size_t bytes) { used_ -= bytes; }

 private:
  const std::size_t bytes_;
  std::atomic<std::size_t> used_{0};
};

class OutputPool : public std::enable_shared_from_this<OutputPool> {
 public:
  static constexpr std::size_t kMostFree = 64;

  explicit OutputPool(std::shared_ptr<OutputBudget> budget) : budget_(std::move(budget)) {}

  /// An output on loan: `cpu` storage of `size` bytes of a file.
  class Loan final : public Storage {
   public:
    Loan(std::shared_ptr<OutputPool> pool, std::shared_ptr<SharedFile> file, std::size_t size)
        : pool_(std::move(pool)), file_(std::move(file)), size_(size) {}
    ~Loan() override {
      pool_->budget_->give_back(file_->size());
      if (goes_back_) pool_->give_back(std::move(file_));
    }
    DeviceId device() const override { return {DeviceKind::kCpu, 0}; }
    std::size_t size() const override { return size_; }
    std::span<std::byte> host_bytes() override { return file_->bytes().first(size_); }
    std::uintptr_t address() const override {
      return reinterpret_cast<std::uintptr_t>(file_->bytes().data());
    }
    // No shared_file(): it went to one service, and goes to no other.
    const std::shared_ptr<SharedFile>& file() const { return file_; }
    /// Somebody may write to it yet: it is let go of, and serves nobody again.
    void spoil() { goes_back_ = false; }

   private:
    const std::shared_ptr<OutputPool> pool_;
    std::shared_ptr<SharedFile> file_;
    const std::size_t size_;
    bool goes_back_ = true;
  };

  /// kExhausted: earlier outputs hold the budget.
  Result<std::shared_ptr<Loan>> take(std::size_t size) {
    auto file = find(size);
    if (file == nullptr) {
      auto made = SharedFile::create(std::max<std::size_t>(size, 1), MapAccess::kReadWrite);
      if (!made) return std::unexpected(std::move(made).error());
      file = std::move(*made);
    }
    if (!budget_->take(file->size())) {
      give_back(std::move(file));
      return fail(
          ErrorKind::kExhausted,
          str_format("earlier results hold the output budget; {} bytes more are not there", size));
    }
    return std::make_shared<Loan>(shared_from_this(), std::move(file), size);
  }

 private:
  /// The smallest that is large enough, and at most twice as large as needed.
  std::shared_ptr<SharedFile> find(std::size_t size) {
    const std::lock_guard lock(mutex_);
    auto best = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      const std::size_t has = (*it)->size();
      if (has < size || has > 2 * size + 8192) continue;
      if (best == free_.end() || has < (*best)->size()) best = it;
    }
    if (best == free_.end()) return nullptr;
    auto file = std::move(*best);
    free_.erase(best);
    return file;
  }
  void give_back(std::shared_ptr<SharedFile> file) {
    std::shared_ptr<SharedFile> oldest;  // Goes after the lock: its going is told to the service.
    const std::lock_guard lock(mutex_);
    if (free_.size() >= kMostFree) {
      oldest = std::move(free_.front());
      free_.erase(free_.begin());
    }
    free_.push_back(std::move(file));
  }

  const std::shared_ptr<OutputBudget> budget_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<SharedFile>> free_;
};

}  // namespace penstock
