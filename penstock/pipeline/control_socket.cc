// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/control_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <system_error>

#include "penstock/base/clock.h"
#include "penstock/base/deadline.h"
#include "penstock/base/str_format.h"

namespace penstock {
namespace {

std::unexpected<Error> failed(ErrorKind kind, const std::filesystem::path& path,
                              const std::string& why) {
  return fail(kind, str_format("control socket '{}': {}", path.string(), why));
}

std::string text_of(int error) { return std::generic_category().message(error); }

Result<sockaddr_un> address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.empty() || text.size() >= sizeof address.sun_path) {
    return failed(ErrorKind::kInvalidArgument, path,
                  str_format("a socket's path has 1 to {} bytes", sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, text.data(), text.size());
  return address;
}

const sockaddr* as_sockaddr(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

constexpr Nanoseconds kLockPatience = std::chrono::seconds(2);

/// The folder, in which nobody else may write.
Result<UniqueFd> open_folder(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_valid()) {
    const auto kind = errno == EACCES ? ErrorKind::kPermission : ErrorKind::kNotFound;
    return failed(kind, path, str_format("its folder: {}", text_of(errno)));
  }
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return failed(ErrorKind::kIo, path, text_of(errno));
  if (info.st_uid != ::geteuid()) {
    return failed(ErrorKind::kPermission, path,
                  "its folder belongs to another user; give one of your own");
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return failed(ErrorKind::kPermission, path,
                  "others may write to its folder; give one that only you may write to");
  }
  return fd;
}

/// The folder, locked while the socket in it is made: two that start at one moment would each take
/// the other's for one that a dead process left.
Result<UniqueFd> lock_folder(const std::filesystem::path& path) {
  auto fd = open_folder(path);
  if (!fd) return fd;
  // Whoever may read the folder may lock it.
  const Deadline deadline = Deadline::after(Clock::system(), kLockPatience);
  while (::flock(fd->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR && errno != EWOULDBLOCK) {
      return failed(ErrorKind::kIo, path, text_of(errno));
    }
    if (deadline.passed(Clock::system())) {
      return failed(ErrorKind::kExhausted, path, "another process has its folder locked");
    }
    ::poll(nullptr, 0, 10);
  }
  return fd;
}

/// Whether a socket, which would be replaced, is at `path`; kInvalidArgument for anything else.
Result<bool> find_socket(const std::filesystem::path& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return false;
  if (S_ISSOCK(info.st_mode)) return true;
  return failed(ErrorKind::kInvalidArgument, path, "there is something else than a socket");
}

/// Makes room for a new socket.
Result<void> clear(const std::filesystem::path& path) {
  const auto found = find_socket(path);
  if (!found) return std::unexpected(found.error());
  if (!*found) return {};
  auto other = connect_to(path);
  if (other) {
    return failed(ErrorKind::kExhausted, path, "another process has it; give each run its own");
  }
  if (other.error().kind() != ErrorKind::kNotFound) {
    return std::unexpected(std::move(other).error());
  }
  if (::unlink(path.c_str()) == 0) return {};
  return failed(ErrorKind::kIo, path, str_format("cannot be replaced: {}", text_of(errno)));
}

}  // namespace

std::uint64_t inode_of(const std::filesystem::path& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 ? std::uint64_t{info.st_ino} : 0;
}

bool is_trusted_peer(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

Result<UniqueFd> connect_to(const std::filesystem::path& path) {
  const auto address = address_of(path);
  if (!address) return std::unexpected(address.error());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_valid()) return failed(ErrorKind::kExhausted, path, text_of(errno));
  if (::connect(fd.get(), as_sockaddr(*address), sizeof *address) == 0) return fd;
  switch (errno) {
    case ECONNREFUSED:
      if (std::error_code ec; !std::filesystem::is_socket(path, ec)) {
        return failed(ErrorKind::kNotFound, path, "that is no socket");
      }
      [[fallthrough]];
    case ENOENT:
    case ENOTDIR:
      return failed(ErrorKind::kNotFound, path, "no run listens there");
    case EACCES:
    case EPERM:
      return failed(ErrorKind::kPermission, path, text_of(errno));
    case EAGAIN:
      return failed(ErrorKind::kExhausted, path, "too many clients wait for an answer");
    default:
      return failed(ErrorKind::kIo, path, text_of(errno));
  }
}

Result<void> check_listenable(const std::filesystem::path& path) {
  if (const auto address = address_of(path); !address) return std::unexpected(address.error());
  if (const auto folder = open_folder(path); !folder) return std::unexpected(folder.error());
  if (const auto found = find_socket(path); !found) return std::unexpected(found.error());
  return {};
}

Result<ListeningSocket> listen_at(const std::filesystem::path& path) {
  const auto address = address_of(path);
  if (!address) return std::unexpected(address.error());
  const auto folder = lock_folder(path);
  if (!folder) return std::unexpected(folder.error());
  PENSTOCK_TRY(clear(path));
  ListeningSocket socket;
  socket.fd.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.fd.is_valid()) return failed(ErrorKind::kExhausted, path, text_of(errno));
  if (::bind(socket.fd.get(), as_sockaddr(*address), sizeof *address) != 0) {
    return failed(ErrorKind::kIo, path, text_of(errno));
  }
  // Nobody can connect before listen(), so the mode that the umask left for a moment opens nothing.
  if (::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0 || ::listen(socket.fd.get(), 8) != 0) {
    const int error = errno;
    ::unlink(path.c_str());
    return failed(ErrorKind::kIo, path, text_of(error));
  }
  socket.inode = inode_of(path);
  return socket;
}

}  // namespace penstock
