// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/back_off.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace penstock {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Chance in the middle: no jitter.
BackOff even() {
  return BackOff([] { return 0.5; });
}

TEST(BackOffTest, GivenFailures_WhenWaited_ThenWaitsDoubleUpToAMinuteAndStayThere) {
  BackOff back_off = even();
  for (const int expected : {1, 2, 4, 8, 16, 32, 60, 60, 60}) {
    EXPECT_EQ(back_off.next(), seconds(expected));
  }
}

TEST(BackOffTest, GivenChance_WhenWaited_ThenItIsAFifthOfTheStepEachWayAtMost) {
  BackOff low([] { return 0.0; });
  BackOff high([] { return 0.999999; });
  EXPECT_EQ(low.next(), milliseconds(800));
  EXPECT_NEAR(double(high.next().count()), 1.2e9, 1e4);
  EXPECT_EQ(low.slowest(), seconds(48));
  EXPECT_NEAR(double(high.slowest().count()), 72e9, 1e6);
}

TEST(BackOffTest, GivenChanceThatDiffers_WhenTwoWait_ThenTheyDoNotComeTogether) {
  BackOff one([] { return 0.1; });
  BackOff other([] { return 0.9; });
  EXPECT_NE(one.next(), other.next());
}

TEST(BackOffTest, GivenAConnectionThatLived_WhenItIsLost_ThenTheStepsBeginAnew) {
  BackOff back_off = even();
  for (int i = 0; i < 5; ++i) back_off.next();  // 1 .. 16 s
  back_off.lived(seconds(17));
  EXPECT_EQ(back_off.next(), seconds(1));
}

TEST(BackOffTest, GivenACameraThatDropsEverybodyAtOnce_WhenDialled_ThenWaitsGrowAllTheSame) {
  BackOff back_off = even();
  std::vector<Nanoseconds> waits;
  for (int i = 0; i < 4; ++i) {
    waits.push_back(back_off.next());
    back_off.lived(milliseconds(900));
  }
  EXPECT_EQ(waits, (std::vector<Nanoseconds>{seconds(1), seconds(2), seconds(4), seconds(8)}));
}

TEST(BackOffTest, GivenWhatOnlyAPersonCanMend_WhenWaited_ThenItIsTheSlowestAtOnce) {
  BackOff back_off = even();
  EXPECT_EQ(back_off.slowest(), seconds(60));
  EXPECT_EQ(back_off.next(), seconds(60));
}

}  // namespace
}  // namespace penstock
