// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/shared_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {

Result<std::shared_ptr<SharedFile>> SharedFile::create(std::size_t size, MapAccess peers) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  constexpr std::size_t kMost = std::size_t{1} << 46;  // More than there is; rounding can't wrap.
  if (size == 0 || size > kMost) {
    return fail(ErrorKind::kInvalidArgument, str_format("shared memory of {} bytes", size));
  }
  size = (size + page - 1) / page * page;
  auto file = create_shared_file(size);
  if (!file) return std::unexpected(std::move(file).error());
  auto mapping = SharedMapping::map(*file, size, MapAccess::kReadWrite);
  if (!mapping) return std::unexpected(std::move(mapping).error());
  // Mappings that exist may go on writing: this one.
  if (peers == MapAccess::kRead) PENSTOCK_TRY(seal_writers(*file));
  return std::shared_ptr<SharedFile>(new SharedFile(std::move(*file), std::move(*mapping), peers));
}

SharedFile::SharedFile(UniqueFd file, SharedMapping mapping, MapAccess peers)
    : mapping_(std::move(mapping)), peers_(peers), file_(std::move(file)) {}

SharedFile::~SharedFile() {
  for (const auto& tell : tell_) tell();
}

Result<UniqueFd> SharedFile::duplicate() const {
  const std::lock_guard lock(mutex_);
  if (!file_.is_valid()) {
    return fail(ErrorKind::kUnsupported, "shared memory that another process has already");
  }
  UniqueFd copy(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.is_valid()) {
    return fail(ErrorKind::kExhausted, str_format("shared memory: no descriptor: {}",
                                                  std::generic_category().message(errno)));
  }
  return copy;
}

Result<void> SharedFile::settle() {
  if (peers_ == MapAccess::kRead || is_settled_) return {};
  const std::lock_guard lock(mutex_);
  if (is_settled_) return {};
  if (!writers_are_sealed(file_)) {
    return fail(ErrorKind::kCorrupt,
                "shared memory: the other process has not sealed it, and could take pages away");
  }
  // A hole may have been made before; from here on there can't be another one.
  PENSTOCK_TRY(allocate_pages(file_, mapping_.size()));
  file_.reset();
  is_settled_ = true;
  return {};
}

void SharedFile::when_gone(std::function<void()> tell) {
  const std::lock_guard lock(mutex_);
  tell_.push_back(std::move(tell));
}

}  // namespace penstock
