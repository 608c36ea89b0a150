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
  std::ofstream(onnx_, std::ios::binary) << "not a model";
  EXPECT_EQ(prepare({}).code, 65);
  EXPECT_EQ(run_penstock({"model", "prepare", "/no/such.onnx"}).code, 66);
  EXPECT_FALSE(std::filesystem::exists(models_ + "/squares"));
}

}  // namespace
}  // namespace penstock::e2e
