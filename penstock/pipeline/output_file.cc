// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

/// False: somebody else has it. File systems without locks have nobody.
bool lock(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

Error in_use(const std::filesystem::path& path) {
  return {ErrorKind::kIo,
          str_format("cannot write to '{}': another run is writing to it", path.string())};
}

bool is_regular(int fd) {
  struct stat info{};
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

int standard_descriptor_of(const std::filesystem::path& path) {
  struct stat wanted{};
  if (path.empty() || ::stat(path.c_str(), &wanted) != 0) return -1;
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat own{};
    if (::fstat(fd, &own) != 0 || own.st_dev != wanted.st_dev || own.st_ino != wanted.st_ino) {
      continue;
    }
    if (S_ISCHR(own.st_mode) && ::isatty(fd) != 1) continue;
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) return fd;
  }
  return -1;
}

Result<OutputFile> OutputFile::open(const std::filesystem::path& path, FileOps& files) {
  OutputFile output;
  output.path_ = path;
  if (const int standard = standard_descriptor_of(path); standard >= 0) {
    output.fd_.reset(::fcntl(standard, F_DUPFD_CLOEXEC, 0));
    if (!output.is_open()) {
      return fail(ErrorKind::kExhausted, str_format("cannot write to '{}': {}", path.string(),
                                                    std::generic_category().message(errno)));
    }
  } else {
    // Creating truncates, so the lock comes first.
    output.lock_.reset(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!output.lock_.is_valid() || !is_regular(output.lock_.get())) output.lock_.reset();
    if (output.lock_.is_valid() && !lock(output.lock_.get())) return std::unexpected(in_use(path));
    auto fd = files.create(path);
    if (!fd) return std::unexpected(std::move(fd).error());
    output.fd_ = std::move(*fd);
    output.own_ = is_regular(output.fd());
    if (output.own_ && !output.lock_.is_valid() && !lock(output.fd())) {
      return std::unexpected(in_use(path));
    }
  }
  struct stat info{};
  output.named_ = ::fstat(output.fd(), &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink > 0;
  return output;
}

Result<void> OutputFile::check_kept(std::uint64_t written) const {
  struct stat info{};
  if (!named_ || ::fstat(fd(), &info) != 0) return {};
  if (info.st_nlink == 0) {
    return fail(ErrorKind::kIo,
                str_format("writing '{}': the file was deleted meanwhile", path_.string()));
  }
  if (own_ && static_cast<std::uint64_t>(info.st_size) < written) {
    return fail(ErrorKind::kIo,
                str_format("writing '{}': another program cut the file short", path_.string()));
  }
  return {};
}

void OutputFile::cut_to(std::uint64_t size) {
  // Where even that fails, the file stays as the disk has it, and the error is on its way already.
  if (own_) static_cast<void>(::ftruncate(fd(), static_cast<off_t>(size)));
}

std::optional<std::uint64_t> OutputFile::size() const {
  struct stat info{};
  if (!own_ || ::fstat(fd(), &info) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(info.st_size);
}

}  // namespace penstock
