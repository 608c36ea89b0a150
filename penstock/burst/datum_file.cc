// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/datum_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

constexpr int kUnchangeable = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

std::unexpected<Error> file_failed(const char* what, int error) {
  const bool exhausted = error == ENOSPC || error == ENOMEM || error == EMFILE || error == ENFILE;
  return fail(exhausted ? ErrorKind::kExhausted : ErrorKind::kIo,
              str_format("packet file: {}: {}", what, std::generic_category().message(error)));
}

std::unexpected<Error> refused(std::string why) {
  return fail(ErrorKind::kCorrupt, "packet file: " + std::move(why));
}

}  // namespace

Result<UniqueFd> write_datum_file(std::span<const std::byte> datums) {
  UniqueFd file(::memfd_create("penstock-packet", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_valid()) return file_failed("memfd_create", errno);
  while (!datums.empty()) {
    const ssize_t done = ::write(file.get(), datums.data(), datums.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return file_failed("writing", done == 0 ? ENOSPC : errno);
    datums = datums.subspan(static_cast<std::size_t>(done));
  }
  if (::fcntl(file.get(), F_ADD_SEALS, kUnchangeable) != 0) return file_failed("sealing", errno);
  return file;
}

Result<std::vector<std::byte>> read_datum_file(const UniqueFd& file, std::size_t quantum) {
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kUnchangeable) != kUnchangeable) {
    return refused("it is not sealed against changes");
  }
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return file_failed("fstat", errno);
  const auto size = static_cast<std::uint64_t>(std::max<off_t>(info.st_size, 0));
  if (size == 0 || size % quantum != 0 || size / quantum > kMaxDirectDatums) {
    return refused(str_format("{} bytes", size));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t done =
        ::pread(file.get(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return file_failed("reading", done == 0 ? EIO : errno);
    at += static_cast<std::size_t>(done);
  }
  return bytes;
}

}  // namespace penstock
