// SPDX-License-Identifier: Apache-2.0
//
// `penstock ctl` and a run with a control socket.
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/base/unique_fd.h"
#include "tests/e2e/pipeline_folder.h"

namespace penstock::e2e {
namespace {

constexpr int kFrames = 12;

class CtlTest : public PipelineFolder {
 protected:
  void SetUp() override {
    PipelineFolder::SetUp();
    // Short: a socket's path has 107 bytes at most.
    std::string pattern = "/tmp/penstock-ctl-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    socket_folder_ = pattern;
    socket_ = pattern + "/s";
    clip_ = square_mp4(folder_, kFrames).string();
    write_pipeline(
        str_format("control: {}\nstay-open: true\nsources:\n"
                   "  - {{name: ball, test: {{width: 192, height: 192, rate: 20}}}}\n",
                   socket_));
  }
  void TearDown() override { std::filesystem::remove_all(socket_folder_); }

  Ended ctl(std::vector<std::string> words) const {
    words.insert(words.begin(), {"ctl", "--socket", socket_});
    return run_penstock(words);
  }
  /// Asks until the answer has `text`; the last answer.
  std::string await(const std::string& command, const std::string& text) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    std::string out;
    do {
      out = ctl({command}).out;
    } while (out.find(text) == std::string::npos && std::chrono::steady_clock::now() < end);
    return out;
  }
  std::string clip_, socket_;
  std::filesystem::path socket_folder_;
};

TEST_F(CtlTest, GivenALabelThatTheModelHasNot_WhenASourceIsAddedWithIt_ThenItIsRefused) {
  write_pipeline(
      str_format("control: {}\nstay-open: true\ntrack: true\nsources:\n"
                 "  - {{name: ball, test: {{width: 192, height: 192, rate: 20}}}}\n",
                 socket_));
  PenstockProcess process({"run", yaml_});
  ASSERT_TRUE(process.await_error_output("ball: online")) << process.wait().err;
  const Ended added =
      ctl({"add", "--name", "clip", "--file", clip_, "--lines", "l: 0,0 1,1 @ persn"});
  EXPECT_EQ(added.code, 65);
  EXPECT_NE(added.err.find("line 'l': no model here finds 'persn'"), std::string::npos)
      << added.err;
  process.signal(SIGTERM);
  process.wait();
}

TEST_F(CtlTest, GivenARun_WhenSourcesAreAddedAndRemoved_ThenTheOthersGoOn) {
  PenstockProcess process({"run", yaml_});
  ASSERT_TRUE(process.await_error_output("ball: online")) << process.wait().err;
  Ended answer = ctl({"list"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(answer.out.find("ball "), 0u) << answer.out;
  EXPECT_NE(answer.out.find(" online "), std::string::npos) << answer.out;

  EXPECT_EQ(ctl({"add", "--name", "clip", "--file", clip_}).code, 0);
  ASSERT_TRUE(process.await_error_output("clip: online")) << process.wait().err;
  const std::string stats =
      await("stats", "\"name\":\"clip\",\"address\":\"" + clip_ +
                         "\",\"state\":\"ended\",\"sessions\":1,\"frames\":12");
  EXPECT_NE(stats.find("\"state\":\"ended\""), std::string::npos) << stats;

  answer = ctl({"add", "--name", "ball", "--file", clip_});
  EXPECT_EQ(answer.code, 65);
  EXPECT_NE(answer.err.find("there is a source 'ball' already"), std::string::npos) << answer.err;
  EXPECT_EQ(ctl({"add", "--name", "x", "--file", clip_ + ".missing"}).code, 65);
  EXPECT_EQ(ctl({"add", "--name", "x/y", "--file", clip_}).code, 65);
  EXPECT_EQ(ctl({"remove", "nobody"}).code, 65);

  EXPECT_EQ(ctl({"remove", "ball"}).code, 0);
  // It ends behind what it has.
  std::string left;
  for (int asked = 0; asked < 500; ++asked) {
    left = ctl({"list"}).out;
    if (!left.contains("ball ")) break;
  }
  EXPECT_FALSE(left.contains("ball ")) << left;
  EXPECT_EQ(ctl({"remove", "clip"}).code, 0);
  process.signal(SIGTERM);
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 128 + SIGTERM) << ended.err;
  EXPECT_EQ(lines_by_source()["clip"].size(), std::size_t{kFrames});
  EXPECT_GE(lines_by_source()["ball"].size(), 1u);
  EXPECT_NE(ended.out.find("ball"), std::string::npos) << "removed, and in the table all the same";
  EXPECT_FALSE(std::filesystem::exists(socket_));
}

TEST_F(CtlTest, GivenASourceThatWasRemoved_WhenItsNameIsAddedAgain_ThenItGoesOnWhereItWas) {
  write_pipeline(str_format("control: {}\nstay-open: true\ntrack: {{sure-score: 0.3, "
                            "confirm-frames: 1}}\nsources: []\n",
                            socket_),
                 str_format("  video: \"{}/{{source}}.mp4\"\n", folder_.string()));
  PenstockProcess process({"run", yaml_});
  for (int round = 0; round < 2; ++round) {
    // Also what comes while the removed one is being put away.
    Ended added;
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (added.code != 0 && std::chrono::steady_clock::now() < end) {
      added = ctl({"add", "--name", "cam", "--file", clip_});
    }
    ASSERT_EQ(added.code, 0) << added.err;
    EXPECT_NE(await("stats", "\"state\":\"ended\"").find("\"frames\":12"), std::string::npos);
    EXPECT_EQ(ctl({"remove", "cam"}).code, 0);
  }
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().code, 128 + SIGTERM);
  // Numbers and times that grow are looked at where the lines are read.
  const auto lines = lines_by_source()["cam"];
  ASSERT_EQ(lines.size(), std::size_t{2 * kFrames});
  std::set<long long> first_ids, second_ids;
  for (int n = 0; n < 2 * kFrames; ++n) {
    for (const JsonBox& box : lines[std::size_t(n)].objects) {
      if (box.track_id > 0) (n < kFrames ? first_ids : second_ids).insert(box.track_id);
    }
  }
  ASSERT_FALSE(first_ids.empty());
  ASSERT_FALSE(second_ids.empty());
  EXPECT_GT(*second_ids.begin(), *first_ids.rbegin()) << "no id is another object's";
  for (const char* video : {"cam.mp4", "cam.2.mp4"}) {
    const Decoded decoded = decode_file(folder_ / video);
    EXPECT_EQ(decoded.error, "") << video;
    EXPECT_EQ(decoded.frames, kFrames) << video;
  }
}

TEST_F(CtlTest, GivenASourceThatFails_WhenTheRunEnds_ThenItDecidesTheCodeUnlessItWasRemoved) {
  const std::string bad = (folder_ / "bad.mp4").string();
  const std::string whole = read_text(clip_);
  std::ofstream(bad, std::ios::binary) << whole.substr(0, whole.size() / 2);
  write_pipeline(
      str_format("control: {}\nsources:\n"
                 "  - {{name: bad, file: {}}}\n"
                 "  - {{name: ball, test: {{width: 192, height: 192, rate: 20}}}}\n",
                 socket_, bad));
  for (const bool removed : {false, true}) {
    SCOPED_TRACE(removed);
    PenstockProcess process({"run", yaml_});
    ASSERT_TRUE(process.await_error_output("ball: online")) << process.wait().err;
    EXPECT_TRUE(await("list", "failed").contains("bad "));
    if (removed) {
      EXPECT_EQ(ctl({"remove", "bad"}).code, 0);
    }
    EXPECT_EQ(ctl({"remove", "ball"}).code, 0);
    const Ended ended = process.wait();
    EXPECT_EQ(ended.code, removed ? 0 : 65) << ended.err;
    EXPECT_NE(ended.out.find("bad     failed"), std::string::npos) << ended.out;
  }
}

TEST_F(CtlTest, GivenARunThatWasKilled_WhenStartedAgain_ThenItsSocketIsReplaced) {
  {
    PenstockProcess process({"run", yaml_});
    ASSERT_TRUE(process.await_error_output("ball: online")) << process.wait().err;
    process.signal(SIGKILL);
    process.wait();
  }
  ASSERT_TRUE(std::filesystem::exists(socket_));
  EXPECT_EQ(ctl({"list"}).code, 66);
  PenstockProcess process({"run", yaml_});
  ASSERT_TRUE(process.await_error_output("ball: online")) << process.wait().err;
  EXPECT_EQ(ctl({"list"}).code, 0);
  const Ended second = run_penstock({"run", yaml_});
  EXPECT_EQ(second.code, 71) << second.err;
  EXPECT_NE(second.err.find("another process has it"), std::string::npos) << second.err;
  EXPECT_EQ(ctl({"list"}).code, 0);
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().code, 128 + SIGTERM);
}

TEST_F(CtlTest, GivenClientsThatSendRubbish_WhenARunGoesOn_ThenOthersAreAnswered) {
  PenstockProcess process({"run", yaml_});
  ASSERT_TRUE(process.await_error_output("ball: online")) << process.wait().err;
  const UniqueFd hostile(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::connect(hostile.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const std::string rubbish = "\xff\n{\n[[[[\n" + std::string(30'000, '[') + "\nunfinished";
  ASSERT_EQ(::send(hostile.get(), rubbish.data(), rubbish.size(), MSG_NOSIGNAL),
            ssize_t(rubbish.size()));
  EXPECT_EQ(ctl({"list"}).code, 0);
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().code, 128 + SIGTERM);
}

TEST_F(CtlTest, GivenNoRun_WhenAsked_ThenItIsSaid) {
  const Ended answer = ctl({"list"});
  EXPECT_EQ(answer.code, 66);
  EXPECT_NE(answer.err.find("no run listens there"), std::string::npos) << answer.err;
  EXPECT_EQ(run_penstock({"ctl", "list"}).code, 64);
  EXPECT_EQ(ctl({}).code, 64);
}

TEST_F(CtlTest, GivenASourceThatWasAdded_WhenAnothersVideoWouldBeItsFile_ThenItIsRefused) {
  write_pipeline(str_format("control: {}\nstay-open: true\nsources: []\n", socket_),
                 str_format("  video: \"{}/{{source}}.mp4\"\n", folder_.string()));
  const std::string before = read_text(clip_);
  PenstockProcess process({"run", yaml_});
  Ended added = ctl({"add", "--name", "one", "--file", clip_});
  for (int tries = 0; added.code == 66 && tries < 500; ++tries) {
    added = ctl({"add", "--name", "one", "--file", clip_});
  }
  ASSERT_EQ(added.code, 0) << added.err;
  ASSERT_EQ(std::filesystem::path(clip_).filename(), "square.mp4");
  // Its own file, and then that of a source which is there.
  const Ended own = ctl({"add", "--name", "square", "--file", clip_});
  EXPECT_EQ(own.code, 65) << own.err;
  const std::string copy = (folder_ / "copy.mp4").string();
  std::filesystem::copy_file(clip_, copy);
  const Ended other = ctl({"add", "--name", "square", "--file", copy});
  EXPECT_EQ(other.code, 65) << other.err;
  EXPECT_NE(other.err.find("output '" + clip_ + "' is the source 'one'"), std::string::npos)
      << other.err;
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().code, 128 + SIGTERM);
  EXPECT_EQ(read_text(clip_), before);
}

TEST_F(CtlTest, GivenWhatIsNoSocket_WhenAsked_ThenItIsSaid) {
  for (const std::string& path : {clip_, folder_.string()}) {
    const Ended answer = run_penstock({"ctl", "--socket", path, "list"});
    EXPECT_EQ(answer.code, 66) << path;
    EXPECT_NE(answer.err.find("that is no socket"), std::string::npos) << answer.err;
  }
}

TEST_F(CtlTest, GivenAsManyClientsAsThereMayBe_WhenOneMoreComes_ThenItIs71) {
  PenstockProcess process({"run", yaml_});
  ASSERT_TRUE(process.await_error_output("ball: online")) << process.wait().err;
  std::vector<UniqueFd> clients;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_.copy(address.sun_path, sizeof address.sun_path - 1);
  for (int n = 0; n < 8; ++n) {
    clients.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(
        ::connect(clients.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  const Ended answer = ctl({"list"});
  EXPECT_EQ(answer.code, 71) << answer.err;
  EXPECT_NE(answer.err.find("there are 8 clients"), std::string::npos) << answer.err;
  clients.clear();
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().code, 128 + SIGTERM);
}

}  // namespace
}  // namespace penstock::e2e
