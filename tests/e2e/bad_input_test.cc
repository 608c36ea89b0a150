// SPDX-License-Identifier: Apache-2.0
//
// What bad input gets: one clear message, the documented exit code (docs/run.md), no hang.
#include <gst/gst.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/model/testing/test_models.h"
#include "tests/e2e/clips.h"
#include "tests/e2e/penstock_process.h"

namespace penstock::e2e {
namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// One message: the last line, and no other line by penstock.
void expect_one_message(const Ended& ended, const std::string& part) {
  std::vector<std::string> messages;
  std::istringstream lines(ended.err);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("penstock: ", 0) == 0) messages.push_back(line);
  }
  ASSERT_EQ(messages.size(), 1u) << ended.err;
  EXPECT_NE(messages[0].find(part), std::string::npos) << ended.err;
}

class BadInput : public testing::Test {
 protected:
  void SetUp() override {
    gst_init(nullptr, nullptr);
    folder_ = fresh_folder();
    model_ = square_model(folder_).string();
    json_ = (folder_ / "out.jsonl").string();
  }

  Ended run(const std::string& source, std::vector<std::string> more = {},
            const Surroundings& surroundings = {}) {
    std::vector<std::string> arguments{"run",  "--source", source,         "--model",
                                       model_, "--out",    "json=" + json_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_penstock(arguments, surroundings);
  }
  Ended run_clip(const std::string& name, const std::string& description, int side = kSide) {
    make_square_clip(folder_ / name, 10, description, side);
    return run((folder_ / name).string());
  }

  fs::path folder_;
  std::string model_;
  std::string json_;
};

// ---- the source

TEST_F(BadInput, GivenAMissingFile_WhenRun_ThenNoInput) {
  const Ended ended = run("/no/such/clip.mp4");
  EXPECT_EQ(ended.code, 66);
  expect_one_message(ended, "/no/such/clip.mp4");
}

TEST_F(BadInput, GivenAFileForAFolder_WhenRun_ThenNoInput) {
  const std::string below = (square_mp4(folder_, 3) / "clip.mp4").string();
  const Ended ended = run(below);
  EXPECT_EQ(ended.code, 66) << ended.err;
  expect_one_message(ended, below);
}

class NotAllowed : public BadInput {
 protected:
  void SetUp() override {
    BadInput::SetUp();
    if (!can_bind_by_modes()) GTEST_SKIP() << "root may read everything here";
  }
};

TEST_F(NotAllowed, GivenASourceThatMayNotBeRead_WhenRun_ThenPermissionError) {
  const fs::path clip = square_mp4(folder_, 3);
  fs::permissions(clip, fs::perms::none);
  const Ended ended = run(clip.string(), {}, {.bound_by_modes = true});
  EXPECT_EQ(ended.code, 77) << ended.err;
  expect_one_message(ended, clip.string());
}

TEST_F(NotAllowed, GivenAModelThatMayNotBeRead_WhenRun_ThenPermissionError) {
  const std::string clip = square_mp4(folder_, 3).string();
  const fs::path onnx = fs::path(model_).parent_path() / "model.onnx";
  fs::permissions(onnx, fs::perms::none);
  const Ended ended = run(clip, {}, {.bound_by_modes = true});
  EXPECT_EQ(ended.code, 77) << ended.err;
  expect_one_message(ended, onnx.string());
}

TEST_F(NotAllowed, GivenAFolderThatMayNotBeWritten_WhenRun_ThenCannotCreate) {
  const std::string clip = square_mp4(folder_, 3).string();
  const fs::path closed = folder_ / "closed";
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms::owner_read | fs::perms::owner_exec);
  const Ended ended =
      run(clip, {"--out", "report=" + (closed / "out.html").string()}, {.bound_by_modes = true});
  EXPECT_EQ(ended.code, 73) << ended.err;
  expect_one_message(ended, "out.html");
}

TEST_F(BadInput, GivenAnEmptyFile_WhenRun_ThenDataError) {
  write_file(folder_ / "empty.mp4", "");
  const Ended ended = run((folder_ / "empty.mp4").string());
  EXPECT_EQ(ended.code, 65);
  expect_one_message(ended, "is empty");
}

TEST_F(BadInput, GivenATextFile_WhenRun_ThenDataError) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "This is not a video, only words.\n";
  write_file(folder_ / "words.mp4", text);
  const Ended ended = run((folder_ / "words.mp4").string());
  EXPECT_EQ(ended.code, 65);
  expect_one_message(ended, "words.mp4");
}

TEST_F(BadInput, GivenRandomBytes_WhenRun_ThenDataError) {
  std::string bytes;
  std::uint32_t state = 12345;
  for (int i = 0; i < 100000; ++i) {
    state = state * 1664525 + 1013904223;
    bytes += char(state >> 24);
  }
  write_file(folder_ / "noise.mp4", bytes);
  const Ended ended = run((folder_ / "noise.mp4").string());
  EXPECT_EQ(ended.code, 65);
  expect_one_message(ended, "noise.mp4");
}

TEST_F(BadInput, GivenSoundOnly_WhenRun_ThenDataError) {
  make_clip(folder_ / "sound.wav", "audiotestsrc num-buffers=20 ! audioconvert ! wavenc");
  const Ended ended = run((folder_ / "sound.wav").string());
  EXPECT_EQ(ended.code, 65);
  expect_one_message(ended, "no video");
}

TEST_F(BadInput, GivenATruncatedAvi_WhenRun_ThenWhatDecodesIsKeptAndTheCutIsReported) {
  const fs::path whole = folder_ / "whole.avi";
  make_square_clip(whole, 40, "jpegenc ! avimux");
  const auto size = fs::file_size(whole);
  fs::copy_file(whole, folder_ / "cut.avi");
  fs::resize_file(folder_ / "cut.avi", size * 6 / 10);
  const Ended ended = run((folder_ / "cut.avi").string());
  EXPECT_EQ(ended.code, 65) << ended.err;
  expect_one_message(ended, "is cut short");
  const auto lines = read_json_lines(json_);
  EXPECT_GE(lines.size(), 20u);
  EXPECT_LT(lines.size(), 30u);
}

TEST_F(BadInput, GivenATruncatedMp4_WhenRun_ThenDataErrorThatTellsOfTheCut) {
  const fs::path whole = square_mp4(folder_, 40);
  fs::resize_file(whole, fs::file_size(whole) * 6 / 10);
  const Ended ended = run(whole.string());
  EXPECT_EQ(ended.code, 65) << ended.err;
  expect_one_message(ended, "square.mp4");
  expect_one_message(ended, "is cut short");
}

/// A PNG that says it is as large, and holds nothing.
std::string png_of(std::uint32_t width, std::uint32_t height) {
  const auto number = [](std::uint32_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(char(value >> shift));
    return bytes;
  };
  const auto chunk = [&](const std::string& kind, const std::string& data) {
    std::uint32_t crc = 0xffffffffu;
    for (const char c : kind + data) {
      crc ^= std::uint8_t(c);
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
    }
    return number(std::uint32_t(data.size())) + kind + data + number(~crc);
  };
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR", number(width) + number(height) + std::string("\x08\x06\0\0\0", 5)) +
         chunk("IDAT", std::string("\x78\x9c\x03\0\0\0\0\x01", 8)) + chunk("IEND", "");
}

TEST_F(BadInput, GivenAPictureThatSaysItIsVast_WhenRunOrTried_ThenItIsRefusedBeforeItIsMade) {
  for (const std::uint32_t side : {30000u, 32768u, 65535u}) {
    const fs::path picture = folder_ / str_format("{}.png", side);
    write_file(picture, png_of(side, side));
    const Ended ended = run(picture.string());
    EXPECT_EQ(ended.code, 65) << ended.err;
    expect_one_message(ended, "too large");
    const Ended tried = run_penstock({"model", "try", model_, picture.string()});
    EXPECT_EQ(tried.code, 65) << tried.err;
    expect_one_message(tried, "too large");
  }
}

TEST_F(BadInput, GivenAnMp4WithoutItsIndex_WhenRunAgainAndAgain_ThenItNeverHangs) {
  // What a demuxer says while it is being plugged can be lost, in one of some twenty runs.
  const fs::path whole = square_mp4(folder_, 40);
  fs::resize_file(whole, fs::file_size(whole) * 6 / 10);
  for (int i = 0; i < 12; ++i) {
    const Ended ended = run(whole.string(), {"--out", "video=" + (folder_ / "out.mp4").string()});
    EXPECT_EQ(ended.code, 65) << ended.err;
    expect_one_message(ended, "is cut short");
  }
}

struct Container {
  const char* name;
  const char* muxer;
};

/// Containers that a demuxer plays to the cut without a word.
class CutShort : public BadInput, public testing::WithParamInterface<Container> {};

TEST_P(CutShort, GivenACutInTheMiddle_WhenRun_ThenWhatDecodesIsKeptAndTheMissingBytesAreSaid) {
  const fs::path clip = folder_ / GetParam().name;
  make_square_clip(clip, 40,
                   str_format("openh264enc gop-size=1 ! h264parse ! {}", GetParam().muxer));
  const auto size = fs::file_size(clip);
  const Ended whole = run(clip.string());
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(read_json_lines(json_).size(), 40u);

  fs::resize_file(clip, size * 7 / 10);
  const Ended ended = run(clip.string());
  EXPECT_EQ(ended.code, 65) << ended.err;
  expect_one_message(ended, str_format("{} is cut short", clip.string() + "'"));
  expect_one_message(ended, "bytes of it are missing");
  const auto lines = read_json_lines(json_);
  EXPECT_GE(lines.size(), 15u);
  EXPECT_LT(lines.size(), 40u);
}

INSTANTIATE_TEST_SUITE_P(, CutShort,
                         testing::Values(Container{"cut.mkv", "matroskamux"},
                                         Container{"cut.mp4", "mp4mux faststart=true"},
                                         Container{"fragments.mp4",
                                                   "mp4mux fragment-duration=200"}),
                         [](const auto& tested) {
                           std::string name = tested.param.name;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

TEST_F(BadInput, GivenAContainerOfUnknownSize_WhenItsVideoIsShorterThanItSays_ThenDataError) {
  // FLV states how long it is, and nothing states its size in bytes.
  const fs::path clip = folder_ / "cut.flv";
  make_square_clip(clip, 100, "openh264enc gop-size=1 ! h264parse ! flvmux");
  const Ended whole = run(clip.string());
  EXPECT_EQ(whole.code, 0) << whole.err;
  fs::resize_file(clip, fs::file_size(clip) / 2);
  const Ended ended = run(clip.string());
  EXPECT_EQ(ended.code, 65) << ended.err;
  expect_one_message(ended, "its container says");
}

TEST_F(BadInput, GivenSoundLongerThanTheVideo_WhenRun_ThenItIsNotedAndNoError) {
  const fs::path clip = folder_ / "sound.mkv";
  make_clip(
      clip,
      "matroskamux name=mux audiotestsrc num-buffers=300 ! audio/x-raw,rate=44100,channels=1 ! "
      "mux. "
      "videotestsrc num-buffers=25 ! video/x-raw,format=I420,width=64,height=64,framerate=25/1 ! "
      "openh264enc ! h264parse ! mux. mux.");
  const Ended ended = run(clip.string());
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(read_json_lines(json_).size(), 25u);
  EXPECT_NE(ended.out.find("note: the source may be cut short"), std::string::npos) << ended.out;
}

TEST_F(BadInput, GivenOddSizes_WhenRun_ThenDataErrorNamingTheSize) {
  const fs::path clip = folder_ / "odd.mkv";
  make_clip(
      clip,
      "videotestsrc num-buffers=5 ! video/x-raw,format=I420,width=65,height=49 ! avenc_ffv1 ! "
      "matroskamux");
  const Ended ended = run(clip.string());
  EXPECT_EQ(ended.code, 65) << ended.err;
  expect_one_message(ended, "65x49");
}

TEST_F(BadInput, GivenTenBits_WhenRun_ThenDataErrorNamingThem) {
  const Ended ended =
      run_clip("ten.mkv", "videoconvert ! video/x-raw,format=I420_10LE ! avenc_ffv1 ! matroskamux");
  EXPECT_EQ(ended.code, 65) << ended.err;
  expect_one_message(ended, "10 bits");
}

TEST_F(BadInput, GivenHdr_WhenRun_ThenDataErrorNamingIt) {
  const fs::path clip = folder_ / "hdr.mkv";
  make_clip(clip,
            "videotestsrc num-buffers=5 ! "
            "video/x-raw,format=I420,width=64,height=64,colorimetry=bt2100-pq ! matroskamux");
  const Ended ended = run(clip.string());
  EXPECT_EQ(ended.code, 65) << ended.err;
  expect_one_message(ended, "HDR");
}

TEST_F(BadInput, GivenInterlacedVideo_WhenRun_ThenDataErrorNamingIt) {
  const fs::path clip = folder_ / "interlaced.mkv";
  make_clip(clip,
            "videotestsrc num-buffers=5 ! video/x-raw,format=I420,width=64,height=64 ! "
            "interlace field-pattern=1:1 ! matroskamux");
  const Ended ended = run(clip.string());
  EXPECT_EQ(ended.code, 65) << ended.err;
  expect_one_message(ended, "interlaced");
}

class SizeChange : public BadInput {
 protected:
  /// 10 frames of 192x192, then 10 of 160x160, in one H.264 byte stream.
  std::string two_sizes() {
    const std::string stream = "openh264enc ! h264parse ! video/x-h264,stream-format=byte-stream";
    make_square_clip(folder_ / "large.h264", 10, stream);
    make_square_clip(folder_ / "small.h264", 10, stream, 160);
    write_file(folder_ / "both.h264",
               read_text(folder_ / "large.h264") + read_text(folder_ / "small.h264"));
    return (folder_ / "both.h264").string();
  }
};

TEST_F(SizeChange, GivenNoVideoOutput_WhenTheSizeChanges_ThenAnalysisGoesOn) {
  const Ended ended = run(two_sizes());
  EXPECT_EQ(ended.code, 0) << ended.err;
  const auto lines = read_json_lines(json_);
  ASSERT_EQ(lines.size(), 20u);
  for (int n = 0; n < 20; ++n) {
    EXPECT_EQ(lines[std::size_t(n)].width, n < 10 ? 192 : 160) << n;
  }
}

TEST_F(SizeChange, GivenAnMp4Output_WhenTheSizeChanges_ThenItIsClosedAndTheReasonGiven) {
  const std::string video = (folder_ / "out.mp4").string();
  const Ended ended = run(two_sizes(), {"--out", "video=" + video});
  EXPECT_EQ(ended.code, 65) << ended.err;
  expect_one_message(ended, "192x192 to 160x160");
  EXPECT_EQ(read_json_lines(json_).size(), 10u);
  const Decoded decoded = decode_file(video);
  EXPECT_EQ(decoded.error, "");
  EXPECT_EQ(decoded.frames, 10);
}

// ---- the model

class BadModel : public BadInput {
 protected:
  Ended run_model(const std::string& model) {
    return run_penstock({"run", "--source", square_mp4(folder_, 3).string(), "--model", model,
                         "--models", (folder_ / "models").string(), "--out", "json=" + json_});
  }
  std::string with_artefact(const std::string& onnx) {
    model_testing::TestModel model = model_testing::make_square_finder_nanodet(kSide);
    model.onnx = onnx;
    return model_testing::write_model_folder(model, folder_ / "bad").string();
  }
};

TEST_F(BadModel, GivenAnUnknownName_WhenRun_ThenNoInputAndTheWayToGetIt) {
  const Ended ended = run_model("nosuchmodel");
  EXPECT_EQ(ended.code, 66);
  expect_one_message(ended, "penstock model fetch");
}

TEST_F(BadModel, GivenATruncatedModelWithTheRightHash_WhenRun_ThenDataError) {
  const std::string whole = model_testing::make_square_finder_nanodet(kSide).onnx;
  // Within tensors, between nodes, and one byte short.
  for (const std::size_t length :
       {whole.size() / 10, whole.size() / 2, whole.size() * 9 / 10, whole.size() - 1}) {
    const Ended ended = run_model(with_artefact(whole.substr(0, length)));
    EXPECT_EQ(ended.code, 65) << length << " of " << whole.size() << ": " << ended.err;
    expect_one_message(ended, "model");
  }
}

TEST_F(BadModel, GivenAFileThatIsNoModel_WhenRun_ThenDataError) {
  const Ended ended = run_model(with_artefact("This is not ONNX."));
  EXPECT_EQ(ended.code, 65) << ended.err;
  expect_one_message(ended, "model");
}

TEST_F(BadModel, GivenAnEmptyModel_WhenRun_ThenDataError) {
  const Ended ended = run_model(with_artefact(""));
  EXPECT_EQ(ended.code, 65) << ended.err;
  expect_one_message(ended, "model");
}

TEST_F(BadModel, GivenAWrongHash_WhenRun_ThenDataError) {
  const fs::path manifest = square_model(folder_ / "tampered");
  std::ofstream(manifest.parent_path() / "model.onnx", std::ios::binary | std::ios::app) << "x";
  const Ended ended = run_model(manifest.string());
  EXPECT_EQ(ended.code, 65) << ended.err;
  expect_one_message(ended, "model.onnx");
}

TEST_F(BadModel, GivenNoEngineLibrary_WhenRun_ThenNoInput) {
  const Ended ended =
      run(square_mp4(folder_, 3).string(), {"--engine-library", "/no/such/libonnxruntime.so"});
  EXPECT_EQ(ended.code, 66) << ended.err;
  expect_one_message(ended, "/no/such/libonnxruntime.so");
}

TEST_F(BadModel, GivenAnEngineLibraryThatIsNone_WhenRun_ThenUnavailable) {
  const fs::path library = folder_ / "libonnxruntime.so";
  write_file(library, "This is no library.");
  const Ended ended = run(square_mp4(folder_, 3).string(), {"--engine-library", library.string()});
  EXPECT_EQ(ended.code, 69) << ended.err;
  expect_one_message(ended, library.string());
}

TEST_F(BadModel, GivenAnEngineLibraryThatIsNotUtf8_WhenRun_ThenItIsNotReplacedByTheDefault) {
  const Ended ended =
      run(square_mp4(folder_, 3).string(), {"--engine-library", "/no/such/\xff.so"});
  EXPECT_EQ(ended.code, 66) << ended.err;
  expect_one_message(ended, "/no/such/");
}

TEST_F(BadModel, GivenNoProviderLibrary_WhenRun_ThenNoInput) {
  const Ended ended =
      run(square_mp4(folder_, 3).string(), {"--provider-library", "/no/such/libprovider.so"});
  EXPECT_EQ(ended.code, 66) << ended.err;
  expect_one_message(ended, "provider library '/no/such/libprovider.so'");
}

// ---- the outputs

TEST_F(BadInput, GivenAVideoThatIsAPipe_WhenRun_ThenUsageErrorAtOnce) {
  const std::string clip = square_mp4(folder_, 3).string();
  const std::string fifo = (folder_ / "video.fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const Ended ended = run(clip, {"--out", "video=" + fifo});
  EXPECT_EQ(ended.code, 64) << ended.err;
  expect_one_message(ended, "is a pipe");
  EXPECT_FALSE(fs::exists(json_)) << "created before the check";
  // The test's stdout is a pipe, too.
  EXPECT_EQ(run(clip, {"--out", "video=/dev/stdout"}).code, 64);
}

TEST_F(BadInput, GivenJsonOnStdout_WhenRunIntoAFile_ThenItHoldsTheLinesAndTheTableIsOnStderr) {
  const std::string clip = square_mp4(folder_, 12).string();
  const fs::path out = folder_ / "stdout.jsonl";
  for (const char* name : {"/dev/stdout", "stdout.jsonl"}) {
    const Ended ended = run_penstock(
        {"run", "--source", clip, "--model", model_, "--out", "json=" + (folder_ / name).string()},
        {.out_file = out});
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(read_json_lines(out).size(), 12u) << read_text(out);
    EXPECT_NE(ended.err.find("frames      12"), std::string::npos) << ended.err;
  }
}

TEST_F(BadInput, GivenTooFewDescriptors_WhenRun_ThenAMessageAndNoCrash) {
  const std::string clip = square_mp4(folder_, 3).string();
  for (int limit = 6; limit <= 12; ++limit) {
    const Ended ended = run(clip, {}, {.open_files_limit = limit});
    EXPECT_EQ(ended.code, 71) << limit << ": " << ended.err;
    expect_one_message(ended, "ulimit -n");
  }
}

TEST_F(BadInput, GivenAnOutputThatCantBeCreated_WhenRun_ThenCannotCreate) {
  const std::string clip = square_mp4(folder_, 3).string();
  for (const char* kind : {"video", "json", "report"}) {
    const Ended ended = run_penstock({"run", "--source", clip, "--model", model_, "--out",
                                      std::string(kind) + "=/no/such/folder/out"});
    EXPECT_EQ(ended.code, 73) << kind << ended.err;
    expect_one_message(ended, "/no/such/folder/out");
  }
}

TEST_F(BadInput, GivenAFullDisk_WhenRun_ThenIoErrorOnce) {
  const std::string clip = square_mp4(folder_, 30).string();
  for (const char* kind : {"video", "json", "report"}) {
    const Ended ended = run_penstock(
        {"run", "--source", clip, "--model", model_, "--out", std::string(kind) + "=/dev/full"});
    EXPECT_EQ(ended.code, 74) << kind << ended.err;
    expect_one_message(ended, "/dev/full");
  }
}

TEST_F(BadInput, GivenAVideoThatOutgrowsItsRoom_WhenRun_ThenIoErrorOnceAndTheJsonIsComplete) {
  const fs::path clip = folder_ / "snow.mkv";
  // Snow: an MP4 of some kilobytes a frame, beside a JSON line of a hundred bytes.
  make_clip(clip,
            "videotestsrc pattern=snow num-buffers=300 ! "
            "video/x-raw,format=I420,width=192,height=192,framerate=25/1 ! openh264enc ! "
            "h264parse ! matroskamux");
  const std::string video = (folder_ / "out.mp4").string();
  const Ended ended =
      run(clip.string(), {"--out", "video=" + video}, {.file_size_limit = 100 << 10});
  EXPECT_EQ(ended.code, 74) << ended.err;
  expect_one_message(ended, "out.mp4");
  const auto lines = read_json_lines(json_);
  EXPECT_GE(lines.size(), 5u);
  EXPECT_LT(lines.size(), 300u);
  for (std::size_t n = 0; n < lines.size(); ++n) EXPECT_EQ(lines[n].frame, (long long)n);
  EXPECT_NE(ended.out.find(str_format("frames      {}\n", lines.size())), std::string::npos)
      << ended.out;
}

class SameFile : public BadInput {
 protected:
  void SetUp() override {
    BadInput::SetUp();
    clip_ = square_mp4(folder_, 3);
    whole_ = read_text(clip_);
  }
  void expect_refused(const fs::path& output, const std::string& part,
                      const std::vector<std::string>& more = {}) {
    for (const char* kind : {"video", "report"}) {
      std::vector<std::string> arguments{"--out", std::string(kind) + "=" + output.string()};
      arguments.insert(arguments.end(), more.begin(), more.end());
      const Ended ended = run(clip_.string(), arguments);
      EXPECT_EQ(ended.code, 64) << kind << ended.err;
      expect_one_message(ended, part);
      EXPECT_EQ(read_text(clip_), whole_);
    }
  }
  fs::path clip_;
  std::string whole_;
};

TEST_F(SameFile, GivenTheSourceAsOutput_WhenRun_ThenUsageErrorAndTheSourceIsKept) {
  expect_refused(clip_, "is the source itself");
  fs::create_hard_link(clip_, folder_ / "hard.mp4");
  expect_refused(folder_ / "hard.mp4", "is the source itself");
  fs::create_symlink(clip_, folder_ / "soft.mp4");
  expect_refused(folder_ / "soft.mp4", "is the source itself");
  EXPECT_FALSE(fs::exists(json_)) << "created before the check";
}

TEST_F(SameFile, GivenAFileOfTheModelAsOutput_WhenRun_ThenUsageErrorAndItIsKept) {
  const fs::path onnx = fs::path(model_).parent_path() / "model.onnx";
  const std::string manifest = read_text(model_), network = read_text(onnx);
  expect_refused(model_, "is the model's manifest");
  expect_refused(onnx, "is a file of the model");
  fs::create_symlink(onnx, folder_ / "soft.onnx");
  expect_refused(folder_ / "soft.onnx", "is a file of the model");
  EXPECT_EQ(read_text(model_), manifest);
  EXPECT_EQ(read_text(onnx), network);
}

TEST_F(SameFile, GivenOneFileForTwoOutputs_WhenItDoesNotExistYet_ThenUsageError) {
  expect_refused(json_, "are one file");
  expect_refused(folder_ / "." / "here" / ".." / "out.jsonl", "are one file");
  fs::create_symlink("out.jsonl", folder_ / "soft");
  expect_refused(folder_ / "soft", "are one file");
  fs::create_directory_symlink(folder_, folder_ / "again");
  expect_refused(folder_ / "again" / "out.jsonl", "are one file");
  EXPECT_FALSE(fs::exists(json_)) << "created before the check";
}

TEST_F(SameFile, GivenOneFileForTwoOutputs_WhenItExists_ThenUsageErrorAndItIsKept) {
  write_file(json_, "precious");
  expect_refused(json_, "are one file");
  fs::create_hard_link(json_, folder_ / "hard");
  expect_refused(folder_ / "hard", "are one file");
  fs::create_symlink(json_, folder_ / "soft");
  expect_refused(folder_ / "soft", "are one file");
  EXPECT_EQ(read_text(json_), "precious");
}

TEST_F(SameFile, GivenADeviceForTwoOutputs_WhenRun_ThenItIsFine) {
  const Ended ended = run_penstock({"run", "--source", clip_.string(), "--model", model_, "--out",
                                    "json=/dev/null", "--out", "report=/dev/null"});
  EXPECT_EQ(ended.code, 0) << ended.err;
}

// ---- usage

TEST_F(BadInput, GivenANumberThatIsNone_WhenRun_ThenUsageError) {
  const std::string clip = square_mp4(folder_, 3).string();
  for (const char* flag : {"--threshold", "--iou-threshold"}) {
    for (const char* value : {"nan", "-nan", "inf", "1.01", "-0.1", "0.5x", ""}) {
      const Ended ended = run(clip, {flag, value});
      EXPECT_EQ(ended.code, 64) << flag << " " << value << ": " << ended.err;
    }
  }
  const Ended ended = run_penstock({"model", "bench", model_, "--seconds", "nan"});
  EXPECT_EQ(ended.code, 64) << ended.err;
}

TEST(Usage, GivenWrongCommandLines_WhenRun_ThenUsageError) {
  const std::vector<std::vector<std::string>> lines{
      {},
      {"nonsense"},
      {"run"},
      {"run", "--source", "a.mp4"},
      {"run", "--source", "a.mp4", "--model", "m", "--no-such-flag"},
      {"run", "--source", "a.mp4", "--model", "m", "--policy", "fastest"},
      {"run", "--source", "a.mp4", "--model", "m", "--threshold", "2"},
      {"run", "--source", "a.mp4", "--model", "m", "--out", "picture=a.png"},
      {"run", "--source", "a.mp4", "--model", "m", "--out", "json="},
      {"run", "--source", "a.mp4", "--model", "m", "--out", "json=a", "--out", "json=b"},
      {"run", "--source", "a.mp4", "--model", "m", "--device", "toaster"},
      {"model"},
      {"model", "fetch"},
  };
  for (const auto& line : lines) {
    std::string text;
    for (const std::string& word : line) text += word + " ";
    const Ended ended = run_penstock(line);
    EXPECT_EQ(ended.code, 64) << text << ended.err;
    EXPECT_FALSE(ended.err.empty()) << text;
  }
}

}  // namespace
}  // namespace penstock::e2e
