// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace penstock {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Progress, GivenAFileHalfDone_WhenShown_ThenRateAndTimeLeftAreRight) {
  const std::string line = progress_line({.frames = 400, .done = 0.5, .running = seconds(8)}, 79);
  EXPECT_NE(line.find("50 %"), std::string::npos) << line;
  EXPECT_NE(line.find("400 frames"), std::string::npos) << line;
  EXPECT_NE(line.find("50.0 frames/s"), std::string::npos) << line;
  EXPECT_NE(line.find("8 s left"), std::string::npos) << line;
  EXPECT_NE(line.find("[###############---------------]"), std::string::npos) << line;
}

TEST(Progress, GivenALiveSource_WhenShown_ThenItPromisesNoEnd) {
  const std::string line = progress_line({.frames = 30, .done = -1, .running = seconds(2)}, 79);
  EXPECT_EQ(line, "30 frames 15.0 frames/s");
}

TEST(Progress, GivenAnyWidth_WhenShown_ThenTheLineFits) {
  for (int width = 0; width < 120; ++width) {
    EXPECT_LE(int(progress_line({.frames = 12345678, .done = 0.001, .running = seconds(100)}, width)
                      .size()),
              width);
  }
}

TEST(Progress, GivenATerminal_WhenUpdatedOften_ThenItRedrawsFiveTimesASecond) {
  ManualClock clock;
  int writes = 0;
  std::string last;
  Progress progress(
      [&](std::string_view text) {
        ++writes;
        last = text;
      },
      true, 79, clock);
  for (int i = 0; i < 100; ++i) {
    clock.advance(milliseconds(10));
    progress.update({.frames = 1, .running = seconds(1)});
  }
  EXPECT_EQ(writes, 5);
  EXPECT_EQ(last.substr(0, 5), "\r\x1b[2K");
  EXPECT_EQ(last.find('\n'), std::string::npos);
  progress.clear();
  EXPECT_EQ(last, "\r\x1b[2K");
}

TEST(Progress, GivenAPipe_WhenUpdated_ThenPlainLinesWithoutControlCharacters) {
  ManualClock clock;
  std::string all;
  Progress progress([&](std::string_view text) { all += text; }, false, 79, clock);
  for (int i = 0; i < 25; ++i) {
    clock.advance(seconds(1));
    progress.update({.frames = 1, .running = seconds(1)});
  }
  progress.clear();
  EXPECT_EQ(std::ranges::count(all, '\n'), 2);
  for (char c : all) EXPECT_TRUE(c == '\n' || c >= ' ');
}

}  // namespace
}  // namespace penstock
