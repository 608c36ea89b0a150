// SPDX-License-Identifier: Apache-2.0
//
// BoundedQueue is a mutex-protected FIFO for any number of producers and consumers that never holds
// more than its capacity. A full queue either refuses (try_push) or blocks (push); closing wakes
// everybody: pushes fail, pops drain what is left and then fail.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "penstock/base/clock.h"
#include "penstock/base/deadline.h"

namespace penstock {

enum class PushResult {
  kPushed,
  kFull,    ///< try_push: no room; push: no room until the deadline.
  kClosed,  ///< close() was called.
};

template <typename T>
class BoundedQueue {
 public:
  /// `capacity` >= 1. `clock` must outlive the queue.
  explicit BoundedQueue(std::size_t capacity, Clock& clock = Clock::system())
      : capacity_(capacity), clock_(clock) {}

  /// On kFull and kClosed `item` is left untouched.
  PushResult try_push(T&& item) { return push(std::move(item), Deadline(TimePoint::min())); }

  PushResult push(T&& item, Deadline deadline = Deadline::never()) {
    std::unique_lock lock(mutex_);
    const auto room = [this] { return closed_ || items_.size() < capacity_; };
    if (!room() && (deadline.at() == TimePoint::min() ||
                    !clock_.wait_until(lock, not_full_, deadline.at(), room))) {
      return PushResult::kFull;
    }
    if (closed_) return PushResult::kClosed;
    items_.push_back(std::move(item));
    not_empty_.notify_one();
    return PushResult::kPushed;
  }

  /// Nothing when the deadline passed, or when the queue is closed and empty.
  std::optional<T> pop(Deadline deadline = Deadline::never()) {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return closed_ || !items_.empty(); };
    if (!ready() && !clock_.wait_until(lock, not_empty_, deadline.at(), ready)) return std::nullopt;
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    not_full_.notify_one();
    return item;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    not_empty_.notify_all();
    not_full_.notify_all();
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }
  std::size_t capacity() const { return capacity_; }

 private:
  const std::size_t capacity_;
  Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable not_empty_;
  std::condition_variable not_full_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace penstock
