// SPDX-License-Identifier: Apache-2.0
//
// OutputSlots bounds the frames that an element has made and that somebody still has (contract
// W02): one lease a frame, given back when the last copy of its memory goes.
//
//   const auto slot = slots->acquire([&] { post_warning(...); });
//   if (slot == nullptr) return GST_FLOW_FLUSHING;
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

#include "penstock/base/clock.h"
#include "penstock/memory/fence.h"

namespace penstock::gst {

/// Thread-safe. Leases may outlive whoever asked for them.
class OutputSlots : public std::enable_shared_from_this<OutputSlots> {
 public:
  static constexpr std::size_t kSlots = 4;
  /// Waiting for so long is told once, and goes on.
  static constexpr Nanoseconds kPatience = std::chrono::seconds(1);

  using Lease = std::shared_ptr<const void>;

  explicit OutputSlots(Clock& clock = Clock::system()) : clock_(clock) {}

  /// Waits until fewer than kSlots are held. Null when interrupted. `on_late` is called without a
  /// lock.
  Lease acquire(const std::function<void()>& on_late);
  /// Waits for device work; false when interrupted before it passed. The work goes on, and keeps
  /// what it uses.
  bool await(const Fence& fence);

  /// Makes both fail, now and until resume().
  void interrupt();
  void resume();
  /// As interrupt(), and no resume() undoes it: a flush may end while the element stops.
  void end();

  std::size_t held() const;

 private:
  void give_back();

  Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t held_ = 0;
  bool interrupted_ = false;
  bool ended_ = false;
};

}  // namespace penstock::gst
