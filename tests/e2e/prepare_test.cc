// SPDX-License-Identifier: Apache-2.0
//
// An ONNX file becomes a prepared model and runs: `penstock model prepare`, then `penstock run`.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "penstock/model/testing/square_finders.h"
#include "tests/e2e/clips.h"
#include "tests/e2e/model_folder.h"
#include "tests/e2e/penstock_process.h"

namespace penstock::e2e {
namespace {

class PrepareTest : public ModelFolder {
 protected:
  /// With what `more` says alone.
  Ended prepare(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"prepare", onnx_};
    words.insert(words.end(), more.begin(), more.end());
    return model(words);
  }
};

TEST_F(PrepareTest, GivenAYolov8File_WhenPreparedAndRun_ThenTheSquaresAreFound) {
  write(model_testing::BoxLayout::kYolov8);
  const Ended prepared = prepare({"--labels", labels_});
  ASSERT_EQ(prepared.code, 0) << prepared.err;
  EXPECT_NE(prepared.out.find("family: yolov8"), std::string::npos) << prepared.out;
  const std::string json = (folder_ / "out.jsonl").string();
  const Ended ran = run_penstock({"run", "--source", square_mp4(folder_, 6).string(), "--model",
                                  "squares", "--models", models_, "--out", "json=" + json});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto lines = read_json_lines(json);
  ASSERT_EQ(lines.size(), 6u);
  for (int n = 0; n < 6; ++n) {
    ASSERT_EQ(lines[std::size_t(n)].objects.size(), 1u);
    EXPECT_EQ(lines[std::size_t(n)].objects[0].class_id, 0);
    EXPECT_NEAR(lines[std::size_t(n)].objects[0].x, square_left(n), 2.0);
  }
}

TEST_F(PrepareTest, GivenWhatCantBePrepared_WhenTried_ThenOneMessageAndNothingIsLeft) {
  write(model_testing::BoxLayout::kSsdFour);
  const Ended unknown = prepare({"--labels", labels_});
  EXPECT_EQ(unknown.code, 64) << unknown.err;
  EXPECT_NE(unknown.err.find("--order"), std::string::npos) << unknown.err;
  // Two labels for three classes.
  write(model_testing::BoxLayout::kYolov8);
  std::ofstream(labels_) << "red\ngreen\n";
  const Ended counted = prepare({"--labels", labels_, "--family", "yolov8"});
  EXPECT_EQ(counted.code, 64) << counted.err;
  EXPECT_NE(counted.err.find("2 labels for 3 classes"), std::string::npos) << counted.err;
  const Ended named = prepare({"--labels", "red,green,blue"});
  EXPECT_EQ(named.code, 66) << named.err;
  EXPECT_NE(named.err.find("--labels is a file"), std::string::npos) << named.err;
  std::ofstream(onnx_, std::ios::binary) << "not a model";
  EXPECT_EQ(prepare({}).code, 65);
  EXPECT_EQ(run_penstock({"model", "prepare", "/no/such.onnx"}).code, 66);
  EXPECT_FALSE(std::filesystem::exists(models_ + "/squares"));
}

TEST_F(PrepareTest, GivenThreeNumbers_WhenGivenWithCommasOrAsWords_ThenBothAreTheSame) {
  const std::vector<std::vector<std::string>> ways{
      {"prepare", "--labels", labels_, "--mean", "1,2,3", "--std", "4,5,6", onnx_, "--replace"},
      {"prepare", "--labels", labels_, "--mean", "1", "2", "3", "--std", "4", "5", "6", onnx_,
       "--replace"}};
  for (const auto& words : ways) {
    const Ended prepared = model(words);
    ASSERT_EQ(prepared.code, 0) << prepared.err;
    EXPECT_NE(prepared.out.find("- 1 2 3) / 4 5 6"), std::string::npos) << prepared.out;
  }
  for (const char* few : {"1", "1,2", "1,2,3,4", "1,,3", "1,2,x"}) {
    const Ended refused = prepare({"--mean", few});
    EXPECT_EQ(refused.code, 64) << few;
    EXPECT_NE(refused.err.find("--mean"), std::string::npos) << refused.err;
  }
}

TEST_F(PrepareTest, GivenAPictureWithoutSquares_WhenTried_ThenItSaysWhatWasUsedAndMayBeWrong) {
  const std::string black = (folder_ / "black.png").string();
  make_clip(black,
            "videotestsrc pattern=black num-buffers=1 ! video/x-raw,format=RGB,width=128,"
            "height=128 ! pngenc snapshot=false");
  const Ended tried = prepare({"--labels", labels_, "--try", black});
  ASSERT_EQ(tried.code, 0) << tried.err;
  EXPECT_NE(tried.out.find("nothing was found with: RGB, (level x 0.00392157 - 0) / 1"),
            std::string::npos)
      << tried.out;
  EXPECT_NE(tried.out.find("--order"), std::string::npos) << tried.out;
  // What is said then runs as it stands.
  EXPECT_NE(tried.out.find("penstock run --models " + models_ + " --model squares"),
            std::string::npos)
      << tried.out;
}

}  // namespace
}  // namespace penstock::e2e
