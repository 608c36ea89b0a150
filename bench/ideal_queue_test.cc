// SPDX-License-Identifier: Apache-2.0
#include "bench/ideal_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::bench {
namespace {

TimePoint at(int ms) { return TimePoint(Milliseconds(ms)); }

// Percentiles are upper edges of buckets, 1 % wide.
void expect_about(Nanoseconds value, Nanoseconds wanted) {
  EXPECT_GE(value, wanted);
  EXPECT_LE(value, wanted + wanted / 50);
}

TEST(IdealQueue, GivenFramesApart_WhenQueued_ThenLatencyIsTheWork) {
  expect_about(ideal_queue_p95({{at(0), Milliseconds(40)}, {at(100), Milliseconds(40)}}, 1),
               Milliseconds(40));
}

TEST(IdealQueue, GivenAFrameWhileBusy_WhenQueued_ThenItWaitsForTheFirstFreeWorker) {
  const std::vector<Arrival> three{
      {at(20), Milliseconds(50)}, {at(0), Milliseconds(100)}, {at(10), Milliseconds(60)}};
  // One worker: done at 100, 160, 210. Two: the third begins at 70, and is done at 120.
  expect_about(ideal_queue_p95(three, 1), Milliseconds(190));
  expect_about(ideal_queue_p95(three, 2), Milliseconds(100));
}

TEST(IdealQueue, GivenAFrameThatDoesNotCount_WhenQueued_ThenOthersWaitForItAllTheSame) {
  expect_about(ideal_queue_p95({{at(0), Milliseconds(500), false}, {at(100), Milliseconds(10)}}, 1),
               Milliseconds(410));
}

TEST(IdealQueue, GivenNoFrame_WhenQueued_ThenZero) {
  EXPECT_EQ(ideal_queue_p95({}, 2), Nanoseconds(0));
}

}  // namespace
}  // namespace penstock::bench
