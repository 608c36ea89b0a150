// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/file_ops.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

ErrorKind kind_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return ErrorKind::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorKind::kPermission;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
      return ErrorKind::kExhausted;
    default:
      return ErrorKind::kIo;
  }
}

std::unexpected<Error> fail_errno(int error, const std::string& what) {
  return fail(kind_of(error), str_format("{}: {}", what, std::generic_category().message(error)));
}

class SystemFileOps final : public FileOps {
 public:
  Result<UniqueFd> create(const std::filesystem::path& path) override {
    int fd = -1;
    do {
      fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) return fail_errno(errno, str_format("cannot create '{}'", path.string()));
    return UniqueFd(fd);
  }

  Result<void> write_all(int fd, std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd, bytes.data(), bytes.size());
      if (written < 0) {
        if (errno == EINTR) continue;
        return fail_errno(errno, str_format("cannot write {} bytes", bytes.size()));
      }
      // POSIX allows 0 only for empty writes; looping on it would never end.
      if (written == 0) return fail(ErrorKind::kIo, "cannot write: the file takes no bytes");
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
  }

  Result<void> sync(int fd) override {
    int rc = -1;
    do {
      rc = ::fsync(fd);
    } while (rc < 0 && errno == EINTR);
    if (rc < 0) return fail_errno(errno, "cannot flush to disk");
    return {};
  }

  Result<void> rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    if (::rename(from.c_str(), to.c_str()) < 0) {
      return fail_errno(errno,
                        str_format("cannot rename '{}' to '{}'", from.string(), to.string()));
    }
    return {};
  }
};

}  // namespace

FileOps& FileOps::system() {
  static SystemFileOps ops;
  return ops;
}

}  // namespace penstock
