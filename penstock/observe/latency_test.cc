// SPDX-License-Identifier: Apache-2.0
#include "penstock/observe/latency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

namespace penstock {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;

TEST(LatencyHistogram, GivenNothing_WhenRead_ThenZero) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.percentile(0.5), Nanoseconds::zero());
  EXPECT_TRUE(histogram.buckets().empty());
}

// Oracle: the sorted values themselves.
TEST(LatencyHistogram, GivenValuesOverTheWholeRange_WhenRead_ThenPercentilesAreWithinOnePercent) {
  LatencyHistogram histogram;
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(3.0, 12.0);  // 1 us .. 1000 s in ns.
  std::vector<std::int64_t> values;
  for (int i = 0; i < 20000; ++i) {
    values.push_back(static_cast<std::int64_t>(std::pow(10.0, exponent(random))));
    histogram.record(Nanoseconds(values.back()));
  }
  std::sort(values.begin(), values.end());
  EXPECT_EQ(histogram.count(), values.size());
  for (const double quantile : {0.0, 0.001, 0.1, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0}) {
    const auto rank = std::max(1.0, std::ceil(quantile * static_cast<double>(values.size())));
    const double exact = static_cast<double>(values[static_cast<std::size_t>(rank) - 1]);
    const double reported = static_cast<double>(histogram.percentile(quantile).count());
    EXPECT_GE(reported, exact) << quantile;
    EXPECT_LE(reported, exact * 1.01) << quantile;
  }
}

// Every power of two is where a bucket mistake would show.
TEST(LatencyHistogram, GivenOneValue_WhenRead_ThenItsBucketEndsJustAboveIt) {
  for (int bit = 10; bit < 40; ++bit) {
    for (const std::int64_t offset : {-1, 0, 1}) {
      const std::int64_t value = (std::int64_t{1} << bit) + offset;
      LatencyHistogram histogram;
      histogram.record(Nanoseconds(value));
      const std::int64_t upper = histogram.percentile(1.0).count();
      EXPECT_GT(upper, value);
      EXPECT_LE(static_cast<double>(upper), static_cast<double>(value) * 1.01);
    }
  }
}

TEST(LatencyHistogram, GivenTimesOutsideTheRange_WhenRecorded_ThenTheyCountAtItsEnds) {
  LatencyHistogram histogram;
  histogram.record(Nanoseconds(-5));
  histogram.record(Nanoseconds(0));
  histogram.record(hours(24 * 365));
  const auto buckets = histogram.buckets();
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].count, 2u);
  EXPECT_LT(buckets[0].upper, microseconds(1));
  EXPECT_EQ(buckets[1].count, 1u);
  EXPECT_EQ(buckets[1].upper.count(), std::int64_t{1} << 40);
}

TEST(LatencyHistogram, GivenSeveralThreads_WhenRecording_ThenNothingIsLost) {
  LatencyHistogram histogram;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&histogram] {
      for (int i = 0; i < 1000; ++i) histogram.record(microseconds(i));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(histogram.count(), 4000u);
}

}  // namespace
}  // namespace penstock
