// SPDX-License-Identifier: Apache-2.0
#include "bench/contenders.h"

#include <gst/gst.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/e2e/clips.h"
#include "tests/e2e/penstock_process.h"

namespace penstock::bench {
namespace {

class LimitTest : public testing::Test {
 protected:
  static constexpr int kFrames = 12;

  void SetUp() override {
    gst_init(nullptr, nullptr);
    folder_ = e2e::fresh_folder();
    task_ = {.clip = folder_ / "clip.mkv",
             .frames = kFrames,
             .manifest = e2e::square_model(folder_),
             .library = {},
             .scratch = folder_};
  }
  std::filesystem::path folder_;
  Task task_;
};

TEST_F(LimitTest, GivenAClipThatIsLongEnough_WhenPerformed_ThenAllFramesAreDone) {
  e2e::make_square_clip(task_.clip, kFrames + 5, "jpegenc ! matroskamux");
  const auto effort = perform(Contender::kLimit, task_);
  ASSERT_TRUE(effort) << effort.error().message();
  EXPECT_EQ(effort->frames, kFrames);
}

TEST_F(LimitTest, GivenAClipThatEndsEarlier_WhenPerformed_ThenItIsAnErrorAndNoEasierLimit) {
  e2e::make_square_clip(task_.clip, kFrames - 4, "jpegenc ! matroskamux");
  const auto effort = perform(Contender::kLimit, task_);
  ASSERT_FALSE(effort);
  EXPECT_NE(effort.error().message().find("8 of 12 frames"), std::string::npos)
      << effort.error().message();
}

TEST_F(LimitTest, GivenAFileThatIsNoVideo_WhenPerformed_ThenTheErrorIsTheDecoders) {
  std::ofstream(task_.clip) << std::string(5000, 'x');
  const auto effort = perform(Contender::kLimit, task_);
  ASSERT_FALSE(effort);
  EXPECT_NE(effort.error().message().find("0 of 12 frames: "), std::string::npos)
      << effort.error().message();
}

}  // namespace
}  // namespace penstock::bench
