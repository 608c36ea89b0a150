// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/socket_file.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "penstock/base/str_format.h"
#include "penstock/burst/unix_address.h"

namespace penstock {
namespace {

std::unexpected<Error> failed(const std::filesystem::path& path, const char* what, int error) {
  ErrorKind kind = ErrorKind::kIo;
  if (error == EACCES || error == EPERM || error == EROFS) kind = ErrorKind::kPermission;
  if (error == ENOENT || error == ENOTDIR) kind = ErrorKind::kNotFound;
  if (error == EMFILE || error == ENFILE || error == ENOMEM) kind = ErrorKind::kExhausted;
  return fail(kind, str_format("burst socket {}: {}: {}", path.string(), what,
                               std::generic_category().message(error)));
}

/// Whether a file at `path` is in the way: a dead server's socket is taken away.
Result<void> make_way(const std::filesystem::path& path, const UnixAddress& address) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? Result<void>() : failed(path, "looking at it", errno);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("burst socket {}: something else has this name", path.string()));
  }
  const UniqueFd probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.is_valid()) return failed(path, "socket", errno);
  if (::connect(probe.get(), address.get(), address.size()) == 0 || errno != ECONNREFUSED) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("burst socket {}: a server listens there", path.string()));
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed(path, "taking it away", errno);
  return {};
}

}  // namespace

Result<SocketFile> SocketFile::listen(const std::filesystem::path& path) {
  const auto address = UnixAddress::of(path);
  if (!address) return std::unexpected(address.error());
  PENSTOCK_TRY(make_way(path, *address));
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_valid()) return failed(path, "socket", errno);
  // The file gets the socket's mode: it is never there with another one.
  if (::fchmod(socket.get(), 0600) != 0) return failed(path, "its mode", errno);
  if (::bind(socket.get(), address->get(), address->size()) != 0) {
    return failed(path, "bind", errno);
  }
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return failed(path, "looking at it", errno);
  SocketFile file(std::move(socket), path, info.st_dev, info.st_ino);
  if (::listen(file.fd(), 64) != 0) return failed(path, "listen", errno);
  return file;
}

SocketFile::~SocketFile() {
  if (socket_.is_valid()) remove_name();
}

void SocketFile::remove_name() {
  struct stat info{};
  if (::lstat(path_.c_str(), &info) != 0) return;
  if (info.st_dev == device_ && info.st_ino == number_) ::unlink(path_.c_str());
}

}  // namespace penstock
