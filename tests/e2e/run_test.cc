// SPDX-License-Identifier: Apache-2.0
//
// `penstock run` end to end on clips whose content is known.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/clips.h"
#include "tests/e2e/nv12_mp4.h"
#include "tests/e2e/penstock_process.h"

namespace penstock::e2e {
namespace {

// Boxes are the square's own to the stride grid; the codec may move an edge by a fraction of a
// pixel.
constexpr double kBoxTolerance = 2.0;

void expect_square(const JsonLine& line, int frame) {
  ASSERT_EQ(line.objects.size(), 1u) << "frame " << frame;
  const JsonBox& box = line.objects[0];
  EXPECT_EQ(box.class_id, 0);
  EXPECT_GE(box.confidence, 0.4);
  EXPECT_LE(box.confidence, 1.0);
  EXPECT_NEAR(box.x, square_left(frame), kBoxTolerance) << "frame " << frame;
  EXPECT_NEAR(box.y, kSquareTop, kBoxTolerance);
  EXPECT_NEAR(box.w, kSquare, kBoxTolerance);
  EXPECT_NEAR(box.h, kSquare, kBoxTolerance);
}

void expect_square_lines(const std::vector<JsonLine>& lines, int frames,
                         const std::string& source) {
  ASSERT_EQ(int(lines.size()), frames);
  for (int n = 0; n < frames; ++n) {
    const JsonLine& line = lines[std::size_t(n)];
    EXPECT_EQ(line.source, source);
    EXPECT_EQ(line.frame, n);
    EXPECT_NEAR(double(line.pts_ns), n * 40e6, 1e6);
    EXPECT_EQ(line.width, kSide);
    EXPECT_EQ(line.height, kSide);
    expect_square(line, n);
  }
}

/// The box's outline changes pixels at the square's edge and leaves the far corner alone. Pictures
/// are I420.
void expect_box_drawn(const std::string& drawn, const std::string& original, int frame) {
  ASSERT_EQ(drawn.size(), original.size());
  const auto luma_change = [&](int x, int y) {
    const auto at = std::size_t(y) * kSide + std::size_t(x);
    return std::abs(int(std::uint8_t(drawn[at])) - int(std::uint8_t(original[at])));
  };
  int edge = 0;
  for (int dy = -3; dy <= 3; ++dy) {
    edge = std::max(edge, luma_change(square_left(frame) + kSquare / 2, kSquareTop + kSquare + dy));
  }
  EXPECT_GT(edge, 25);
  EXPECT_LT(luma_change(kSide - 4, kSide - 4), 12);
}

class RunTest : public testing::Test {
 protected:
  void SetUp() override {
    gst_init(nullptr, nullptr);
    folder_ = fresh_folder();
    model_ = square_model(folder_).string();
  }
  std::filesystem::path folder_;
  std::string model_;
};

TEST_F(RunTest, GivenAClip_WhenRunWithAllOutputs_ThenAllOfThemHoldWhatWasInIt) {
  const std::string clip = square_mp4(folder_, 30).string();
  const std::string video = (folder_ / "boxes.mp4").string();
  const std::string json = (folder_ / "boxes.jsonl").string();
  const std::string report = (folder_ / "report.html").string();
  const Ended ended =
      run_penstock({"run", "--source", clip, "--model", model_, "--out", "video=" + video, "--out",
                    "json=" + json, "--out", "report=" + report});
  ASSERT_EQ(ended.code, 0) << ended.err;
  expect_square_lines(read_json_lines(json), 30, clip);

  const Decoded original = decode_file(clip);
  const Decoded drawn = decode_file(video);
  EXPECT_EQ(drawn.error, "");
  EXPECT_EQ(drawn.frames, 30);
  EXPECT_EQ(drawn.width, kSide);
  expect_box_drawn(drawn.last_frame, original.last_frame, 29);

  const std::string page = read_text(report);
  EXPECT_NE(page.find("data:image/jpeg;base64,/9j/"), std::string::npos);
  EXPECT_NE(page.find("media/"), std::string::npos) << "no ledger rows";
  EXPECT_EQ(page.find("http"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);

  EXPECT_NE(ended.out.find("frames      30\n"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("objects     30 (1.00 a frame)"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("frame copies on this path: 0"), std::string::npos) << ended.out;
  for (const char* stage : {"preprocess", "infer", "decode output", "in element"}) {
    EXPECT_NE(ended.out.find(stage), std::string::npos) << stage;
  }
  EXPECT_EQ(ended.err.find('\x1b'), std::string::npos) << "control characters without a terminal";
}

TEST_F(RunTest, GivenAClip_WhenTracked_ThenTheSquareIsOneObjectInAllLines) {
  const std::string clip = square_mp4(folder_, 8).string();  // Then it jumps.
  const std::string json = (folder_ / "tracks.jsonl").string();
  const Ended ended =
      run_penstock({"run", "--track", "--source", clip, "--model", model_, "--out", "json=" + json,
                    "--out", "video=" + (folder_ / "tracks.mp4").string()});
  ASSERT_EQ(ended.code, 0) << ended.err;
  expect_square_lines(read_json_lines(json), 8, clip);
  const std::string text = read_text(json);
  int tracked = 0;
  for (std::size_t at = 0; (at = text.find("\"track_id\":1}", at)) != std::string::npos; ++at) {
    ++tracked;
  }
  EXPECT_EQ(tracked, 8) << text;
  EXPECT_NE(ended.out.find("frame copies on this path: 0"), std::string::npos) << ended.out;
}

TEST_F(RunTest, GivenZonesAndLines_WhenTracked_ThenFramesTableAndReportCountWhereTheSquareIs) {
  constexpr int kFrames = 24;
  const std::string clip = square_mp4(folder_, kFrames).string();
  const std::string json = (folder_ / "zones.jsonl").string();
  const std::string report = (folder_ / "report.json").string();
  const Ended ended = run_penstock(
      {"run", "--track", "--zones", "right: 0.5,0 1,0 1,1 0.5,1", "--lines", "middle: 0.5,1 0.5,0",
       "--source", clip, "--model", model_, "--threshold", "0.3", "--out", "json=" + json, "--out",
       "report=" + report, "--out", "video=" + (folder_ / "zones.mp4").string()});
  ASSERT_EQ(ended.code, 0) << ended.err;
  // Where the square's foot is by the clip's own making.
  std::istringstream lines(read_text(json));
  int frame = 0, inside_in_all = 0;
  for (std::string line; std::getline(lines, line); ++frame) {
    const double foot = square_left(frame) + kSquare / 2.0;
    if (std::abs(foot - kSide / 2.0) <= kBoxTolerance) continue;  // On the border.
    const int inside = foot > kSide / 2.0 ? 1 : 0;
    inside_in_all += inside;
    EXPECT_NE(line.find("\"zones\":[{\"name\":\"right\",\"inside\":" + std::to_string(inside)),
              std::string::npos)
        << frame << ": " << line;
    EXPECT_NE(line.find("\"lines\":[{\"name\":\"middle\",\"forwards\":"), std::string::npos);
  }
  EXPECT_EQ(frame, kFrames);
  EXPECT_GT(inside_in_all, 3);
  EXPECT_NE(ended.out.find("zones\n  right "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("lines\n  middle "), std::string::npos) << ended.out;
  const std::string text = read_text(report);
  EXPECT_NE(text.find("\"zones\":[{\"name\":\"right\",\"inside_a_frame\":"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\"frames\":24,"), std::string::npos) << text;
}

TEST_F(RunTest, GivenZonesThatCannotBe_WhenRun_ThenItIsAUsageErrorAndNothingIsMade) {
  const std::string clip = square_mp4(folder_, 2).string();
  const std::string json = (folder_ / "none.jsonl").string();
  const auto run_with = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"run", "--source", clip, "--model", model_, "--out", "json=" + json});
    return run_penstock(more);
  };
  const Ended untracked = run_with({"--zones", "a: 0,0 1,0 1,1"});
  EXPECT_EQ(untracked.code, 64);
  EXPECT_NE(untracked.err.find("--track"), std::string::npos) << untracked.err;
  const Ended two_corners = run_with({"--track", "--zones", "a: 0,0 1,0"});
  EXPECT_EQ(two_corners.code, 64);
  EXPECT_NE(two_corners.err.find("zone 'a' has 2 corners"), std::string::npos) << two_corners.err;
  const Ended misspelt = run_with({"--track", "--zones", "door: 0,0 1,0 1,1 @ persn"});
  EXPECT_EQ(misspelt.code, 64);
  EXPECT_NE(misspelt.err.find("zone 'door': no model here finds 'persn'"), std::string::npos)
      << misspelt.err;
  EXPECT_FALSE(std::filesystem::exists(json));
}

TEST_F(RunTest, GivenBothPolicies_WhenRun_ThenTheResultsAreTheSame) {
  const std::string clip = square_mp4(folder_, 16).string();
  for (const char* policy : {"throughput", "latency"}) {
    const std::string json = (folder_ / (std::string(policy) + ".jsonl")).string();
    const Ended ended = run_penstock(
        {"run", "--source", clip, "--model", model_, "--policy", policy, "--out", "json=" + json});
    ASSERT_EQ(ended.code, 0) << ended.err;
    expect_square_lines(read_json_lines(json), 16, clip);
  }
}

TEST_F(RunTest, GivenAThresholdNothingReaches_WhenRun_ThenLinesAreThereWithoutObjects) {
  const std::string clip = square_mp4(folder_, 5).string();
  const std::string json = (folder_ / "none.jsonl").string();
  // A square on the grid scores 1 at most, and H.264 never keeps its red exactly.
  const Ended ended = run_penstock(
      {"run", "--source", clip, "--model", model_, "--threshold", "1.0", "--out", "json=" + json});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto lines = read_json_lines(json);
  ASSERT_EQ(lines.size(), 5u);
  for (const JsonLine& line : lines) EXPECT_TRUE(line.objects.empty());
}

TEST_F(RunTest, Given422_WhenConvertIsAllowed_ThenItRunsAndTheLedgerCountsTheCopies) {
  const std::filesystem::path clip = folder_ / "422.mkv";
  make_square_clip(clip, 10, "videoconvert ! video/x-raw,format=Y42B ! avenc_ffv1 ! matroskamux");
  const std::string json = (folder_ / "422.jsonl").string();
  const std::vector<std::string> arguments{"run",  "--source", clip.string(), "--model",
                                           model_, "--out",    "json=" + json};
  const Ended refused = run_penstock(arguments);
  EXPECT_EQ(refused.code, 65) << refused.err;
  EXPECT_NE(refused.err.find("--convert"), std::string::npos) << refused.err;

  std::vector<std::string> allowed = arguments;
  allowed.push_back("--convert");
  const Ended ended = run_penstock(allowed);
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("plan: a convert stage makes I420 of the decoder's Y42B"),
            std::string::npos)
      << ended.err;
  EXPECT_NE(ended.out.find("convert"), std::string::npos);
  EXPECT_EQ(ended.out.find("frame copies on this path: 0"), std::string::npos) << ended.out;
  expect_square_lines(read_json_lines(json), 10, clip.string());
}

TEST_F(RunTest, GivenNv12FromAContainer_WhenRunWithVideo_ThenItIsAnalysedInPlaceAndDrawn) {
  const std::string clip = (folder_ / "nv12.mp4").string();
  make_nv12_mp4(clip, 10);
  const std::string video = (folder_ / "boxes.mp4").string();
  const std::string json = (folder_ / "boxes.jsonl").string();
  const Ended ended = run_penstock({"run", "--source", clip, "--model", model_, "--out",
                                    "video=" + video, "--out", "json=" + json});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("plan: the video output is drawn on BGRA copies of the frames"),
            std::string::npos)
      << ended.err;
  EXPECT_NE(ended.out.find("frame copies on this path: 0"), std::string::npos) << ended.out;
  expect_square_lines(read_json_lines(json), 10, clip);
  const Decoded drawn = decode_file(video);
  EXPECT_EQ(drawn.error, "");
  EXPECT_EQ(drawn.frames, 10);
  expect_box_drawn(drawn.last_frame, square_picture(9, kSide), 9);
}

TEST_F(RunTest, GivenNoFrameTimes_WhenRunWithVideo_ThenItHoldsAllFramesAtTheSaidRate) {
  // Without timing in the stream, only its first frame comes with a time.
  const std::filesystem::path clip = folder_ / "bare.h264";
  make_square_clip(clip, 10, "openh264enc ! h264parse ! video/x-h264,stream-format=byte-stream");
  const std::string video = (folder_ / "boxes.mp4").string();
  const std::string json = (folder_ / "boxes.jsonl").string();
  const Ended ended = run_penstock({"run", "--source", clip.string(), "--model", model_, "--out",
                                    "video=" + video, "--out", "json=" + json});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("plan: frames come without times; the video output shows 25 a second"),
            std::string::npos)
      << ended.err;
  const auto lines = read_json_lines(json);
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines.back().pts_ns, -1);
  const Decoded decoded = decode_file(video);
  EXPECT_EQ(decoded.error, "");
  EXPECT_EQ(decoded.frames, 10);
}

TEST_F(RunTest, GivenNoFrameRateAndPicturesThatCompressBadly_WhenRunWithVideo_ThenItHoldsThemAll) {
  const std::filesystem::path clip = folder_ / "snow.h264";
  make_clip(clip,
            "videotestsrc pattern=snow num-buffers=30 ! "
            "video/x-raw,format=I420,width=192,height=192,framerate=25/1 ! openh264enc ! "
            "h264parse ! video/x-h264,stream-format=byte-stream");
  const std::string video = (folder_ / "boxes.mp4").string();
  const std::string json = (folder_ / "boxes.jsonl").string();
  const Ended ended = run_penstock({"run", "--source", clip.string(), "--model", model_, "--out",
                                    "video=" + video, "--out", "json=" + json});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(read_json_lines(json).size(), 30u);
  const Decoded decoded = decode_file(video);
  EXPECT_EQ(decoded.error, "");
  EXPECT_EQ(decoded.frames, 30);
}

TEST_F(RunTest, GivenMpegTs_WhenRunAgainAndAgain_ThenItsDecoderIsAlwaysFound) {
  const std::filesystem::path clip = folder_ / "clip.ts";
  make_square_clip(clip, 5, "openh264enc ! h264parse ! mpegtsmux");
  const std::string video = (folder_ / "boxes.mp4").string();
  // GStreamer's race between a stream and its caps was lost every other time.
  for (int n = 0; n < 6; ++n) {
    const Ended ended = run_penstock(
        {"run", "--source", clip.string(), "--model", model_, "--out", "video=" + video});
    ASSERT_EQ(ended.code, 0) << n << ended.err;
    EXPECT_EQ(decode_file(video).frames, 5);
  }
}

class DebugLog : public RunTest {
 protected:
  Ended run_with(const std::vector<std::string>& environment) {
    return run_penstock({"run", "--source", square_mp4(folder_, 5).string(), "--model", model_},
                        {.environment = environment});
  }
};

TEST_F(DebugLog, GivenADebugFile_WhenRun_ThenItHoldsWhatWasAskedForAndNothingElse) {
  const std::filesystem::path file = folder_ / "gst.log";
  const Ended ended = run_with({"GST_DEBUG_FILE=" + file.string(), "GST_DEBUG=GST_STATES:4"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const std::string log = read_text(file);
  EXPECT_NE(log.find("completed state change to PLAYING"), std::string::npos);
  EXPECT_EQ(log.find(" libav "), std::string::npos);
  EXPECT_EQ(ended.err.find("GST_STATES"), std::string::npos) << ended.err;
  EXPECT_NE(ended.out.find("not known"), std::string::npos) << ended.out;
}

TEST_F(DebugLog, GivenADebugFileOfLibavsLog_WhenRun_ThenUpstreamCopiesAreCounted) {
  const std::filesystem::path file = folder_ / "gst.log";
  const Ended ended = run_with({"GST_DEBUG_FILE=" + file.string(), "GST_DEBUG=libav:6"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(read_text(file).find(" libav "), std::string::npos);
  EXPECT_EQ(ended.out.find("not known"), std::string::npos) << ended.out;
}

TEST_F(DebugLog, GivenNoDebugFile_WhenRun_ThenStderrHoldsWhatWasAskedForAndNothingElse) {
  const Ended ended = run_with({"GST_DEBUG_FILE=", "GST_DEBUG=GST_STATES:4"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("completed state change to PLAYING"), std::string::npos);
  EXPECT_EQ(ended.err.find(" libav "), std::string::npos) << ended.err;
  EXPECT_EQ(ended.out.find("not known"), std::string::npos) << ended.out;
}

TEST_F(RunTest, GivenAModelByName_WhenItIsInTheModelsFolder_ThenItIsFound) {
  const std::string clip = square_mp4(folder_, 3).string();
  const Ended ended = run_penstock(
      {"run", "--source", clip, "--model", "square-finder", "--models", folder_.string()});
  EXPECT_EQ(ended.code, 0) << ended.err;
}

TEST(Program, GivenVersionAndHelp_WhenAsked_ThenTheyAnswerWithZero) {
  const Ended version = run_penstock({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out.rfind("penstock ", 0), 0u) << version.out;
  const Ended help = run_penstock({"run", "--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* flag : {"--source", "--model", "--device", "--policy", "--out", "--threshold"}) {
    EXPECT_NE(help.out.find(flag), std::string::npos) << flag;
  }
}

TEST(Program, GivenDoctor_WhenAsked_ThenItNamesWhatMatters) {
  const Ended ended = run_penstock({"doctor"});
  for (const char* text : {"Processor", "GStreamer", "peninfer", "pentrack", "penzone", "penmux",
                           "pendemux", "ONNX Runtime", "Models", "Devices", "Disk"}) {
    EXPECT_NE(ended.out.find(text), std::string::npos) << text;
  }
  const bool lacks = ended.out.find("LACKS") != std::string::npos;
  EXPECT_EQ(ended.code, lacks ? 69 : 0) << ended.out;
  if (!lacks) {
    EXPECT_NE(ended.out.find("--provider-library"), std::string::npos) << ended.out;
    const std::size_t offer = ended.out.find("offers the providers ");
    ASSERT_NE(offer, std::string::npos) << ended.out;
    EXPECT_NE(ended.out.find("CPUExecutionProvider", offer), std::string::npos) << ended.out;
  }
  const Ended broken = run_penstock({"doctor", "--engine-library", "/no/such/libonnxruntime.so"});
  EXPECT_EQ(broken.code, 69);
  EXPECT_NE(broken.out.find("LACKS   "), std::string::npos) << broken.out;
  EXPECT_NE(broken.out.find("/no/such/libonnxruntime.so"), std::string::npos) << broken.out;
  // A library of another kind, which every system with this program has.
  const Ended other = run_penstock({"doctor", "--engine-library", "libc.so.6"});
  EXPECT_EQ(other.code, 69);
  const Ended json = run_penstock({"doctor", "--json"});
  EXPECT_EQ(json.code, ended.code);
  EXPECT_EQ(json.out.front(), '{');
  EXPECT_NE(json.out.find(lacks ? R"("can_run": false)" : R"("can_run": true)"), std::string::npos)
      << json.out;
  EXPECT_NE(json.out.find(R"("area": "Disk")"), std::string::npos) << json.out;
}

}  // namespace
}  // namespace penstock::e2e
