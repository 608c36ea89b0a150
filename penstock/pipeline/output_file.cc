// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {

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
    auto fd = files.create(path);
    if (!fd) return std::unexpected(std::move(fd).error());
    output.fd_ = std::move(*fd);
  }
  struct stat info{};
  output.named_ = ::fstat(output.fd(), &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink > 0;
  return output;
}

Result<void> OutputFile::check_kept() const {
  struct stat info{};
  if (!named_ || ::fstat(fd(), &info) != 0 || info.st_nlink > 0) return {};
  return fail(ErrorKind::kIo,
              str_format("writing '{}': the file was deleted meanwhile", path_.string()));
}

}  // namespace penstock
