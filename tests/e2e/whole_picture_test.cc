// SPDX-License-Identifier: Apache-2.0
//
// `penstock run` end to end with models that speak of the whole picture, on clips whose content is
// known.
#include <gst/gst.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/model/testing/picture_readers.h"
#include "tests/e2e/clips.h"
#include "tests/e2e/penstock_process.h"

namespace penstock::e2e {
namespace {

using model_testing::PictureReader;

class WholePictureRun : public testing::Test {
 protected:
  void SetUp() override {
    gst_init(nullptr, nullptr);
    folder_ = fresh_folder();
  }

  std::string model(PictureReader reader, int side = kSide) const {
    return model_testing::write_model_folder(model_testing::make_picture_reader(reader, side),
                                             folder_ / std::string(to_string(reader)))
        .string();
  }
  std::string green_clip(int frames) const {
    const std::filesystem::path clip = folder_ / "green.mp4";
    make_clip(clip, "videotestsrc pattern=green num-buffers=" + std::to_string(frames) +
                        " ! video/x-raw,format=I420,width=192,height=192,framerate=25/1 ! "
                        "openh264enc ! h264parse ! mp4mux");
    return clip.string();
  }
  std::string file(const char* name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

struct Share {
  std::string label;
  std::int64_t class_id = -1;
  double value = 0;
};

/// The entries of `key` in each line, with their number named `value`; lines hold no object.
std::vector<std::vector<Share>> read_shares(const std::string& path, const char* key,
                                            const char* value) {
  std::vector<std::vector<Share>> lines;
  std::ifstream stream(path);
  simdjson::dom::parser parser;
  for (std::string text; std::getline(stream, text);) {
    simdjson::dom::element line;
    EXPECT_EQ(parser.parse(text).get(line), simdjson::SUCCESS) << text;
    simdjson::dom::array entries, objects;
    EXPECT_EQ(line["objects"].get(objects), simdjson::SUCCESS);
    EXPECT_EQ(objects.size(), 0u);
    EXPECT_EQ(line[key].get(entries), simdjson::SUCCESS) << text;
    auto& shares = lines.emplace_back();
    for (const simdjson::dom::element entry : entries) {
      std::string_view label;
      Share& share = shares.emplace_back();
      EXPECT_EQ(entry["label"].get(label), simdjson::SUCCESS);
      EXPECT_EQ(entry["class_id"].get(share.class_id), simdjson::SUCCESS);
      EXPECT_EQ(entry[value].get(share.value), simdjson::SUCCESS);
      share.label = label;
    }
  }
  return lines;
}

void expect_texts(const std::string& text, const std::vector<const char*>& wanted) {
  for (const char* part : wanted) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
}

TEST_F(WholePictureRun, GivenAClassifier_WhenRun_ThenLinesTableAndReportSpeakOfClasses) {
  const Ended ended = run_penstock(
      {"run", "--source", green_clip(12), "--model", model(PictureReader::kCenterLogits), "--out",
       "json=" + file("a.jsonl"), "--out", "report=" + file("a.html")});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto lines = read_shares(file("a.jsonl"), "classes", "confidence");
  ASSERT_EQ(lines.size(), 12u);
  for (const auto& classes : lines) {
    ASSERT_EQ(classes.size(), 3u);
    EXPECT_EQ(classes[0].label, "green");
    EXPECT_EQ(classes[0].class_id, 1);
    EXPECT_GT(classes[0].value, 0.999);
    EXPECT_NEAR(classes[0].value + classes[1].value + classes[2].value, 1, 1e-5);
  }
  EXPECT_EQ(ended.out.find("objects"), std::string::npos) << ended.out;
  expect_texts(ended.out, {"first class of a frame\n  green  ", "100.0 % of the frames",
                           "frame copies on this path: 0", "memory/metadata"});
  const std::string page = read_text(file("a.html"));
  EXPECT_EQ(page.find("objects a frame"), std::string::npos);
  expect_texts(page, {"First class of a frame over time", "data:image/jpeg;base64,/9j/"});
}

TEST_F(WholePictureRun, GivenASegmenter_WhenRun_ThenAreasAreThoseOfTheClip) {
  const Ended ended =
      run_penstock({"run", "--source", square_mp4(folder_, 10).string(), "--model",
                    model(PictureReader::kColorScores), "--out", "json=" + file("a.jsonl"), "--out",
                    "report=" + file("a.html"), "--out", "video=" + file("a.mp4")});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto lines = read_shares(file("a.jsonl"), "areas", "fraction");
  ASSERT_EQ(lines.size(), 10u);
  // The codec blurs the edge by a pixel.
  constexpr double kRed = double(kSquare) * kSquare / (double(kSide) * kSide);
  constexpr double kEdge = 4.0 * kSquare / (double(kSide) * kSide);
  for (const auto& areas : lines) {
    ASSERT_EQ(areas.size(), 2u);
    EXPECT_EQ(areas[0].label, "background");
    EXPECT_NEAR(areas[0].value, 1 - kRed, kEdge);
    EXPECT_EQ(areas[1].label, "red");
    EXPECT_NEAR(areas[1].value, kRed, kEdge);
  }
  EXPECT_EQ(ended.out.find("objects"), std::string::npos) << ended.out;
  expect_texts(ended.out, {"mean share of the picture\n  background "});
  EXPECT_EQ(ended.err.find("shows nothing of a model"), std::string::npos) << ended.err;
  expect_texts(read_text(file("a.html")), {"Shares of the picture over time", ", background 9"});
  EXPECT_EQ(decode_file(file("a.mp4")).frames, 10);
}

TEST_F(WholePictureRun, GivenAPictureOfFineColours_WhenTriedAndRun_ThenBothSeeTheSame) {
  // Red and green by turns, each as wide as a sample of chroma.
  make_clip(file("fine.jpg"),
            "videotestsrc pattern=checkers-2 num-buffers=1 ! "
            "video/x-raw,format=I420,width=192,height=192 ! jpegenc");
  const std::string segmenter = model(PictureReader::kColorScores);
  const Ended ran = run_penstock({"run", "--source", file("fine.jpg"), "--model", segmenter,
                                  "--out", "json=" + file("a.jsonl")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto lines = read_shares(file("a.jsonl"), "areas", "fraction");
  ASSERT_EQ(lines.size(), 1u);
  const Ended tried = run_penstock({"model", "try", segmenter, file("fine.jpg")});
  ASSERT_EQ(tried.code, 0) << tried.err;
  for (const Share& area : lines[0]) {
    expect_texts(tried.out, {str_format("  {} {:.1f} %\n", area.label, 100 * area.value).c_str()});
  }
}

TEST_F(WholePictureRun, GivenARawModel_WhenTensorsAreAskedFor_ThenTheLinesHoldThemAndElseNot) {
  const std::string clip = green_clip(5);
  const std::string raw = model(PictureReader::kRaw, kSide / 2);
  Ended ended =
      run_penstock({"run", "--source", clip, "--model", raw, "--out",
                    "json=" + file("without.jsonl"), "--out", "video=" + file("without.mp4")});
  ASSERT_EQ(ended.code, 0) << ended.err;
  expect_texts(ended.err, {"plan: the video output shows nothing of a model of task 'raw'"});
  EXPECT_EQ(read_text(file("without.jsonl")).find("tensors"), std::string::npos);
  EXPECT_EQ(ended.out.find("readback"), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("objects"), std::string::npos) << ended.out;

  ended = run_penstock({"run", "--source", clip, "--model", raw, "--read-tensors", "--out",
                        "json=" + file("with.jsonl")});
  ASSERT_EQ(ended.code, 0) << ended.err;
  expect_texts(read_text(file("with.jsonl")),
               {R"("tensors":[{"name":"mean","shape":[1,3],"values":[)",
                R"({"name":"numbers","shape":[1,96,96],"values":[2,2,2,)"});
  // 3 floats and 96 x 96 numbers.
  expect_texts(ended.out, {"values      9219 a frame", "readback"});

  ended = run_penstock(
      {"run", "--source", clip, "--model", square_model(folder_).string(), "--read-tensors"});
  EXPECT_EQ(ended.code, 64);
  expect_texts(ended.err, {"--read-tensors", "task 'detection'"});
}

TEST_F(WholePictureRun, GivenAModelWithoutObjects_WhenTracksAreAskedFor_ThenItIsAUsageError) {
  const std::string path = model(PictureReader::kCenterLogits);
  const Ended ended = run_penstock({"run", "--source", green_clip(2), "--model", path, "--track"});
  EXPECT_EQ(ended.code, 64);
  EXPECT_NE(ended.err.find("--track is for models that find objects"), std::string::npos)
      << ended.err;
}

}  // namespace
}  // namespace penstock::e2e
