// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/fence.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

namespace penstock {
namespace {

using std::chrono::seconds;

TEST(Fence, GivenADefaultFence_WhenWaitedFor_ThenItHasPassed) {
  const Fence fence;
  EXPECT_TRUE(fence.has_passed());
  EXPECT_TRUE(fence.wait());
}

TEST(Fence, GivenASource_WhenSignalled_ThenEveryCopyPasses) {
  FenceSource source;
  const Fence fence = source.fence();
  const Fence copy = fence;
  EXPECT_FALSE(copy.has_passed());
  source.signal();
  EXPECT_TRUE(fence.has_passed());
  EXPECT_TRUE(copy.wait());
  EXPECT_TRUE(source.fence().has_passed());
}

TEST(Fence, GivenAFailure_WhenWaitedForTwice_ThenBothGetTheFirstOutcome) {
  FenceSource source;
  source.signal(fail(ErrorKind::kDevice, "launch failed"));
  source.signal();
  const Fence fence = source.fence();
  for (int i = 0; i < 2; ++i) {
    const auto outcome = fence.wait();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().kind(), ErrorKind::kDevice);
    EXPECT_EQ(outcome.error().message(), "launch failed");
  }
}

TEST(Fence, GivenAWaiter_WhenTheDeadlinePasses_ThenKDeadlineAndTheFenceIsStillOpen) {
  ManualClock clock;
  FenceSource source;
  Result<void> outcome;
  std::thread waiter(
      [&] { outcome = source.fence().wait(Deadline::after(clock, seconds(1)), clock); });
  clock.await_waiters(1);
  clock.advance(seconds(1));
  waiter.join();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind(), ErrorKind::kDeadline);
  EXPECT_FALSE(source.fence().has_passed());
}

TEST(Fence, GivenAWaiter_WhenSignalled_ThenItWakesThoughTimeStands) {
  ManualClock clock;
  FenceSource source;
  Result<void> outcome = fail(ErrorKind::kInternal, "not yet");
  std::thread waiter([&] { outcome = source.fence().wait(Deadline::never(), clock); });
  clock.await_waiters(1);
  source.signal();
  waiter.join();
  EXPECT_TRUE(outcome);
}

TEST(Fence, GivenAnUnsignalledSource_WhenItEnds_ThenTheFencePassesAsCancelled) {
  std::optional<FenceSource> source(std::in_place);
  const Fence fence = source->fence();
  source.reset();
  ASSERT_TRUE(fence.has_passed());
  EXPECT_EQ(fence.wait().error().kind(), ErrorKind::kCancelled);
}

TEST(Fence, GivenAnUnsignalledSource_WhenMoved_ThenItsFenceStaysOpenAndTheOverwrittenOnePasses) {
  FenceSource first;
  FenceSource second;
  const Fence of_first = first.fence();
  const Fence of_second = second.fence();
  first = std::move(second);
  EXPECT_EQ(of_first.wait(Deadline(TimePoint::min())).error().kind(), ErrorKind::kCancelled);
  EXPECT_FALSE(of_second.has_passed());
  FenceSource third(std::move(first));
  EXPECT_FALSE(of_second.has_passed());
  third.signal();
  EXPECT_TRUE(of_second.wait());
}

TEST(Fence, GivenCallbacks_WhenPassed_ThenEachRunsOnceWithTheOutcomeSet) {
  FenceSource source;
  const Fence fence = source.fence();
  int early = 0;
  fence.on_passed([&] { early += fence.has_passed() ? 1 : 100; });
  EXPECT_EQ(early, 0);
  source.signal();
  source.signal();
  EXPECT_EQ(early, 1);
  int late = 0;
  fence.on_passed([&] { ++late; });
  Fence().on_passed([&] { ++late; });
  EXPECT_EQ(late, 2);
}

}  // namespace
}  // namespace penstock
