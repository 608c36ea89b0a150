// SPDX-License-Identifier: Apache-2.0
//
// The control socket with clients that behave and others that don't.
#include "penstock/pipeline/control_server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "penstock/pipeline/control_socket.h"

namespace penstock {
namespace {

using std::chrono::seconds;

class ControlServerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::path(testing::TempDir()) / "ctl-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ / "p.sock";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Answers every line with itself in brackets; "big" with a megabyte.
  std::unique_ptr<ControlServer> start() {
    auto server = ControlServer::open(
        path_,
        [](std::string_view line) {
          return line == "big" ? std::string(1 << 20, 'x') : "<" + std::string(line) + ">";
        },
        clock_);
    EXPECT_TRUE(server.has_value()) << server.error().message();
    if (!server) return nullptr;
    EXPECT_TRUE((*server)->start());
    return std::move(*server);
  }
  ErrorKind refusal() {
    auto server = ControlServer::open(path_, [](std::string_view) { return std::string(); });
    EXPECT_FALSE(server.has_value());
    return server ? ErrorKind::kInternal : server.error().kind();
  }
  std::string ask(std::string_view line) {
    auto answer = ask_control(path_, line, seconds(30));
    return answer ? *answer : answer.error().message();
  }
  /// A client that does as it likes.
  UniqueFd connect() { return connect_to(path_).value(); }
  /// What comes until the server closes, or until `enough` bytes have come.
  std::string read(int fd, std::size_t enough = 1 << 22) {
    std::string text;
    char bytes[4096];
    while (text.size() < enough) {
      pollfd wait{fd, POLLIN, 0};
      if (::poll(&wait, 1, 30'000) != 1) return text + " (it stays open)";
      const ssize_t got = ::recv(fd, bytes, sizeof bytes, 0);
      if (got <= 0) return text;
      text.append(bytes, std::size_t(got));
    }
    return text;
  }

  ManualClock clock_;
  std::filesystem::path folder_, path_;
};

TEST_F(ControlServerTest, GivenAServer_WhenAsked_ThenItAnswersAndOnlyItsUserReachesIt) {
  const auto server = start();
  EXPECT_EQ(ask("one"), "<one>");
  EXPECT_EQ(ask("two"), "<two>");
  struct stat info{};
  ASSERT_EQ(::lstat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(ControlServerTest, GivenSeveralLines_WhenTheyComeTogetherOrInPieces_ThenEachIsAnswered) {
  const auto server = start();
  const UniqueFd client = connect();
  ASSERT_EQ(::send(client.get(), "a\nb\nc", 5, 0), 5);
  EXPECT_EQ(read(client.get(), 8), "<a>\n<b>\n");
  ASSERT_EQ(::send(client.get(), "d\n", 2, 0), 2);
  EXPECT_EQ(read(client.get(), 5), "<cd>\n");
}

TEST_F(ControlServerTest, GivenAClientThatSendsNoMore_WhenItSentLines_ThenEachIsAnswered) {
  const auto server = start();
  const UniqueFd client = connect();
  ASSERT_EQ(::send(client.get(), "a\nb\n", 4, 0), 4);
  ASSERT_EQ(::shutdown(client.get(), SHUT_WR), 0);
  EXPECT_EQ(read(client.get()), "<a>\n<b>\n") << "and then it is closed";
}

TEST_F(ControlServerTest, GivenThousandsOfEmptyLines_WhenSent_ThenEachIsAnswered) {
  const auto server = start();
  const UniqueFd client = connect();
  const std::string lines(8000, '\n');
  ASSERT_EQ(::send(client.get(), lines.data(), lines.size(), 0), ssize_t(lines.size()));
  EXPECT_EQ(read(client.get(), 3 * lines.size()).size(), 3 * lines.size());
}

TEST_F(ControlServerTest, GivenTheServerIsGone_WhenAsked_ThenItIsSaidAndTheFileIsGone) {
  start().reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_NE(ask("one").find("no run listens there"), std::string::npos);
}

TEST_F(ControlServerTest, GivenASocketThatADeadProcessLeft_WhenStarted_ThenItIsReplaced) {
  {
    UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.string().copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ASSERT_TRUE(std::filesystem::exists(path_));
  const auto server = start();
  EXPECT_EQ(ask("one"), "<one>");
}

TEST_F(ControlServerTest, GivenALivingServer_WhenAnotherStarts_ThenItIsRefusedAndTheFirstGoesOn) {
  const auto server = start();
  EXPECT_EQ(refusal(), ErrorKind::kExhausted);
  EXPECT_EQ(ask("one"), "<one>");
}

TEST_F(ControlServerTest, GivenAPathThatIsNotOurs_WhenOpened_ThenItIsRefusedAndStays) {
  std::ofstream(path_) << "precious";
  EXPECT_EQ(refusal(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(std::filesystem::file_size(path_), 8u);
  std::filesystem::remove(path_);
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  EXPECT_EQ(refusal(), ErrorKind::kPermission);
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  path_ = folder_ / "missing" / "p.sock";
  EXPECT_EQ(refusal(), ErrorKind::kNotFound);
  path_ = folder_ / std::string(120, 'a');
  EXPECT_EQ(refusal(), ErrorKind::kInvalidArgument);
}

TEST_F(ControlServerTest, GivenALineWithoutEnd_WhenItIsTooLong_ThenTheClientIsDroppedAlone) {
  const auto server = start();
  const UniqueFd client = connect();
  const std::string text(kMaxControlLine + 4096, 'x');
  std::size_t sent = 0;
  while (sent < text.size()) {
    pollfd wait{client.get(), POLLOUT, 0};
    ::poll(&wait, 1, 30'000);
    const ssize_t some = ::send(client.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (some <= 0) break;
    sent += std::size_t(some);
  }
  EXPECT_EQ(read(client.get()).find("{\"ok\":false,\"error\":\"a line has at most"), 0u);
  EXPECT_EQ(ask("one"), "<one>");
}

TEST_F(ControlServerTest, GivenEightClients_WhenANinthComes_ThenItIsToldAndTheOthersStay) {
  const auto server = start();
  std::vector<UniqueFd> clients;
  for (std::size_t i = 0; i < kMaxControlClients; ++i) {
    clients.push_back(connect());
    // Answered, so accepted.
    ASSERT_EQ(::send(clients.back().get(), "a\n", 2, 0), 2);
    EXPECT_EQ(read(clients.back().get(), 4), "<a>\n");
  }
  EXPECT_NE(ask("one").find("there are 8 clients"), std::string::npos);
  clients.pop_back();
  // Its end is noticed before the next is accepted.
  ASSERT_EQ(::send(clients[0].get(), "b\n", 2, 0), 2);
  EXPECT_EQ(read(clients[0].get(), 4), "<b>\n");
  EXPECT_EQ(ask("two"), "<two>");
}

TEST_F(ControlServerTest, GivenAClientThatReadsNothing_WhenItsPatienceIsOver_ThenItIsDropped) {
  const auto server = start();
  const UniqueFd client = connect();
  ASSERT_EQ(::send(client.get(), "big\n", 4, 0), 4);
  EXPECT_EQ(read(client.get(), 1).at(0), 'x');  // It is being answered.
  EXPECT_EQ(ask("settled"), "<settled>");       // The server is past what it did for the client.
  clock_.advance(kControlPatience);
  EXPECT_EQ(ask("one"), "<one>");
  // The rest is less than the answer: what lay in the socket, and then the end.
  const std::string rest = read(client.get());
  EXPECT_LT(rest.size(), std::size_t{1} << 20);
  EXPECT_EQ(rest.find("stays open"), std::string::npos);
}

TEST_F(ControlServerTest, GivenAClientThatSaysNothing_WhenAMinuteHasPassed_ThenItIsDropped) {
  const auto server = start();
  const UniqueFd client = connect();
  ASSERT_EQ(::send(client.get(), "a\n", 2, 0), 2);
  EXPECT_EQ(read(client.get(), 4), "<a>\n");
  EXPECT_EQ(ask("settled"), "<settled>");
  clock_.advance(kControlIdle);
  EXPECT_EQ(ask("one"), "<one>");
  EXPECT_EQ(read(client.get()), "");
}

}  // namespace
}  // namespace penstock
