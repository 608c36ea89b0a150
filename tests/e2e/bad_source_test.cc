// SPDX-License-Identifier: Apache-2.0
//
// What a bad source gets: one clear message, the documented exit code (docs/run.md), no hang.
#include <algorithm>
#include <cstdint>

#include "penstock/base/str_format.h"
#include "tests/e2e/bad_input.h"

namespace penstock::e2e {
namespace {

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

TEST_F(BadInput, GivenPicturesThatTheEncoderCantTake_WhenRun_ThenTheVideoIsRefusedByName) {
  const fs::path clip = folder_ / "small.y4m";
  make_clip(clip, "videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=8,height=8 ! y4menc");
  const Ended ended = run(clip.string(), {"--out", "video=" + (folder_ / "small.mp4").string()});
  EXPECT_NE(ended.code, 0) << ended.err;
  expect_one_message(ended, "pictures of 8x8 can't be encoded as H.264");
}

class NotAllowed : public BadInput {
 protected:
  void SetUp() override {
    BadInput::SetUp();
    // Only as a root whose capabilities can't be dropped, as in some containers: such a process
    // reads every file, and there is nothing to refuse.
    if (!can_bind_by_modes()) GTEST_SKIP() << "this process can't be bound by modes";
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

}  // namespace
}  // namespace penstock::e2e
