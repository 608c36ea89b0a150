// SPDX-License-Identifier: Apache-2.0
//
// RunLimit ends work of the engine that takes too long (contract M06): a thread that calls `stop`
// when the limit has passed since watch(), unless the Watch has gone by then.
//
//   RunLimit limit(Clock::system(), std::chrono::seconds(60));
//   const auto watch = limit.watch([&] { api.RunOptionsSetTerminate(options); });
//   status = run();                       // as usual
//   if (watch.has_passed()) ...           // it was told to stop
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "penstock/base/clock.h"

namespace penstock {

/// Thread-safe; outlives its watches.
class RunLimit {
 public:
  RunLimit(Clock& clock, Nanoseconds limit);
  ~RunLimit();
  RunLimit(const RunLimit&) = delete;
  RunLimit& operator=(const RunLimit&) = delete;

  class Watch;
  /// `stop` is called at most once, on the limit's thread or that of stop_all(), and never after
  /// the Watch has gone.
  [[nodiscard]] Watch watch(std::function<void()> stop);

  /// Calls `stop` of every watch there is, and of every later one at once. Thread-safe.
  void stop_all();
  /// True after stop_all().
  bool stopped() const;

  Nanoseconds limit() const { return limit_; }

 private:
  struct Entry {
    TimePoint until;
    std::function<void()> stop;
    bool passed = false;
  };
  using Entries = std::list<Entry>;

  void work();
  void end(Entries::iterator entry);
  bool has_passed(Entries::const_iterator entry) const;

  Clock& clock_;
  const Nanoseconds limit_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Entries waiting_;  ///< In the order in which they began, which is that of their ends.
  Entries passed_;
  bool ends_ = false;
  bool stopped_ = false;
  std::thread thread_;
};

class RunLimit::Watch {
 public:
  Watch(RunLimit& limit, Entries::iterator entry) : limit_(limit), entry_(entry) {}
  ~Watch() { limit_.end(entry_); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  bool has_passed() const { return limit_.has_passed(entry_); }

 private:
  RunLimit& limit_;
  const Entries::iterator entry_;
};

}  // namespace penstock
