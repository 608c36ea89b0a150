// SPDX-License-Identifier: Apache-2.0
#include "gst/latency.h"

#include <gtest/gtest.h>

#include "gst/gst_ptr.h"

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

TEST(Latency, GivenNoFrameRate_WhenAsked_ThenTheMaximumIsUnlimited) {
  const Reply got = reply(GST_MSECOND, 2 * GST_MSECOND, {.max_wait = 3 * GST_MSECOND});
  EXPECT_EQ(got.minimum, 4 * GST_MSECOND);
  EXPECT_EQ(got.maximum, GST_CLOCK_TIME_NONE);
}

}  // namespace
}  // namespace penstock::gst
