// SPDX-License-Identifier: Apache-2.0
//
// Ends a soak test that hangs, and says where.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "penstock/base/clock.h"

namespace penstock {

/// One part of the test at a time has a deadline; past it the process ends with exit code 1.
class Watchdog {
 public:
  explicit Watchdog(Nanoseconds patience) : patience_(patience), thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// The next part begins, and its time.
  void begin(std::string part) {
    {
      const std::lock_guard lock(mutex_);
      part_ = std::move(part);
      deadline_ = Clock::system().now() + patience_;
      ++parts_;
    }
    changed_.notify_all();
  }
  /// What it does next.
  void note(const std::string& step) {
    const std::lock_guard lock(mutex_);
    part_ += ", " + step;
  }
  /// The part so far.
  std::string part() const {
    const std::lock_guard lock(mutex_);
    return part_;
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!over_) {
      const auto seen = parts_;
      const bool moved = Clock::system().wait_until(lock, changed_, deadline_,
                                                    [&] { return over_ || parts_ != seen; });
      if (moved) continue;
      std::printf("FAILED: hangs: %s\n", part_.c_str());
      std::fflush(stdout);
      std::_Exit(1);
    }
  }

  const Nanoseconds patience_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string part_;
  TimePoint deadline_ = TimePoint::max();
  std::uint64_t parts_ = 0;
  bool over_ = false;
  std::thread thread_;  // last: uses all of the above
};

}  // namespace penstock
