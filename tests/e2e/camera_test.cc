// SPDX-License-Identifier: Apache-2.0
//
// Cameras that come and go: a real RTSP server behind a gate that refuses, stalls and resets.
#include <csignal>
#include <set>
#include <string>
#include <vector>

#include "penstock/base/str_format.h"
#include "tests/e2e/pipeline_folder.h"
#include "tests/e2e/rtsp_camera.h"
#include "tests/e2e/tcp_gate.h"

namespace penstock::e2e {
namespace {

/// Two cameras: "door" behind a gate, "yard" that always answers.
class CameraTest : public PipelineFolder {
 protected:
  void write_cameras(const std::string& door, const std::string& yard,
                     const char* stall_after = "30s") const {
    write_pipeline(
        str_format("stall-after: {}\nsources:\n  - {{name: door, uri: \"{}\"}}\n"
                   "  - {{name: yard, uri: \"{}\"}}\n",
                   stall_after, door, yard));
  }
  /// Ends the run, which has been well: every source has ended, none has failed.
  std::string stop(PenstockProcess& process) {
    process.signal(SIGTERM);
    const Ended ended = process.wait();
    EXPECT_EQ(ended.code, 128 + SIGTERM) << ended.err;
    EXPECT_EQ(ended.out.find("failed"), std::string::npos) << ended.out;
    return ended.out + ended.err;
  }
};

TEST_F(CameraTest,
       GivenACameraThatRefuses_WhenItAnswersLater_ThenItsFramesComeAndTheOtherNeverWaits) {
  RtspCamera camera(0), other(0);
  TcpGate gate(camera.port(), false);
  write_cameras(camera.address_at(gate.port()), other.address());
  PenstockProcess process({"run", yaml_});
  ASSERT_TRUE(process.await_error_output("it is dialled again")) << process.wait().err;
  ASSERT_TRUE(process.await_error_output("yard: online")) << process.wait().err;
  gate.open();
  ASSERT_TRUE(process.await_error_output("door: online")) << process.wait().err;
  const std::string said = stop(process);
  auto lines = lines_by_source();
  EXPECT_GE(lines["door"].size(), 1u) << said;
  EXPECT_GT(lines["yard"].size(), lines["door"].size());
}

TEST_F(CameraTest,
       GivenAConnectionThatIsResetInTheMiddle_WhenDialledAgain_ThenNumbersAndTimesGoOn) {
  RtspCamera camera(0), other(0);
  TcpGate gate(camera.port());
  write_cameras(camera.address_at(gate.port()), other.address());
  PenstockProcess process({"run", yaml_});
  ASSERT_TRUE(process.await_error_output("door: online")) << process.wait().err;
  ASSERT_TRUE(process.await_error_output("yard: online")) << process.wait().err;
  gate.reset();
  ASSERT_TRUE(process.await_error_output("door: online", 2)) << process.wait().err;
  const std::string said = stop(process);
  EXPECT_GE(lines_by_source()["door"].size(), 2u);  // Which also looks at numbers and times.
  EXPECT_EQ(said.find("yard: online"), said.rfind("yard: online"))
      << "it was dialled again: " << said;
}

TEST_F(CameraTest, GivenACameraThatFallsSilent_WhenTheTimeIsOver_ThenItIsDialledAgain) {
  RtspCamera camera(0), other(0);
  TcpGate gate(camera.port());
  write_cameras(camera.address_at(gate.port()), other.address(), "4s");
  PenstockProcess process({"run", yaml_});
  ASSERT_TRUE(process.await_error_output("door: online")) << process.wait().err;
  gate.stall();
  ASSERT_TRUE(process.await_error_output("no frame came for 4 s; it is dialled again"))
      << process.wait().err;
  ASSERT_TRUE(process.await_error_output("door: online", 2)) << process.wait().err;
  const std::string said = stop(process);
  EXPECT_EQ(said.find("yard: source"), std::string::npos) << said;
  EXPECT_GE(lines_by_source()["door"].size(), 2u);
}

TEST_F(CameraTest, GivenAWrongPassword_WhenDialled_ThenItIsSaidOnceAndTheSecretNowhere) {
  RtspCamera camera(0, "viewer", "another"), other(0);
  write_cameras(camera.address("viewer:open-sesame"), other.address());
  PenstockProcess process({"--log-level", "trace", "run", yaml_});
  ASSERT_TRUE(process.await_error_output("it is dialled again")) << process.wait().err;
  ASSERT_TRUE(process.await_error_output("yard: online")) << process.wait().err;
  const std::string said = stop(process);
  EXPECT_EQ(said.find("it is dialled again"), said.rfind("it is dialled again")) << said;
  EXPECT_EQ(said.find("open-sesame"), std::string::npos) << said;
  EXPECT_NE(said.find(camera.address("viewer:***")), std::string::npos) << said;
  EXPECT_EQ(lines_by_source().count("door"), 0u);
}

/// Two sizes, one after the other, in one connection.
std::string changing_camera() {
  const auto part = [](int side) {
    return str_format(
        "videotestsrc num-buffers=100 ! video/x-raw,format=I420,width={},height={},"
        "framerate=50/1 ! openh264enc gop-size=10 ! h264parse config-interval=-1 ! "
        "video/x-h264,stream-format=byte-stream,alignment=au ! c. ",
        side, side);
  };
  return part(192) + part(160) + "concat name=c ! rtph264pay name=pay0 pt=96 config-interval=-1";
}

TEST_F(CameraTest, GivenASizeThatChangesMidway_WhenRun_ThenTheFramesOfBothAreThere) {
  RtspCamera camera(changing_camera());
  write_pipeline(str_format("sources:\n  - {{name: door, uri: \"{}\"}}\n", camera.address()));
  PenstockProcess process({"run", yaml_});
  ASSERT_TRUE(process.await_error_output("ended the stream")) << process.wait().err;
  stop(process);
  std::set<int> widths;
  for (const JsonLine& line : lines_by_source()["door"]) widths.insert(line.width);
  EXPECT_EQ(widths, (std::set<int>{160, 192}));
}

TEST_F(CameraTest, GivenASizeThatChangesMidway_WhenThereIsAVideo_ThenTheNextFileHasANumber) {
  RtspCamera camera(changing_camera());
  write_pipeline(str_format("sources:\n  - {{name: door, uri: \"{}\"}}\n", camera.address()),
                 str_format("  video: \"{}/{{source}}.mp4\"\n", folder_.string()));
  PenstockProcess process({"run", yaml_});
  ASSERT_TRUE(process.await_error_output("door: online", 2)) << process.wait().err;
  stop(process);
  for (const char* name : {"door.mp4", "door.2.mp4"}) {
    const Decoded decoded = decode_file(folder_ / name);
    EXPECT_EQ(decoded.error, "") << name;
    EXPECT_GE(decoded.frames, 1) << name;
  }
}

}  // namespace
}  // namespace penstock::e2e
