// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/frame_times.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

constexpr GstClockTime kNone = GST_CLOCK_TIME_NONE;
constexpr GstClockTime kMs = GST_MSECOND;

void expect_time(const FrameTimes::Time& time, GstClockTime pts, GstClockTime duration) {
  EXPECT_EQ(time.pts, pts);
  EXPECT_EQ(time.duration, duration);
}

TEST(FrameTimes, GivenCompleteTimes_WhenCompleted_ThenTheyStayAsTheyAre) {
  FrameTimes times;
  times.set_rate(25);
  expect_time(times.complete(100 * kMs, 33 * kMs), 100 * kMs, 33 * kMs);
  expect_time(times.complete(110 * kMs, 1), 110 * kMs, 1);
}

TEST(FrameTimes, GivenNoLengthAndARate_WhenCompleted_ThenTheRateGivesTheLength) {
  FrameTimes times;
  times.set_rate(50);
  expect_time(times.complete(0, kNone), 0, 20 * kMs);
  expect_time(times.complete(70 * kMs, 0), 70 * kMs, 20 * kMs);
}

TEST(FrameTimes, GivenNoLengthAndNoRate_WhenCompleted_ThenTheDistanceToTheFrameBeforeIsTheLength) {
  FrameTimes times;
  times.set_rate(0);
  expect_time(times.complete(55 * kMs, kNone), 55 * kMs, FrameTimes::kAssumedLength);
  expect_time(times.complete(65 * kMs, kNone), 65 * kMs, 10 * kMs);
  expect_time(times.complete(95 * kMs, kNone), 95 * kMs, 30 * kMs);
  // A step back says nothing about the length.
  expect_time(times.complete(80 * kMs, kNone), 125 * kMs, 30 * kMs);
}

TEST(FrameTimes, GivenPackedFrames_WhenCompleted_ThenTheirTimesGrowAtTheRate) {
  FrameTimes times;
  times.set_rate(25);
  expect_time(times.complete(0, kNone), 0, 40 * kMs);
  expect_time(times.complete(40 * kMs, kNone), 40 * kMs, 40 * kMs);
  expect_time(times.complete(40 * kMs, kNone), 80 * kMs, 40 * kMs);
  expect_time(times.complete(kNone, kNone), 120 * kMs, 40 * kMs);
  expect_time(times.complete(120 * kMs, kNone), 160 * kMs, 40 * kMs);
  expect_time(times.complete(300 * kMs, kNone), 300 * kMs, 40 * kMs);
}

TEST(FrameTimes, GivenATimeForTheFirstFrameOnly_WhenCompleted_ThenTheOthersFollowIt) {
  FrameTimes times;
  expect_time(times.complete(5 * kMs, kNone), 5 * kMs, 40 * kMs);
  expect_time(times.complete(kNone, kNone), 45 * kMs, 40 * kMs);
  expect_time(times.complete(kNone, kNone), 85 * kMs, 40 * kMs);
}

TEST(FrameTimes, GivenNoTimesAtAll_WhenCompleted_ThenTheyBeginAtTheStart) {
  FrameTimes times;
  times.set_start(1000 * kMs);
  times.set_rate(100);
  expect_time(times.complete(kNone, kNone), 1000 * kMs, 10 * kMs);
  expect_time(times.complete(kNone, kNone), 1010 * kMs, 10 * kMs);
}

TEST(FrameTimes, GivenATimeAfterAGuessedOne_WhenCompleted_ThenTheirDistanceIsNotTakenForALength) {
  FrameTimes times;
  expect_time(times.complete(0, kNone), 0, 40 * kMs);
  expect_time(times.complete(kNone, kNone), 40 * kMs, 40 * kMs);
  expect_time(times.complete(41 * kMs, kNone), 41 * kMs, 40 * kMs);
}

}  // namespace
}  // namespace penstock
