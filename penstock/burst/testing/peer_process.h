// SPDX-License-Identifier: Apache-2.0
//
// Starts queue_peer and talks to it. The child is killed and waited for at the latest when this
// goes.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/burst/fd_socket.h"
#include "penstock/burst/testing/queue_script.h"

namespace penstock::testing {

class PeerProcess {
 public:
  PeerProcess(const std::string& what, std::uint64_t count, unsigned seed = 1) {
    static std::atomic<int> number{0};
    const std::string name = str_format("penstock-test-{}-{}", ::getpid(), ++number);
    const UniqueFd listening = listen_at(name);
    const std::string count_text = std::to_string(count);
    const std::string seed_text = std::to_string(seed);
    const std::array<const char*, 6> arguments = {PENSTOCK_QUEUE_PEER, name.c_str(),
                                                  what.c_str(),        count_text.c_str(),
                                                  seed_text.c_str(),   nullptr};
    pid_ = ::fork();
    if (pid_ == 0) {
      ::execv(PENSTOCK_QUEUE_PEER, const_cast<char* const*>(arguments.data()));
      ::_exit(127);
    }
    pollfd polled{.fd = listening.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&polled, 1, 20000), 1) << "the peer does not connect";
    socket_.emplace(UniqueFd(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  }
  ~PeerProcess() {
    if (pid_ <= 0) return;
    kill();
    wait();
  }
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  const FdSocket& socket() const { return socket_.value(); }

  void send(const QueueDescriptor& descriptor) const {
    std::vector<int> files;
    for (const UniqueFd& file : descriptor.files) files.push_back(file.get());
    const auto sent = socket().send(encode(descriptor), files, soon());
    EXPECT_TRUE(sent) << sent.error().message();
  }
  Result<QueueDescriptor> receive() const {
    auto message = socket().receive(soon());
    if (!message) return std::unexpected(message.error());
    return decode_descriptor(message->bytes, std::move(message->files));
  }
  void await_ready() const {
    const auto message = socket().receive(soon());
    EXPECT_TRUE(message) << message.error().message();
  }
  void tell() const { EXPECT_TRUE(socket().send(std::as_bytes(std::span("go", 2)), {}, soon())); }

  void kill() const { ::kill(pid_, SIGKILL); }
  /// Its exit code, or minus the signal.
  int wait() {
    int status = 0;
    while (::waitpid(std::exchange(pid_, -1), &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  static UniqueFd listen_at(const std::string& name) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd.get(), 1), 0);
    return fd;
  }

  pid_t pid_ = -1;
  std::optional<FdSocket> socket_;
};

}  // namespace penstock::testing
