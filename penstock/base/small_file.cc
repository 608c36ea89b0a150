// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "penstock/base/str_format.h"
#include "penstock/base/unique_fd.h"

namespace penstock {
namespace {

std::unexpected<Error> fail_errno(const std::filesystem::path& path, const char* verb) {
  const int cause = errno;
  const ErrorKind kind = cause == ENOENT || cause == ENOTDIR ? ErrorKind::kNotFound
                         : cause == EACCES                   ? ErrorKind::kPermission
                                                             : ErrorKind::kIo;
  return fail(kind, str_format("cannot {} '{}': {}", verb, path.string(), std::strerror(cause)));
}

}  // namespace

Result<std::string> read_small_file(const std::filesystem::path& path, std::size_t limit) {
  // O_NONBLOCK: opening a FIFO must not hang us.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.is_valid()) return fail_errno(path, "open");
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return fail_errno(path, "stat");
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("'{}' is not a regular file", path.string()));
  }
  // By reading, not by the size that was told: a file may grow, and those of /proc tell 0. One byte
  // more than allowed shows that there are more.
  std::string text(limit + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(path, "read");
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > limit) {
    return fail(ErrorKind::kCorrupt,
                str_format("'{}' has more than {} bytes", path.string(), limit));
  }
  text.resize(size);
  return text;
}

}  // namespace penstock
