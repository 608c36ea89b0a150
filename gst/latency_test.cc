// SPDX-License-Identifier: Apache-2.0
#include "gst/latency.h"

#include <gtest/gtest.h>

#include <chrono>

#include "gst/gst_ptr.h"
#include "gst/run_time.h"

namespace penstock::gst {
namespace {

struct Reply {
  gboolean live = FALSE;
  GstClockTime minimum = 0, maximum = 0;
};

Reply reply(GstClockTime upstream_min, GstClockTime upstream_max, const LatencyBasis& basis) {
  const GstPtr<GstQuery> query(gst_query_new_latency());
  gst_query_set_latency(query.get(), TRUE, upstream_min, upstream_max);
  add_latency(query.get(), basis);
  Reply result;
  gst_query_parse_latency(query.get(), &result.live, &result.minimum, &result.maximum);
  return result;
}

TEST(Latency, GivenAFrameRate_WhenAsked_ThenRunsAndOneFrameMoreAreTheMinimum) {
  const Reply got = reply(5 * GST_MSECOND, 100 * GST_MSECOND,
                          {.frame_duration = 40 * GST_MSECOND, .workers = 2, .frame_limit = 11});
  EXPECT_TRUE(got.live);
  EXPECT_EQ(got.minimum, (5 + 3 * 40) * GST_MSECOND);
  EXPECT_EQ(got.maximum, (100 + 11 * 40) * GST_MSECOND);
}

TEST(Latency, GivenAnIntervalAndABatchWait_WhenAsked_ThenBothCount) {
  const Reply got = reply(0, GST_CLOCK_TIME_NONE,
                          {.frame_duration = 10 * GST_MSECOND,
                           .workers = 2,
                           .interval = 3,
                           .max_wait = 7 * GST_MSECOND,
                           .frame_limit = 20});
  EXPECT_EQ(got.minimum, (7 * 10 + 7) * GST_MSECOND);
  EXPECT_EQ(got.maximum, GST_CLOCK_TIME_NONE);
}

TEST(Latency, GivenFewHeldFrames_WhenAsked_ThenTheMinimumIsNoMoreThanTheyLast) {
  const Reply got = reply(
      0, 0, {.frame_duration = 40 * GST_MSECOND, .workers = 4, .interval = 10, .frame_limit = 6});
  EXPECT_EQ(got.minimum, 240 * GST_MSECOND);
  EXPECT_EQ(got.maximum, 240 * GST_MSECOND);
}

TEST(Latency, GivenABatchWaitBeyondTheHeldFrames_WhenAsked_ThenItCountsInFull) {
  const Reply got = reply(0, 0,
                          {.frame_duration = 40 * GST_MSECOND,
                           .workers = 1,
                           .max_wait = 2 * GST_SECOND,
                           .frame_limit = 6});
  EXPECT_EQ(got.minimum, 2 * GST_SECOND + 2 * 40 * GST_MSECOND);
  EXPECT_EQ(got.maximum, 240 * GST_MSECOND) << "no more than that can be held";
}

TEST(Latency, GivenNoFrameRate_WhenAsked_ThenTheMeasuredRunCountsAndTheMaximumIsPassedOn) {
  const Reply got = reply(
      GST_MSECOND, 2 * GST_MSECOND,
      {.workers = 2, .max_wait = 3 * GST_MSECOND, .frame_limit = 10, .run = 20 * GST_MSECOND});
  EXPECT_EQ(got.minimum, (1 + 3 + 20) * GST_MSECOND);
  EXPECT_EQ(got.maximum, (2 + 10 * 20 / 2) * GST_MSECOND)
      << "two workers that keep up take a frame every 10 ms at most";
  const Reply endless = reply(GST_MSECOND, GST_CLOCK_TIME_NONE, {.run = GST_MSECOND});
  EXPECT_EQ(endless.maximum, GST_CLOCK_TIME_NONE);
}

TEST(Latency, GivenNoFrameRateAndNoRunYet_WhenAsked_ThenNothingIsMadeUp) {
  const Reply got = reply(GST_MSECOND, 2 * GST_MSECOND, {.max_wait = 3 * GST_MSECOND});
  EXPECT_EQ(got.minimum, 4 * GST_MSECOND);
  EXPECT_EQ(got.maximum, 2 * GST_MSECOND);
}

TEST(RunTime, GivenRuns_WhenTheyChange_ThenItIsToldRarelyAndOneThatWasSlowIsForgotten) {
  using std::chrono::milliseconds;
  RunTime time;
  EXPECT_EQ(time.told(), Nanoseconds(0));
  EXPECT_TRUE(time.add(milliseconds(400))) << "the first one, cold";
  EXPECT_NEAR(double(time.told().count()), 400e6, 4e6);
  int changes = 0;
  for (int n = 0; n < 1000; ++n) changes += time.add(milliseconds(40));
  EXPECT_EQ(changes, 1) << "when it is less than one in a hundred";
  EXPECT_NEAR(double(time.told().count()), 40e6, 0.4e6);
  for (int n = 0; n < 100'000; ++n) changes += time.add(milliseconds(80));
  EXPECT_EQ(changes, 2);
  EXPECT_NEAR(double(time.told().count()), 80e6, 0.8e6);
}

}  // namespace
}  // namespace penstock::gst
