// SPDX-License-Identifier: Apache-2.0
#include "penstock/observe/latency_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace penstock {
namespace {

using std::chrono::milliseconds;

class LatencyBookTest : public ::testing::Test {
 protected:
  /// The figures of `stream` in `stage`; none: no frames.
  LatencyFigures row(const std::string& stage, const std::string& stream) const {
    for (const LatencyFigures& figures : book_.figures()) {
      if (figures.stage == stage && figures.stream == stream) return figures;
    }
    return {};
  }
  const void* memory(std::size_t which) const { return &memories_[which]; }

  ManualClock clock_;
  LatencyBook book_{clock_};
  std::array<int, 16> memories_{};
};

TEST_F(LatencyBookTest, GivenFramesOfTwoStreams_WhenTheyLeaveInAnotherOrder_ThenEachHasItsOwnTime) {
  auto* const stage = book_.stage("infer");
  book_.arrive(stage, {.pts_ns = 0, .memory = memory(0)}, "a");
  clock_.advance(milliseconds(10));
  book_.arrive(stage, {.pts_ns = 0, .memory = memory(1)}, "b");
  clock_.advance(milliseconds(5));
  EXPECT_TRUE(book_.leave(stage, {.pts_ns = 0, .memory = memory(1)}));
  clock_.advance(milliseconds(1));
  EXPECT_TRUE(book_.leave(stage, {.pts_ns = 0, .memory = memory(0)}));
  EXPECT_EQ(row("infer", "a").max, milliseconds(16));
  EXPECT_EQ(row("infer", "b").max, milliseconds(5));
  EXPECT_EQ(row("infer", "a").frames, 1u);
}

TEST_F(LatencyBookTest, GivenNewMemoryOrNewTimes_WhenAFrameLeaves_ThenTheOtherTellsWhoItIs) {
  auto* const stage = book_.stage("decode");
  book_.arrive(stage, {.pts_ns = 40, .memory = memory(0)}, "s");
  book_.arrive(stage, {.pts_ns = 80, .memory = memory(1)}, "s");
  clock_.advance(milliseconds(3));
  EXPECT_TRUE(book_.leave(stage, {.pts_ns = 80, .memory = memory(5)})) << "drawn or decoded";
  clock_.advance(milliseconds(4));
  EXPECT_TRUE(book_.leave(stage, {.pts_ns = 99, .memory = memory(0)})) << "given another time";
  EXPECT_FALSE(book_.leave(stage, {.pts_ns = 99, .memory = memory(0)})) << "it has left";
  EXPECT_FALSE(book_.leave(stage, {}));
  const LatencyFigures figures = row("decode", "s");
  EXPECT_EQ(figures.frames, 2u);
  EXPECT_EQ(figures.max, milliseconds(7));
  EXPECT_GE(figures.p50, milliseconds(3));
  EXPECT_LE(figures.p50, Nanoseconds(milliseconds(3)) * 101 / 100);
}

TEST_F(LatencyBookTest, GivenAFrameWithoutATime_WhenItLeaves_ThenItsMemoryTells) {
  auto* const stage = book_.stage("x");
  book_.arrive(stage, {.memory = memory(2)}, "s");
  clock_.advance(milliseconds(2));
  EXPECT_FALSE(book_.leave(stage, {.memory = memory(3)}));
  EXPECT_TRUE(book_.leave(stage, {.memory = memory(2)}));
  EXPECT_EQ(row("x", "s").max, milliseconds(2));
}

TEST_F(LatencyBookTest, GivenAFlush_WhenATimeComesAgain_ThenTheFrameBeforeIsNotMeant) {
  auto* const stage = book_.stage("x");
  book_.arrive(stage, {.pts_ns = 0}, "s");
  clock_.advance(milliseconds(500));
  book_.forget(stage);
  book_.arrive(stage, {.pts_ns = 0}, "s");
  clock_.advance(milliseconds(1));
  EXPECT_TRUE(book_.leave(stage, {.pts_ns = 0}));
  EXPECT_EQ(row("x", "s").max, milliseconds(1));
}

TEST_F(LatencyBookTest, GivenAStreamThatBeginsAnew_WhenFramesLeave_ThenTheOthersHaveStayed) {
  auto* const stage = book_.stage("x");
  book_.arrive(stage, {.pts_ns = 0}, "anew");
  book_.arrive(stage, {.pts_ns = 1}, "other");
  book_.forget(stage, "anew");
  book_.forget(stage, "unknown");
  EXPECT_FALSE(book_.leave(stage, {.pts_ns = 0}));
  EXPECT_TRUE(book_.leave(stage, {.pts_ns = 1}));
}

TEST_F(LatencyBookTest, GivenRandomFrames_WhenTheyPass_ThenTheFiguresAreThoseOfASortedList) {
  auto* const stage = book_.stage("x");
  std::mt19937 random(7);
  std::vector<milliseconds> times;
  for (int i = 0; i < 999; ++i) {
    const milliseconds stay(1 + int(random() % 400));
    book_.arrive(stage, {.pts_ns = i}, "s");
    clock_.advance(stay);
    ASSERT_TRUE(book_.leave(stage, {.pts_ns = i}));
    times.push_back(stay);
  }
  std::ranges::sort(times);
  const LatencyFigures figures = row("x", "s");
  EXPECT_EQ(figures.frames, 999u);
  EXPECT_EQ(figures.max, times.back());
  const auto near = [](Nanoseconds got, Nanoseconds wanted) {
    EXPECT_GE(got, wanted);
    EXPECT_LE(got, wanted * 101 / 100);
  };
  near(figures.p50, times[499]);
  near(figures.p95, times[949]);  // ceil(0.95 * 999) = 950 frames took as long or less.
}

TEST_F(LatencyBookTest, GivenFramesThatNeverLeave_WhenMoreCome_ThenTheOldestAreGivenUpAndCounted) {
  auto* const stage = book_.stage("drops");
  const auto most = std::int64_t{LatencyBook::kMaxWaiting};
  for (std::int64_t i = 0; i < most + 10; ++i) book_.arrive(stage, {.pts_ns = i}, "s");
  EXPECT_EQ(book_.given_up(), 10u);
  EXPECT_FALSE(book_.leave(stage, {.pts_ns = 9}));
  EXPECT_TRUE(book_.leave(stage, {.pts_ns = 10}));
}

TEST_F(LatencyBookTest, GivenStagesAndStreamsWithoutEnd_WhenTheyPass_ThenTheBookStaysBounded) {
  for (int i = 0; i < 2000; ++i) {
    auto* const stage = book_.stage("stage" + std::to_string(i));
    book_.arrive(stage, {.pts_ns = i}, "s");
    EXPECT_TRUE(book_.leave(stage, {.pts_ns = i}));
  }
  auto* const one = book_.stage("stage0");
  for (int i = 0; i < 2000; ++i) {
    book_.arrive(one, {.pts_ns = i}, "stream" + std::to_string(i));
    EXPECT_TRUE(book_.leave(one, {.pts_ns = i}));
  }
  const auto figures = book_.figures();
  EXPECT_LE(figures.size(), LatencyBook::kMaxRows + LatencyBook::kMaxStages + 1);
  std::uint64_t frames = 0;
  for (const LatencyFigures& row : figures) frames += row.frames;
  EXPECT_EQ(frames, 4000u) << "nothing is left out";
  EXPECT_GT(row(std::string(LatencyBook::kMore), "s").frames, 1000u);
  EXPECT_GT(row("stage0", std::string(LatencyBook::kMore)).frames, 1000u);
}

TEST_F(LatencyBookTest, GivenSeveralThreads_WhenFramesPass_ThenAllAreCounted) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      const std::string stream = "stream" + std::to_string(t);
      for (int i = 0; i < 500; ++i) {
        auto* const stage = book_.stage(i % 2 == 0 ? "even" : "odd");
        const PassingFrame frame{.pts_ns = 10 * i + t, .memory = memory(std::size_t(t))};
        book_.arrive(stage, frame, stream);
        book_.leave(stage, frame);
      }
    });
  }
  for (int i = 0; i < 20; ++i) static_cast<void>(book_.figures());
  for (std::thread& thread : threads) thread.join();
  std::uint64_t frames = 0;
  for (const LatencyFigures& row : book_.figures()) frames += row.frames;
  EXPECT_EQ(frames, 2000u);
  EXPECT_EQ(book_.figures().size(), 8u);
}

}  // namespace
}  // namespace penstock
