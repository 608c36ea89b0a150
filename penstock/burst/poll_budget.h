// SPDX-License-Identifier: Apache-2.0
//
// How long to poll before sleeping (contract X06). Polling pays where the peer answers within the
// window, and costs a core where it does not: so it stops after some windows in vain, is tried
// again now and then, and is never done by more threads than there are spare cores.
//
//   const PollBudget::Turn turn = budget.next();
//   bool slept = false;
//   const auto came = receive_packet(reader, deadline,
//                                    {.poll_window = turn.window(), .slept = &slept});
//   budget.note(turn, slept);
//
// One per waiting thread; only the count of pollers is shared.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "penstock/base/clock.h"
#include "penstock/base/usable_cores.h"

namespace penstock {

class PollBudget {
 public:
  /// In vain in a row before it stops, and how many waits later it is tried again.
  static constexpr std::uint32_t kPatience = 8;
  static constexpr std::uint32_t kRetryEvery = 64;

  explicit PollBudget(Nanoseconds window) : window_(window) {}

  /// The right to poll once; its place is free again when it goes.
  class [[nodiscard]] Turn {
   public:
    Turn() = default;
    explicit Turn(Nanoseconds window) : window_(window) {}
    Turn(Turn&& other) noexcept : window_(std::exchange(other.window_, Nanoseconds(0))) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (window_ > Nanoseconds(0)) pollers().fetch_sub(1, std::memory_order_relaxed);
    }
    Nanoseconds window() const { return window_; }

   private:
    Nanoseconds window_{0};
  };

  Turn next() {
    if (window_ <= Nanoseconds(0)) return {};
    if (in_vain_ >= kPatience && ++skipped_ % kRetryEvery != 0) return {};
    if (pollers().fetch_add(1, std::memory_order_relaxed) >= most_pollers()) {
      pollers().fetch_sub(1, std::memory_order_relaxed);
      return {};
    }
    return Turn(window_);
  }

  /// Whether the wait in which `turn` was used ended in sleep.
  void note(const Turn& turn, bool slept) {
    if (turn.window() <= Nanoseconds(0)) return;
    in_vain_ = slept ? std::min(in_vain_ + 1, kPatience) : 0;
  }

 private:
  static std::atomic<int>& pollers() {
    static std::atomic<int> count{0};
    return count;
  }
  /// One core stays for those who are waited for.
  static int most_pollers() {
    static const int most = std::max(1, usable_cores() - 1);
    return most;
  }

  const Nanoseconds window_;
  std::uint32_t in_vain_ = 0;
  std::uint32_t skipped_ = 0;
};

}  // namespace penstock
