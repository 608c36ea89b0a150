// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/fd_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <string>
#include <system_error>

#include "penstock/base/clock.h"
#include "penstock/base/str_format.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5; missing in older headers.
#endif

namespace penstock {
namespace {

std::unexpected<Error> failed(ErrorKind kind, const std::string& why) {
  return fail(kind, "burst socket: " + why);
}

std::unexpected<Error> failed(const char* what, int error) {
  const bool closed = error == EPIPE || error == ECONNRESET || error == ENOTCONN;
  return failed(closed ? ErrorKind::kNotFound : ErrorKind::kIo,
                str_format("{}: {}", what, std::generic_category().message(error)));
}

Result<void> check_deadline(Deadline deadline) {
  if (deadline.at() != TimePoint::max()) return {};
  return failed(ErrorKind::kInvalidArgument, "a message needs a deadline");
}

/// Waits for `events` (or a hang-up, which the next call reports).
Result<void> wait_for(int fd, short events, Deadline deadline) {
  Clock& clock = Clock::system();
  while (true) {
    const Nanoseconds left =
        deadline.passed(clock) ? Nanoseconds::zero() : deadline.at() - clock.now();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    timespec limit{};
    limit.tv_sec = seconds.count();
    limit.tv_nsec = static_cast<long>((left - seconds).count());
    pollfd polled{.fd = fd, .events = events, .revents = 0};
    const int ready = ::ppoll(&polled, 1, &limit, nullptr);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return failed("poll", errno);
    if (deadline.passed(clock)) return failed(ErrorKind::kDeadline, "the deadline passed");
  }
}

// Room for exactly as many descriptors as are allowed: the kernel closes what does not fit and says
// so.
union Control {
  std::array<char, CMSG_SPACE(FdSocket::kMaxFiles * sizeof(int))> bytes;
  cmsghdr alignment;
};

void take_files(msghdr& header, std::vector<UniqueFd>& files) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      files.emplace_back(fd);
    }
  }
}

}  // namespace

Result<std::pair<FdSocket, FdSocket>> FdSocket::pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return failed("socketpair", errno);
  }
  return std::pair(FdSocket(UniqueFd(ends[0])), FdSocket(UniqueFd(ends[1])));
}

Result<void> FdSocket::send(std::span<const std::byte> bytes, std::span<const int> files,
                            Deadline deadline) const {
  if (bytes.empty() || bytes.size() > kMaxBytes || files.size() > kMaxFiles) {
    return failed(
        ErrorKind::kInvalidArgument,
        str_format("a message of {} bytes with {} files; 1 to {} with up to {} are possible",
                   bytes.size(), files.size(), kMaxBytes, kMaxFiles));
  }
  PENSTOCK_TRY(check_deadline(deadline));
  iovec data{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  Control control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!files.empty()) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* const part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(part), files.data(), files.size_bytes());
  }
  while (::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return failed("sending", errno);
    PENSTOCK_TRY(wait_for(socket_.get(), POLLOUT, deadline));
  }
  return {};
}

Result<FdMessage> FdSocket::receive(Deadline deadline) const {
  PENSTOCK_TRY(check_deadline(deadline));
  FdMessage message;
  message.bytes.resize(kMaxBytes);
  iovec data{.iov_base = message.bytes.data(), .iov_len = message.bytes.size()};
  Control control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  ssize_t size = -1;
  bool was_reset = false;
  while (true) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = sizeof control.bytes;
    size = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (size >= 0) break;
    // A peer that closed without reading our last message is reported once, before what it sent.
    if (errno == EINTR || (errno == ECONNRESET && !std::exchange(was_reset, true))) continue;
    if (errno != EAGAIN) return failed("receiving", errno);
    PENSTOCK_TRY(wait_for(socket_.get(), POLLIN, deadline));
  }
  take_files(header, message.files);
  if ((header.msg_flags & MSG_CTRUNC) != 0 && message.files.size() < kMaxFiles) {
    return failed(ErrorKind::kExhausted,
                  "this process can't take the files of a message; raise its limit of open files");
  }
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return failed(ErrorKind::kCorrupt,
                  str_format("a message of more than {} bytes or {} files", kMaxBytes, kMaxFiles));
  }
  if (size == 0) return failed(ErrorKind::kNotFound, "the peer has closed it");
  message.bytes.resize(static_cast<std::size_t>(size));
  return message;
}

Result<UniqueFd> open_pidfd(pid_t pid) {
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (fd.is_valid()) return fd;
  const int error = errno;
  const ErrorKind kind = error == ESRCH ? ErrorKind::kNotFound : ErrorKind::kUnsupported;
  return failed(kind,
                str_format("watching process {}: {}", pid, std::generic_category().message(error)));
}

Result<UniqueFd> peer_pidfd(const FdSocket& socket) {
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  if (::getsockopt(socket.fd(), SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0) {
    return UniqueFd(pidfd);
  }
  if (errno == ESRCH) return failed(ErrorKind::kNotFound, "the peer's process is gone");
  if (errno != ENOPROTOOPT) return failed("asking for the peer's process", errno);
  // Before Linux 6.5. The number may be another process's by now; then the peer has closed the
  // socket.
  ucred peer{};
  size = sizeof peer;
  if (::getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return failed("asking for the peer's credentials", errno);
  }
  auto opened = open_pidfd(peer.pid);
  if (!opened) return opened;
  pollfd polled{.fd = socket.fd(), .events = POLLRDHUP, .revents = 0};
  if (::poll(&polled, 1, 0) > 0) {
    return failed(ErrorKind::kNotFound, "the peer has closed it");
  }
  return opened;
}

}  // namespace penstock
