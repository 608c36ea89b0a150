// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/shared_mapping.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

std::string text_of(int error) { return std::generic_category().message(error); }

std::unexpected<Error> failed(const std::string& what, int error) {
  const bool exhausted =
      error == ENOSPC || error == ENOMEM || error == EMFILE || error == ENFILE || error == EAGAIN;
  return fail(exhausted ? ErrorKind::kExhausted : ErrorKind::kIo,
              str_format("shared memory: {}: {}", what, text_of(error)));
}

std::unexpected<Error> refused(const std::string& why) {
  return fail(ErrorKind::kCorrupt, "shared memory file from elsewhere: " + why);
}

constexpr int kNoResize = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr int kNoWriters = F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

}  // namespace

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

SharedMapping& SharedMapping::operator=(SharedMapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

SharedMapping::~SharedMapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Result<SharedMapping> SharedMapping::map(const UniqueFd& file, std::size_t size, MapAccess access) {
  const int protection = access == MapAccess::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const address = ::mmap(nullptr, size, protection, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) {
    const int error = errno;
    if (error == EPERM) {
      return refused("it may not be mapped for writing (attached before, or sealed by its owner)");
    }
    return failed(str_format("mapping {} bytes", size), error);
  }
  return SharedMapping(static_cast<std::byte*>(address), size);
}

Result<UniqueFd> create_shared_file(std::size_t size) {
  UniqueFd file(::memfd_create("penstock-queue", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_valid()) return failed("memfd_create", errno);
  if (::ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
    return failed(str_format("making it {} bytes long", size), errno);
  }
  PENSTOCK_TRY(allocate_pages(file, size));
  if (::fcntl(file.get(), F_ADD_SEALS, kNoResize) != 0) return failed("sealing its size", errno);
  return file;
}

Result<void> check_shared_file(const UniqueFd& file, std::uint64_t size) {
  // Only a memfd can have these seals, and only a memfd on the kernel's own tmpfs can't run full:
  // huge pages come from a pool whose faults may fail.
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0) return refused("it is no memfd: " + text_of(errno));
  if ((seals & kNoResize) != kNoResize) return refused("its size is not sealed");
  struct statfs system{};
  if (::fstatfs(file.get(), &system) != 0) return failed("fstatfs", errno);
  if (system.f_type != TMPFS_MAGIC) return refused("it is not on tmpfs");
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return failed("fstat", errno);
  if (info.st_size < 0 || static_cast<std::uint64_t>(info.st_size) < size) {
    return refused(str_format("it has {} bytes where {} are described", info.st_size, size));
  }
  return {};
}

Result<void> seal_writers(const UniqueFd& file) {
  if (writers_are_sealed(file)) return {};
  if (::fcntl(file.get(), F_ADD_SEALS, kNoWriters) != 0) {
    return refused("it can't be sealed against holes: " + text_of(errno));
  }
  return {};
}

bool writers_are_sealed(const UniqueFd& file) {
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_FUTURE_WRITE) != 0;
}

Result<void> allocate_pages(const UniqueFd& file, std::size_t size) {
  while (::fallocate(file.get(), 0, 0, static_cast<off_t>(size)) != 0) {
    if (errno != EINTR) return failed(str_format("allocating {} bytes", size), errno);
  }
  return {};
}

}  // namespace penstock
