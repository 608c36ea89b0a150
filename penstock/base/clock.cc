// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/clock.h"

#include <thread>

namespace penstock {
namespace {

class SystemClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }

  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv, TimePoint until,
                  const std::function<bool()>& ready) override {
    // max() would overflow on its way into a timespec, so it is an unlimited wait.
    if (until == TimePoint::max()) {
      cv.wait(lock, ready);
      return true;
    }
    return cv.wait_until(lock, until, ready);
  }
};

}  // namespace

Clock& Clock::system() {
  static SystemClock clock;
  return clock;
}

TimePoint ManualClock::now() const {
  const std::lock_guard guard(mutex_);
  return now_;
}

bool ManualClock::wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                             TimePoint until, const std::function<bool()>& ready) {
  const Waiter waiter{&cv, lock.mutex()};
  {
    const std::lock_guard guard(mutex_);
    waiting_.insert(waiter);
    changed_.notify_all();
  }
  bool is_ready = ready();
  while (!is_ready && now() < until) {
    cv.wait(lock);
    is_ready = ready();
  }
  const std::lock_guard guard(mutex_);
  waiting_.erase(waiting_.find(waiter));
  return is_ready;
}

void ManualClock::advance(Nanoseconds by) {
  std::unique_lock guard(mutex_);
  now_ += by;
  // A waiter that has read the old time but not yet begun to wait would miss a notification, unless
  // its own mutex is held while notifying. Waiters take mutex_ with theirs held, so taking theirs
  // here must not block: try, and let go of mutex_ between tries. While mutex_ is held no
  // registered waiter can leave, so its condition variable and mutex are alive.
  std::multiset<Waiter> pending = waiting_;
  while (true) {
    for (auto it = pending.begin(); it != pending.end();) {
      if (!waiting_.contains(*it)) {
        it = pending.erase(it);
      } else if (it->second->try_lock()) {
        it->first->notify_all();
        it->second->unlock();
        it = pending.erase(it);
      } else {
        ++it;
      }
    }
    if (pending.empty()) return;
    guard.unlock();
    std::this_thread::yield();
    guard.lock();
  }
}

int ManualClock::waiters() const {
  const std::lock_guard guard(mutex_);
  return static_cast<int>(waiting_.size());
}

void ManualClock::await_waiters(int count) const {
  std::unique_lock guard(mutex_);
  changed_.wait(guard, [&] { return static_cast<int>(waiting_.size()) >= count; });
}

}  // namespace penstock
