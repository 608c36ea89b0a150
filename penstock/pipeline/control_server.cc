// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/control_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "penstock/base/deadline.h"
#include "penstock/base/log.h"
#include "penstock/base/str_format.h"
#include "penstock/pipeline/control_socket.h"

namespace penstock {
namespace {

constexpr std::string_view kTooLong =
    "{\"ok\":false,\"error\":\"a line has at most 65536 bytes\"}\n";
constexpr std::string_view kTooMany =
    "{\"ok\":false,\"kind\":\"exhausted\",\"error\":\"there are 8 clients, which is all\"}\n";

constexpr Nanoseconds kAcceptAgain = std::chrono::seconds(1);

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

/// What could be sent of `text`, which goes; false when the other end is gone.
bool send_some(int fd, std::string& text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return would_block(errno);
    text.erase(0, std::size_t(sent));
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::open(std::filesystem::path path,
                                                           Answer answer, Clock& clock) {
  std::unique_ptr<ControlServer> server(
      new ControlServer(std::move(path), std::move(answer), clock));
  PENSTOCK_TRY(server->listen());
  return server;
}

Result<void> ControlServer::listen() {
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.is_valid()) {
    return fail(
        ErrorKind::kExhausted,
        str_format("control socket '{}': no file descriptor is left (ulimit -n)", path_.string()));
  }
  auto socket = listen_at(path_);
  if (!socket) return std::unexpected(std::move(socket).error());
  listener_ = std::move(socket->fd);
  inode_ = socket->inode;
  return {};
}

ControlServer::~ControlServer() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake_.get(), &one, sizeof one) == sizeof one);
    thread_.join();
  }
  // A later run may have put its own there.
  if (listener_.is_valid() && inode_of(path_) == inode_) ::unlink(path_.c_str());
}

Result<void> ControlServer::start() {
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error& error) {
    return fail(ErrorKind::kExhausted, str_format("control socket '{}': no thread is left: {}",
                                                  path_.string(), error.what()));
  }
  return {};
}

void ControlServer::serve() {
  while (true) {
    std::array<pollfd, kMaxControlClients + 2> fds{};
    fds[0] = {wake_.get(), POLLIN, 0};
    // A client that can't be taken stays, and would wake this at once, again and again.
    fds[1] = {clock_.now() < accept_after_ ? -1 : listener_.get(), POLLIN, 0};
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      const short events = !clients_[i].out.empty()   ? POLLOUT
                           : wants_input(clients_[i]) ? POLLIN
                                                      : 0;
      fds[i + 2] = {clients_[i].fd.get(), events, 0};
    }
    const bool is_behind = std::ranges::any_of(clients_, has_line);
    ::poll(fds.data(), clients_.size() + 2, is_behind ? 0 : 1000);
    if (fds[0].revents != 0) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      Client& client = clients_[i];
      const short got = fds[i + 2].revents;
      bool keep = !is_too_slow(client);
      if (keep && (got & (POLLIN | POLLHUP | POLLERR)) != 0 && wants_input(client)) {
        keep = read(client);
      }
      if (keep && client.out.empty()) answer_line(client);
      if (client.at_end && client.out.empty() && !has_line(client)) keep = false;
      if (keep && !client.out.empty()) keep = write(client);
      if (!keep) continue;
      if (kept != i) clients_[kept] = std::move(client);
      ++kept;
    }
    clients_.resize(kept);
    if ((fds[1].revents & POLLIN) != 0) accept();
  }
}

void ControlServer::accept() {
  UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.is_valid()) {
    if (!would_block(errno) && errno != EINTR && errno != ECONNABORTED) {
      log("control").warn("a client of '{}' waits: {}", path_.string(),
                          std::generic_category().message(errno));
      accept_after_ = clock_.now() + kAcceptAgain;
    }
    return;
  }
  if (!is_trusted_peer(fd.get())) return;
  if (clients_.size() >= kMaxControlClients) {
    std::string text(kTooMany);
    send_some(fd.get(), text);
    return;
  }
  Client& client = clients_.emplace_back();
  client.fd = std::move(fd);
  client.active = clock_.now();
}

bool ControlServer::read(Client& client) {
  std::array<char, 4096> bytes{};
  const ssize_t got = ::recv(client.fd.get(), bytes.data(), bytes.size(), 0);
  if (got < 0) return would_block(errno) || errno == EINTR;
  if (got == 0) {
    client.at_end = true;
    return true;
  }
  client.active = clock_.now();
  client.in.append(bytes.data(), std::size_t(got));
  return true;
}

/// While an answer is under way, or a line waits for one, nothing is read: what the client sends
/// next waits in its socket.
bool ControlServer::wants_input(const Client& client) {
  return client.out.empty() && !client.at_end && client.in.find('\n') == std::string::npos;
}

/// One line at a time, so that a client with thousands of them leaves room for the others.
void ControlServer::answer_line(Client& client) {
  const std::size_t end = std::min(client.in.find('\n'), client.in.size());
  if (end >= kMaxControlLine) {
    client.out = kTooLong;
    client.closing = true;
  } else if (end < client.in.size()) {
    const std::string line = client.in.substr(0, end);
    client.in.erase(0, end + 1);
    client.out = answer_(line) + "\n";
  }
}

bool ControlServer::has_line(const Client& client) {
  return client.out.empty() && client.in.find('\n') != std::string::npos;
}

bool ControlServer::write(Client& client) {
  const std::size_t before = client.out.size();
  if (!send_some(client.fd.get(), client.out)) return false;
  if (client.out.size() != before) client.active = clock_.now();
  return !client.out.empty() || !client.closing;
}

bool ControlServer::is_too_slow(const Client& client) const {
  const Nanoseconds patience = client.out.empty() ? kControlIdle : kControlPatience;
  return clock_.now() - client.active >= patience;
}

Result<std::string> ask_control(const std::filesystem::path& path, std::string_view line,
                                Nanoseconds timeout) {
  Clock& clock = Clock::system();
  const Deadline deadline = Deadline::after(clock, timeout);
  auto fd = connect_to(path);
  if (!fd) return std::unexpected(std::move(fd).error());
  std::string out = std::string(line) + "\n";
  std::string in;
  while (in.find('\n') == std::string::npos) {
    if (deadline.passed(clock)) {
      return fail(ErrorKind::kDeadline,
                  str_format("control socket '{}': no answer came", path.string()));
    }
    pollfd wait{fd->get(), short(out.empty() ? POLLIN : POLLIN | POLLOUT), 0};
    ::poll(&wait, 1, 100);
    if (!send_some(fd->get(), out)) out.clear();  // Its last words may still be there.
    std::array<char, 4096> bytes{};
    const ssize_t got = ::recv(fd->get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && (would_block(errno) || errno == EINTR)) continue;
    if (got <= 0) {
      return fail(ErrorKind::kIo,
                  str_format("control socket '{}': the run closed the connection", path.string()));
    }
    in.append(bytes.data(), std::size_t(got));
    if (in.size() > (std::size_t{16} << 20)) {
      return fail(ErrorKind::kCorrupt,
                  str_format("control socket '{}': the answer does not end", path.string()));
    }
  }
  return in.substr(0, in.find('\n'));
}

}  // namespace penstock
