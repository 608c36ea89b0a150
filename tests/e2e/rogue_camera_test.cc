// SPDX-License-Identifier: Apache-2.0
//
// Servers that take connections and are no cameras: an attempt ends after `stall-after`, and nobody
// waits for them.
#include "tests/e2e/rogue_camera.h"

#include <chrono>
#include <csignal>
#include <string>

#include "penstock/base/str_format.h"
#include "tests/e2e/pipeline_folder.h"

namespace penstock::e2e {
namespace {

using std::chrono::steady_clock;

class RogueCameraTest : public PipelineFolder {
 protected:
  void write_camera(const RogueCamera& camera) const {
    write_pipeline(str_format("stall-after: 2s\nsources:\n  - {{name: door, uri: \"{}\"}}\n",
                              camera.address()));
  }
  /// Ends the run, which must not take as long as a server could.
  static Ended stop(PenstockProcess& process) {
    const auto begin = steady_clock::now();
    process.signal(SIGTERM);
    Ended ended = process.wait();
    EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(20));
    EXPECT_EQ(ended.code, 128 + SIGTERM) << ended.err;
    EXPECT_TRUE(ended.out.contains("door    ended") || ended.out.contains("door    absent"))
        << "the table: " << ended.out;
    return ended;
  }
};

class DeadCamera : public RogueCameraTest,
                   public testing::WithParamInterface<RogueCamera::Manner> {};

TEST_P(DeadCamera, GivenAConnectionThatBringsNothing_WhenTheTimeIsOver_ThenItIsDialledAgain) {
  RogueCamera camera(GetParam());
  write_camera(camera);
  PenstockProcess process({"--log-level", "info", "run", yaml_});
  ASSERT_TRUE(process.await_error_output("no frame came for 2 s; it is dialled again"))
      << process.wait().err;
  ASSERT_TRUE(process.await_error_output("waiting for", 2)) << process.wait().err;
  stop(process);
}

INSTANTIATE_TEST_SUITE_P(, DeadCamera,
                         testing::Values(RogueCamera::Manner::kSilent,
                                         RogueCamera::Manner::kDrips));

TEST_F(RogueCameraTest, GivenAServerThatNamesItself_WhenFollowed_ThenItIsGivenUpAfterAFew) {
  RogueCamera camera(RogueCamera::Manner::kRedirects);
  write_camera(camera);
  PenstockProcess process({"run", yaml_});
  ASSERT_TRUE(process.await_error_output("it redirects again and again; it is dialled again"))
      << process.wait().err;
  // The first attempt, and what others began before the run was told to end.
  const int connections = camera.connections();
  const Ended ended = stop(process);
  EXPECT_LE(connections, 60) << ended.err;
  EXPECT_GE(connections, 2);
}

}  // namespace
}  // namespace penstock::e2e
