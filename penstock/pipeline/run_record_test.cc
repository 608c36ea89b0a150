// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/run_record.h"

#include <gtest/gtest.h>

#include <chrono>

namespace penstock {
namespace {

using std::chrono::milliseconds;

/// A source of 25 frames a second whose frames are analysed one by one.
class RunRecordTest : public testing::Test {
 protected:
  RunRecordTest() { clock_.advance(std::chrono::seconds(100)); }
  void analyse(int frames, milliseconds each, std::int64_t first_pts = 7'000'000'000) {
    for (int i = 0; i < frames; ++i) {
      const std::int64_t pts = first_pts < 0 ? -1 : first_pts + i * 40'000'000LL;
      record_.accept(1, pts, -1);
      clock_.advance(each);
      FrameResult result;
      result.pts_ns = pts;
      record_.add(result, {});
    }
  }

  ManualClock clock_;
  RunRecord record_{clock_};
};

TEST_F(RunRecordTest, GivenAModelSlowerThanTheStream_WhenItEnds_ThenANoteSaysByHowMuch) {
  analyse(100, milliseconds(100));
  // 100 x 0.1 s, for frames of which the last is due 99 x 0.04 s after the first.
  EXPECT_EQ(record_.behind(), milliseconds(10'000 - 3'960));
  record_.note_behind();
  ASSERT_EQ(record_.summary().notes.size(), 1u);
  EXPECT_EQ(record_.summary().notes[0],
            "analysis was 6.0 s behind the source at its end: the model is slower than the stream");
}

TEST_F(RunRecordTest, GivenAModelThatKeepsUp_WhenItEnds_ThenThereIsNoNote) {
  analyse(1000, milliseconds(40));
  EXPECT_EQ(record_.behind(), milliseconds(40));
  record_.note_behind();
  EXPECT_TRUE(record_.summary().notes.empty());
}

TEST_F(RunRecordTest, GivenTwoSecondsBehind_WhenItEnds_ThenOnlyMoreIsNoted) {
  analyse(50, milliseconds(40));
  clock_.advance(milliseconds(1960 - 40));
  analyse(1, milliseconds(40), 7'000'000'000 + 50 * 40'000'000LL);
  EXPECT_EQ(record_.behind(), milliseconds(1960));
  clock_.advance(milliseconds(40));
  analyse(1, milliseconds(40), 7'000'000'000 + 51 * 40'000'000LL);
  EXPECT_EQ(record_.behind(), milliseconds(2000));
  record_.note_behind();
  EXPECT_TRUE(record_.summary().notes.empty());
  clock_.advance(milliseconds(1));
  analyse(1, milliseconds(40), 7'000'000'000 + 52 * 40'000'000LL);
  record_.note_behind();
  EXPECT_EQ(record_.summary().notes.size(), 1u);
}

TEST_F(RunRecordTest, GivenFramesWithoutTimes_WhenTheyEnd_ThenNothingIsClaimed) {
  analyse(100, milliseconds(100), -1);
  EXPECT_FALSE(record_.behind());
  record_.note_behind();
  EXPECT_TRUE(record_.summary().notes.empty());
}

}  // namespace
}  // namespace penstock
