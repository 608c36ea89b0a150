// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/fd_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace penstock {
namespace {

Deadline soon() { return Deadline::after(Clock::system(), std::chrono::seconds(10)); }
const Deadline kPast(TimePoint::min());
const std::vector<std::byte> kHello(5, std::byte{7});

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

class Q04_Socket : public ::testing::Test {
 protected:
  std::pair<FdSocket, FdSocket> ends_ = FdSocket::pair().value();
  const FdSocket& one_ = ends_.first;
  const FdSocket& other_ = ends_.second;

  /// Past the limits that FdSocket keeps itself.
  void send_raw(std::size_t size, std::size_t files) const {
    std::vector<std::byte> bytes(size);
    iovec data{.iov_base = bytes.data(), .iov_len = bytes.size()};
    std::vector<char> control(CMSG_SPACE(files * sizeof(int)));
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    if (files > 0) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* const part = CMSG_FIRSTHDR(&header);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(files * sizeof(int));
      const std::vector<int> copies(files, one_.fd());
      std::memcpy(CMSG_DATA(part), copies.data(), files * sizeof(int));
    }
    ASSERT_EQ(::sendmsg(one_.fd(), &header, 0), static_cast<ssize_t>(size));
  }
};

TEST_F(Q04_Socket, GivenAMessageWithFiles_WhenReceived_ThenBothAreThereAndCloseOnExec) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const UniqueFd reading(pipe[0]);
  UniqueFd writing(pipe[1]);
  ASSERT_TRUE(one_.send(kHello, std::array{writing.get()}, soon()));
  writing.reset();
  const auto message = other_.receive(soon());
  ASSERT_TRUE(message) << message.error().message();
  EXPECT_EQ(message->bytes, kHello);
  ASSERT_EQ(message->files.size(), 1u);
  EXPECT_EQ(::fcntl(message->files[0].get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(::write(message->files[0].get(), "x", 1), 1);
  char got = 0;
  EXPECT_EQ(::read(reading.get(), &got, 1), 1);
  EXPECT_EQ(got, 'x');
}

TEST_F(Q04_Socket, GivenTooManyFilesOrBytes_WhenReceived_ThenTheMessageIsRefusedAndNothingKept) {
  const std::size_t before = open_files();
  for (int i = 0; i < 20; ++i) {
    send_raw(5, FdSocket::kMaxFiles + 1);
    auto message = other_.receive(soon());
    ASSERT_FALSE(message);
    EXPECT_EQ(message.error().kind(), ErrorKind::kCorrupt);
    send_raw(5, 200);
    message = other_.receive(soon());
    ASSERT_FALSE(message);
    EXPECT_EQ(message.error().kind(), ErrorKind::kCorrupt);
    send_raw(FdSocket::kMaxBytes + 1, 3);
    message = other_.receive(soon());
    ASSERT_FALSE(message);
    EXPECT_EQ(message.error().kind(), ErrorKind::kCorrupt);
  }
  EXPECT_EQ(open_files(), before);
  send_raw(FdSocket::kMaxBytes, FdSocket::kMaxFiles);
  const auto message = other_.receive(soon());
  ASSERT_TRUE(message) << message.error().message();
  EXPECT_EQ(message->files.size(), FdSocket::kMaxFiles);
}

TEST_F(Q04_Socket, GivenAProcessOutOfDescriptors_WhenFilesCome_ThenItSaysSoAndBlamesNobody) {
  send_raw(5, 3);
  const std::size_t before = open_files();
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const UniqueFd probe(::dup(one_.fd()));
  const rlimit low = {.rlim_cur = static_cast<rlim_t>(probe.get()) + 1, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const auto message = other_.receive(soon());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().kind(), ErrorKind::kExhausted);
  EXPECT_EQ(open_files(), before + 1);
}

// The kernel reports that our message was not read before it hands out what the peer sent last.
TEST_F(Q04_Socket, GivenAPeerThatAnswersAndGoes_WhenOurMessageWasNotRead_ThenItsAnswerIsReceived) {
  ASSERT_TRUE(one_.send(kHello, {}, soon()));
  const std::vector<std::byte> refusal(3, std::byte{9});
  ASSERT_TRUE(other_.send(refusal, {}, soon()));
  ends_.second = FdSocket(UniqueFd());
  const auto message = one_.receive(soon());
  ASSERT_TRUE(message) << message.error().message();
  EXPECT_EQ(message->bytes, refusal);
  EXPECT_EQ(one_.receive(soon()).error().kind(), ErrorKind::kNotFound);
}

TEST_F(Q04_Socket, GivenNothingToReceive_WhenTheDeadlinePasses_ThenItIsSaid) {
  auto message = other_.receive(kPast);
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().kind(), ErrorKind::kDeadline);
  message = other_.receive(Deadline::after(Clock::system(), std::chrono::milliseconds(5)));
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().kind(), ErrorKind::kDeadline);
  message = other_.receive(Deadline::never());
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().kind(), ErrorKind::kInvalidArgument);
}

TEST_F(Q04_Socket, GivenAPeerThatReadsNothing_WhenSending_ThenTheDeadlineHolds) {
  Result<void> sent;
  while (sent) sent = one_.send(kHello, {}, kPast);
  EXPECT_EQ(sent.error().kind(), ErrorKind::kDeadline);
}

TEST_F(Q04_Socket, GivenAPeerThatHasGone_WhenUsed_ThenItIsSaidAndNoSignalComes) {
  ends_.second = FdSocket(UniqueFd());
  const auto message = one_.receive(soon());
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().kind(), ErrorKind::kNotFound);
  const auto sent = one_.send(kHello, {}, soon());
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().kind(), ErrorKind::kNotFound);
}

TEST_F(Q04_Socket, GivenImpossibleMessages_WhenSent_ThenTheyAreRefused) {
  const std::vector<std::byte> huge(FdSocket::kMaxBytes + 1);
  const std::vector<int> many(FdSocket::kMaxFiles + 1, one_.fd());
  for (const auto& sent :
       {one_.send({}, {}, soon()), one_.send(huge, {}, soon()), one_.send(kHello, many, soon()),
        one_.send(kHello, {}, Deadline::never())}) {
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().kind(), ErrorKind::kInvalidArgument);
  }
}

TEST_F(Q04_Socket, GivenASocketPair_WhenAskedForItsPeer_ThenItIsThisProcess) {
  const auto pidfd = peer_pidfd(one_);
  ASSERT_TRUE(pidfd) << pidfd.error().message();
  pollfd polled{.fd = pidfd->get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&polled, 1, 0), 0) << "this process has ended";
  EXPECT_FALSE(open_pidfd(-1));
}

}  // namespace
}  // namespace penstock
