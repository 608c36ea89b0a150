// SPDX-License-Identifier: Apache-2.0
//
// Sources that make a reader wait (RTSP, FIFO), and stopping by signal: what was written is valid
// and closed.

#include <fcntl.h>
#include <gst/gst.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/base/unique_fd.h"
#include "tests/e2e/clips.h"
#include "tests/e2e/penstock_process.h"
#include "tests/e2e/rtsp_camera.h"

namespace penstock::e2e {
namespace {

class LiveTest : public testing::Test {
 protected:
  void SetUp() override {
    gst_init(nullptr, nullptr);
    folder_ = fresh_folder();
    model_ = square_model(folder_).string();
    json_ = (folder_ / "live.jsonl").string();
    video_ = (folder_ / "live.mp4").string();
  }
  std::filesystem::path folder_;
  std::string model_, json_, video_;
};

TEST_F(LiveTest, GivenAnRtspStreamThatEnds_WhenRun_ThenItsFramesAreThereAndTheRunEnds) {
  RtspCamera camera(60);
  const Ended ended = run_penstock(
      {"run", "--source", camera.address(), "--model", model_, "--out", "json=" + json_});
  EXPECT_EQ(ended.code, 0) << ended.err;
  const auto lines = read_json_lines(json_);
  // The server drops nothing over TCP; the first frames may precede PLAY's answer.
  EXPECT_GE(lines.size(), 50u);
  EXPECT_LE(lines.size(), 60u);
  for (std::size_t n = 0; n < lines.size(); ++n) {
    EXPECT_EQ(lines[n].frame, (long long)n);
    EXPECT_EQ(lines[n].source, camera.address());
    if (n > 0) {
      EXPECT_GT(lines[n].pts_ns, lines[n - 1].pts_ns);
    }
  }
}

TEST_F(LiveTest, GivenNobodyListens_WhenRun_ThenOneMessageAndNoHang) {
  std::string address;
  {
    RtspCamera gone(1);
    address = gone.address();
  }
  const Ended ended = run_penstock({"run", "--source", address, "--model", model_});
  EXPECT_EQ(ended.code, 66) << ended.err;
  EXPECT_NE(ended.err.find(address), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("No connection"), std::string::npos) << ended.err;
}

class PasswordTest : public LiveTest {
 protected:
  static constexpr const char* kPassword = "open-sesame";

  Ended run_camera(const std::string& address) {
    return run_penstock({"--log-level", "trace", "run", "--source", address, "--model", model_,
                         "--out", "json=" + json_, "--out", "report=" + report_});
  }
  void expect_no_password(const Ended& ended) {
    for (const std::string& text : {ended.out, ended.err, read_text(json_), read_text(report_)}) {
      EXPECT_EQ(text.find(kPassword), std::string::npos) << text;
    }
  }
  std::string report_ = (fresh_folder() / "report.html").string();
};

TEST_F(PasswordTest, GivenACameraWithAPassword_WhenRun_ThenItShowsItsVideoAndThePasswordIsNowhere) {
  RtspCamera camera(30, "viewer", kPassword);
  const Ended ended = run_camera(camera.address(std::string("viewer:") + kPassword));
  EXPECT_EQ(ended.code, 0) << ended.err;
  expect_no_password(ended);
  const std::string shown = camera.address("viewer:***");
  const auto lines = read_json_lines(json_);
  ASSERT_GE(lines.size(), 1u);
  EXPECT_EQ(lines[0].source, shown);
  EXPECT_NE(read_text(report_).find(shown), std::string::npos);
}

TEST_F(PasswordTest, GivenAWrongPassword_WhenRun_ThenAccessIsRefusedAndThePasswordIsNowhere) {
  RtspCamera camera(30, "viewer", "another");
  const Ended ended = run_camera(camera.address(std::string("viewer:") + kPassword));
  EXPECT_EQ(ended.code, 77) << ended.err;
  expect_no_password(ended);
  EXPECT_NE(ended.err.find(camera.address("viewer:***")), std::string::npos) << ended.err;
}

TEST_F(PasswordTest, GivenAWrongCommandLine_WhenRun_ThenThePasswordIsNowhere) {
  const std::string address = std::string("rtsp://viewer:") + kPassword + "@127.0.0.1/";
  const std::vector<std::vector<std::string>> wrong = {
      {"run", "--sourcex", address, "--model", model_},
      {"run", "--source", address, address, "--model", model_},
      {"run", "--source=" + address, "--model", model_, "--nonsense=" + address},
      {address},
  };
  for (const auto& arguments : wrong) {
    const Ended ended = run_penstock(arguments);
    EXPECT_EQ(ended.code, 64) << ended.err;
    expect_no_password(ended);
  }
}

TEST_F(PasswordTest, GivenNobodyListens_WhenRun_ThenThePasswordIsNowhere) {
  std::string address;
  {
    RtspCamera gone(1);
    address = gone.address(std::string("viewer:") + kPassword);
  }
  const Ended ended = run_camera(address);
  EXPECT_EQ(ended.code, 66) << ended.err;
  expect_no_password(ended);
}

class StopTest : public LiveTest, public testing::WithParamInterface<int> {};

TEST_P(StopTest, GivenAnEndlessRun_WhenSignalled_ThenOutputsAreValidAndTheCodeTellsTheSignal) {
  RtspCamera camera(0);
  PenstockProcess process({"--log-level", "info", "run", "--source", camera.address(), "--model",
                           model_, "--out", "json=" + json_, "--out", "video=" + video_});
  ASSERT_TRUE(process.await_error_output("first frame of")) << process.wait().err;
  process.signal(GetParam());
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 128 + GetParam()) << ended.err;
  EXPECT_NE(ended.err.find("the outputs are closed"), std::string::npos) << ended.err;
  const auto lines = read_json_lines(json_);
  EXPECT_GE(lines.size(), 1u);
  EXPECT_EQ(read_text(json_).back(), '\n');
  const Decoded decoded = decode_file(video_);
  EXPECT_EQ(decoded.error, "");
  EXPECT_EQ(decoded.frames, int(lines.size()));
}

// `timeout` and a terminal's group send a process what its parent passes on as well.
TEST_F(LiveTest, GivenASignalThatComesTwiceAtOnce_WhenRunning_ThenTheOutputsAreClosed) {
  RtspCamera camera(0);
  PenstockProcess process({"--log-level", "info", "run", "--source", camera.address(), "--model",
                           model_, "--out", "json=" + json_, "--out", "video=" + video_});
  ASSERT_TRUE(process.await_error_output("first frame of")) << process.wait().err;
  process.signal(SIGTERM);
  process.signal(SIGTERM);
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 128 + SIGTERM) << ended.err;
  EXPECT_NE(ended.err.find("the outputs are closed"), std::string::npos) << ended.err;
  EXPECT_EQ(decode_file(video_).error, "");
}

TEST_F(LiveTest, GivenAnOutputThatAnotherRunWrites_WhenRun_ThenItIsRefusedAndLeftAlone) {
  RtspCamera camera(0);
  PenstockProcess first({"--log-level", "info", "run", "--source", camera.address(), "--model",
                         model_, "--out", "json=" + json_});
  ASSERT_TRUE(first.await_error_output("first frame of")) << first.wait().err;
  const Ended second = run_penstock({"run", "--source", square_mp4(folder_, 3).string(), "--model",
                                     model_, "--out", "json=" + json_});
  EXPECT_EQ(second.code, 73) << second.err;
  EXPECT_NE(second.err.find("another run is writing"), std::string::npos) << second.err;
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait().code, 128 + SIGTERM);
  EXPECT_GE(read_json_lines(json_).size(), 1u);
}

TEST_F(LiveTest, GivenAHangupThatIsIgnored_WhenSignalled_ThenTheRunGoesOn) {
  RtspCamera camera(0);
  PenstockProcess process({"--log-level", "info", "run", "--source", camera.address(), "--model",
                           model_, "--out", "json=" + json_},
                          {.hangup_ignored = true});
  ASSERT_TRUE(process.await_error_output("first frame of")) << process.wait().err;
  process.signal(SIGHUP);
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().code, 128 + SIGTERM);
}

class DeletedOutput : public LiveTest, public testing::WithParamInterface<const char*> {};

TEST_P(DeletedOutput, GivenAnOutputThatIsDeletedMeanwhile_WhenTheRunEnds_ThenAnIoErrorNamesIt) {
  RtspCamera camera(0);
  const std::string kind = GetParam();
  const std::filesystem::path output = folder_ / ("gone." + kind);
  PenstockProcess process({"--log-level", "info", "run", "--source", camera.address(), "--model",
                           model_, "--out", kind + "=" + output.string()});
  ASSERT_TRUE(process.await_error_output("first frame of")) << process.wait().err;
  ASSERT_TRUE(std::filesystem::remove(output));
  process.signal(SIGTERM);
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 74) << ended.err;
  EXPECT_NE(ended.err.find("writing '" + output.string() + "': the file was deleted"),
            std::string::npos)
      << ended.err;
}

INSTANTIATE_TEST_SUITE_P(, DeletedOutput, testing::Values("json", "report", "video"));

class FifoTest : public LiveTest {
 protected:
  static constexpr int kFrames = 8;

  void SetUp() override {
    LiveTest::SetUp();
    fifo_ = (folder_ / "clip.fifo").string();
    ASSERT_EQ(::mkfifo(fifo_.c_str(), 0600), 0);
  }
  std::vector<std::string> arguments() const {
    return {"--log-level", "info",          "run",   "--source",       fifo_, "--model", model_,
            "--out",       "json=" + json_, "--out", "video=" + video_};
  }
  /// Writes a clip of kFrames into the FIFO, whose end is not reached before the answer is closed.
  UniqueFd write_clip() const {
    const std::filesystem::path clip = folder_ / "clip.h264";
    // Snow, because it gives a type finder some kilobytes to look at.
    make_clip(clip, str_format("videotestsrc pattern=snow num-buffers={} ! "
                               "video/x-raw,format=I420,width=96,height=96,framerate=25/1 ! "
                               "openh264enc ! h264parse ! video/x-h264,stream-format=byte-stream",
                               kFrames));
    const std::string bytes = read_text(clip);
    // Read-write waits for no reader; non-blocking tells when the clip does not fit the pipe.
    UniqueFd writer(::open(fifo_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    EXPECT_EQ(::write(writer.get(), bytes.data(), bytes.size()), ssize_t(bytes.size()));
    return writer;
  }
  std::string fifo_;
};

TEST_F(FifoTest, GivenAWriter_WhenItClosesTheFifo_ThenAllFramesAreThereAndTheRunEnds) {
  UniqueFd writer = write_clip();
  PenstockProcess process(arguments());
  // Not earlier: a FIFO that nobody has open forgets what was written.
  ASSERT_TRUE(process.await_error_output("waiting for")) << process.wait().err;
  writer.reset();
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(int(read_json_lines(json_).size()), kFrames);
  EXPECT_EQ(decode_file(video_).frames, kFrames);
}

TEST_F(FifoTest, GivenAWriterThatWritesNothing_WhenItCloses_ThenTheSourceIsEmpty) {
  PenstockProcess process(arguments());
  ASSERT_TRUE(process.await_error_output("waiting for")) << process.wait().err;
  UniqueFd(::open(fifo_.c_str(), O_WRONLY | O_CLOEXEC)).reset();
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 65) << ended.err;
  EXPECT_NE(ended.err.find("source '" + fifo_ + "' is empty"), std::string::npos) << ended.err;
}

TEST_F(LiveTest, GivenTheNullDevice_WhenRun_ThenTheSourceIsEmpty) {
  const Ended ended = run_penstock({"run", "--source", "/dev/null", "--model", model_});
  EXPECT_EQ(ended.code, 65) << ended.err;
  EXPECT_NE(ended.err.find("source '/dev/null' is empty"), std::string::npos) << ended.err;
}

class FifoStopTest : public FifoTest, public testing::WithParamInterface<int> {};

TEST_P(FifoStopTest, GivenNoWriter_WhenSignalled_ThenTheRunEndsAndTheCodeTellsTheSignal) {
  PenstockProcess process(arguments());
  ASSERT_TRUE(process.await_error_output("waiting for")) << process.wait().err;
  process.signal(GetParam());
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 128 + GetParam()) << ended.err;
  EXPECT_NE(ended.err.find("the outputs are closed"), std::string::npos) << ended.err;
  EXPECT_EQ(read_text(json_), "");
  EXPECT_FALSE(std::filesystem::exists(video_));
}

TEST_P(FifoStopTest, GivenAWriterThatPauses_WhenSignalled_ThenWhatCameIsInClosedOutputs) {
  const UniqueFd writer = write_clip();
  PenstockProcess process(arguments());
  ASSERT_TRUE(process.await_error_output("first frame of")) << process.wait().err;
  process.signal(GetParam());
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 128 + GetParam()) << ended.err;
  EXPECT_NE(ended.err.find("the outputs are closed"), std::string::npos) << ended.err;
  const auto lines = read_json_lines(json_);
  EXPECT_GE(lines.size(), 1u);
  const Decoded decoded = decode_file(video_);
  EXPECT_EQ(decoded.error, "");
  EXPECT_EQ(decoded.frames, int(lines.size()));
}

class SetUpStopTest : public LiveTest, public testing::WithParamInterface<int> {};

TEST_P(SetUpStopTest, GivenASetUpThatWaits_WhenSignalled_ThenNothingIsAnalysedAndTheCodeTells) {
  // A FIFO for the JSON holds the set-up where its reader has it.
  ASSERT_EQ(::mkfifo(json_.c_str(), 0600), 0);
  const std::string clip = square_mp4(folder_, 5).string();
  PenstockProcess process({"--log-level", "info", "run", "--source", clip, "--model", model_,
                           "--out", "json=" + json_, "--out", "video=" + video_});
  ASSERT_TRUE(process.await_error_output("setting up for")) << process.wait().err;
  process.signal(GetParam());
  const UniqueFd reader(::open(json_.c_str(), O_RDONLY | O_CLOEXEC));
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 128 + GetParam()) << ended.err;
  EXPECT_NE(ended.err.find("stopped by a signal after 0 frames"), std::string::npos) << ended.err;
  EXPECT_EQ(ended.err.find("waiting for"), std::string::npos) << "it went on: " << ended.err;
  char byte = 0;
  EXPECT_EQ(::read(reader.get(), &byte, 1), 0);
  EXPECT_FALSE(std::filesystem::exists(video_));
}

INSTANTIATE_TEST_SUITE_P(, SetUpStopTest, testing::Values(SIGINT, SIGTERM));
INSTANTIATE_TEST_SUITE_P(, FifoStopTest, testing::Values(SIGINT, SIGTERM));
INSTANTIATE_TEST_SUITE_P(, StopTest, testing::Values(SIGINT, SIGTERM, SIGHUP));

}  // namespace
}  // namespace penstock::e2e
