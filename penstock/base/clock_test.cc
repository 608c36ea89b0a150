// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/clock.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "penstock/base/deadline.h"

namespace penstock {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

// One thread that waits on a clock, to be driven by the test.
class Sleeper {
 public:
  Sleeper(Clock& clock, TimePoint until)
      : thread_([this, &clock, until] {
          std::unique_lock lock(mutex_);
          result_ = clock.wait_until(lock, cv_, until, [this] { return ready_; });
        }) {}
  void make_ready() {
    const std::lock_guard lock(mutex_);
    ready_ = true;
    cv_.notify_all();
  }
  bool join() {
    thread_.join();
    return result_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable cv_;
  bool ready_ = false;
  bool result_ = false;
  std::thread thread_;
};

TEST(ManualClock, GivenAWaiter_WhenTimeReachesItsLimit_ThenItReturnsNotReady) {
  ManualClock clock;
  Sleeper sleeper(clock, clock.now() + seconds(10));
  clock.await_waiters(1);
  clock.advance(seconds(9));
  EXPECT_EQ(clock.waiters(), 1);
  clock.advance(seconds(1));
  EXPECT_FALSE(sleeper.join());
  EXPECT_EQ(clock.waiters(), 0);
}

TEST(ManualClock, GivenAWaiter_WhenItBecomesReady_ThenItReturnsReadyThoughTimeStands) {
  ManualClock clock;
  Sleeper limited(clock, clock.now() + seconds(10));
  Sleeper unlimited(clock, TimePoint::max());
  clock.await_waiters(2);
  limited.make_ready();
  unlimited.make_ready();
  EXPECT_TRUE(limited.join());
  EXPECT_TRUE(unlimited.join());
}

// advance() races with the waiter's way into its wait: a notification lost there would hang.
TEST(ManualClock, GivenManyRaces_WhenAdvancing_ThenNoWakeUpIsLost) {
  ManualClock clock;
  for (int i = 0; i < 2000; ++i) {
    Sleeper sleeper(clock, clock.now() + nanoseconds(1));
    clock.await_waiters(1);
    clock.advance(nanoseconds(1));
    EXPECT_FALSE(sleeper.join());
  }
}

TEST(SystemClock, GivenALimitInThePast_WhenWaiting_ThenItReturnsAtOnce) {
  Clock& clock = Clock::system();
  std::mutex mutex;
  std::condition_variable cv;
  std::unique_lock lock(mutex);
  EXPECT_FALSE(clock.wait_until(lock, cv, clock.now() - seconds(1), [] { return false; }));
  EXPECT_TRUE(clock.wait_until(lock, cv, clock.now() - seconds(1), [] { return true; }));
}

TEST(SystemClock, GivenAnUnlimitedWait_WhenNotified_ThenItReturnsReady) {
  Sleeper sleeper(Clock::system(), TimePoint::max());
  sleeper.make_ready();
  EXPECT_TRUE(sleeper.join());
}

TEST(Deadline, GivenAClock_WhenTimePasses_ThenTheDeadlinePassesAtItsTime) {
  ManualClock clock;
  const Deadline deadline = Deadline::after(clock, seconds(2));
  clock.advance(seconds(2) - nanoseconds(1));
  EXPECT_FALSE(deadline.passed(clock));
  clock.advance(nanoseconds(1));
  EXPECT_TRUE(deadline.passed(clock));
  EXPECT_FALSE(Deadline::never().passed(clock));
}

}  // namespace
}  // namespace penstock
