// SPDX-License-Identifier: Apache-2.0
//
// The time seam. All intervals, time-outs and latencies go through a Clock, so that tests decide
// when time passes and never sleep. SystemClock is CLOCK_MONOTONIC; wall-clock time is only ever a
// label.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

namespace penstock {

using Nanoseconds = std::chrono::nanoseconds;
using Milliseconds = std::chrono::milliseconds;
using TimePoint = std::chrono::steady_clock::time_point;

class Clock {
 public:
  virtual ~Clock() = default;

  virtual TimePoint now() const = 0;

  /// Waits on `cv` with `lock` held until `ready()` or `until`; returns ready(). TimePoint::max()
  /// waits without limit. Whoever changes what ready() reads must notify `cv`.
  virtual bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                          TimePoint until, const std::function<bool()>& ready) = 0;

  /// The process's monotonic clock. Stateless, safe from every thread.
  static Clock& system();
};

/// A clock that stands still until advance(). Waiters wake when their time has come. Thread-safe.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override;
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv, TimePoint until,
                  const std::function<bool()>& ready) override;
  /// Not to be called with a waiter's mutex held.
  void advance(Nanoseconds by);

  /// Number of threads inside wait_until, to synchronise a test with the code it drives.
  int waiters() const;
  /// Blocks the test until at least `count` threads wait.
  void await_waiters(int count) const;

 private:
  using Waiter = std::pair<std::condition_variable*, std::mutex*>;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  TimePoint now_{};
  std::multiset<Waiter> waiting_;
};

}  // namespace penstock
