// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/tcp_gate.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

namespace penstock::e2e {
namespace {

sockaddr_in address_of(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(std::uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// Makes close() send a reset.
void will_reset(int fd) {
  const linger at_once{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace

TcpGate::TcpGate(int port, bool open) : server_port_(port) {
  listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  sockaddr_in address = address_of(0);
  socklen_t size = sizeof address;
  auto* general = reinterpret_cast<sockaddr*>(&address);
  // Bound but not listening: the port is kept, and clients are refused.
  EXPECT_EQ(::bind(listener_.get(), general, size), 0);
  EXPECT_EQ(::getsockname(listener_.get(), general, &size), 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
  if (open) this->open();
}

TcpGate::~TcpGate() {
  ended_ = true;
  wake();
  thread_.join();
}

void TcpGate::wake() {
  const std::uint64_t one = 1;
  EXPECT_EQ(::write(wake_.get(), &one, sizeof one), ssize_t(sizeof one));
}

void TcpGate::open() {
  const std::lock_guard lock(mutex_);
  if (!listening_) {
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
  }
  listening_ = true;
  wake();
}

void TcpGate::stall() {
  const std::lock_guard lock(mutex_);
  for (Pair& pair : pairs_) pair.stalled = true;
  wake();
}

void TcpGate::reset() {
  const std::lock_guard lock(mutex_);
  for (const Pair& pair : pairs_) {
    will_reset(pair.client.get());
    will_reset(pair.server.get());
  }
  pairs_.clear();
  wake();
}

void TcpGate::accept() {
  Pair pair;
  pair.client.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  pair.server.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = address_of(server_port_);
  if (::connect(pair.server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
      0) {
    pairs_.push_back(std::move(pair));
  }
}

bool TcpGate::forward(int from, int to) {
  char bytes[16384];
  const ssize_t got = ::recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
  if (got <= 0) return got < 0 && errno == EAGAIN;
  for (ssize_t sent = 0; sent < got;) {
    const ssize_t some = ::send(to, bytes + sent, std::size_t(got - sent), MSG_NOSIGNAL);
    if (some <= 0) return false;
    sent += some;
  }
  return true;
}

void TcpGate::run() {
  while (!ended_) {
    std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      fds.push_back({listening_ ? listener_.get() : -1, POLLIN, 0});
      for (const Pair& pair : pairs_) {
        fds.push_back({pair.stalled ? -1 : pair.client.get(), POLLIN, 0});
        fds.push_back({pair.stalled ? -1 : pair.server.get(), POLLIN, 0});
      }
    }
    ::poll(fds.data(), fds.size(), 1000);
    std::uint64_t count = 0;
    const bool changed = ::read(wake_.get(), &count, sizeof count) == ssize_t(sizeof count);
    const std::lock_guard lock(mutex_);
    if (changed) continue;  // The pairs may be others than those that were waited for.
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      const Pair& pair = pairs_[i];
      const bool alive =
          (fds[2 * i + 2].revents == 0 || forward(pair.client.get(), pair.server.get())) &&
          (fds[2 * i + 3].revents == 0 || forward(pair.server.get(), pair.client.get()));
      if (!alive) pairs_.erase(pairs_.begin() + std::ptrdiff_t(i));
    }
    if ((fds[1].revents & POLLIN) != 0) accept();
  }
}

}  // namespace penstock::e2e
