// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/rogue_camera.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock::e2e {
namespace {

constexpr int kDripEvery = 500;  // ms

/// The value of "CSeq" in a request.
std::string number_of(const std::string& request) {
  const std::size_t at = request.find("CSeq: ");
  return at == std::string::npos ? "1" : request.substr(at + 6, request.find('\r', at) - at - 6);
}

}  // namespace

RogueCamera::RogueCamera(Manner manner) : manner_(manner) {
  listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* general = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener_.get(), general, size), 0);
  EXPECT_EQ(::getsockname(listener_.get(), general, &size), 0);
  EXPECT_EQ(::listen(listener_.get(), 16), 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

RogueCamera::~RogueCamera() {
  ended_ = true;
  const std::uint64_t one = 1;
  EXPECT_EQ(::write(wake_.get(), &one, sizeof one), ssize_t(sizeof one));
  thread_.join();
}

std::string RogueCamera::address() const { return str_format("rtsp://127.0.0.1:{}/camera", port_); }

void RogueCamera::accept() {
  UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!client.is_valid()) return;
  ++connections_;
  clients_.push_back(std::move(client));
}

bool RogueCamera::serve(int client) const {
  char bytes[8192];
  const ssize_t got = ::recv(client, bytes, sizeof bytes, 0);
  if (got <= 0) return got < 0 && errno == EAGAIN;
  if (manner_ != Manner::kRedirects) return true;
  const std::string request(bytes, std::size_t(got));
  const std::string number = number_of(request);
  const std::string answer =
      request.starts_with("OPTIONS")
          ? str_format(
                "RTSP/1.0 200 OK\r\nCSeq: {}\r\nPublic: OPTIONS, DESCRIBE, SETUP, PLAY\r\n"
                "\r\n",
                number)
          : str_format("RTSP/1.0 302 Moved Temporarily\r\nCSeq: {}\r\nLocation: {}\r\n\r\n", number,
                       address());
  return ::send(client, answer.data(), answer.size(), MSG_NOSIGNAL) == ssize_t(answer.size());
}

void RogueCamera::run() {
  const std::string answer = "RTSP/1.0 200 OK\r\nX-Long: " + std::string(100'000, 'x');
  std::size_t dripped = 0;
  while (!ended_) {
    std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const UniqueFd& client : clients_) fds.push_back({client.get(), POLLIN, 0});
    const int ready = ::poll(fds.data(), fds.size(), manner_ == Manner::kDrips ? kDripEvery : -1);
    for (std::size_t i = clients_.size(); i-- > 0;) {
      const int client = clients_[i].get();
      bool alive = fds[i + 2].revents == 0 || serve(client);
      if (alive && ready == 0) {
        alive = ::send(client, &answer[dripped % answer.size()], 1, MSG_NOSIGNAL) == 1;
      }
      if (!alive) clients_.erase(clients_.begin() + std::ptrdiff_t(i));
    }
    if (ready == 0) ++dripped;
    if ((fds[1].revents & POLLIN) != 0) accept();
  }
}

}  // namespace penstock::e2e
