// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/onnxruntime/run_limit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>

namespace penstock {
namespace {

using namespace std::chrono_literals;

TEST(RunLimit, GivenWatches_WhenAllAreStopped_ThenEachIsStoppedOnceAndLaterOnesAtOnce) {
  ManualClock clock;
  RunLimit limit(clock, 10s);
  int first = 0, second = 0, late = 0;
  const auto a = limit.watch([&first] { ++first; });
  const auto b = limit.watch([&second] { ++second; });
  EXPECT_FALSE(limit.stopped());
  limit.stop_all();
  limit.stop_all();
  EXPECT_TRUE(limit.stopped());
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
  EXPECT_TRUE(a.has_passed());
  EXPECT_TRUE(b.has_passed());
  const auto c = limit.watch([&late] { ++late; });
  EXPECT_EQ(late, 1);
  EXPECT_TRUE(c.has_passed());
}

TEST(RunLimit, GivenAWatch_WhenItsTimeHasCome_ThenItIsStoppedOnceAndNotBefore) {
  ManualClock clock;
  RunLimit limit(clock, 10s);
  clock.await_waiters(1);
  std::atomic<int> first = 0, second = 0;
  const auto count = [](std::atomic<int>& stops) {
    return [&stops] {
      ++stops;
      stops.notify_all();
    };
  };
  const auto a = limit.watch(count(first));
  clock.advance(4s);
  const auto b = limit.watch(count(second));
  clock.advance(5s);
  clock.await_waiters(1);
  EXPECT_EQ(first, 0);
  EXPECT_FALSE(a.has_passed());
  clock.advance(1s);
  first.wait(0);
  EXPECT_TRUE(a.has_passed());
  EXPECT_EQ(second, 0);
  EXPECT_FALSE(b.has_passed());
  clock.advance(4s);
  second.wait(0);
  clock.advance(100s);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST(RunLimit, GivenAWatchThatHasGone_WhenItsTimeComes_ThenNothingIsStopped) {
  ManualClock clock;
  bool stopped = false;
  {
    RunLimit limit(clock, 10s);
    {
      const auto gone = limit.watch([&] { stopped = true; });
      clock.advance(9s);
    }
    const auto other = limit.watch([] {});
    clock.await_waiters(1);
    clock.advance(5s);
  }
  EXPECT_FALSE(stopped);
}

}  // namespace
}  // namespace penstock
