// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/mapped_memory.h"

#include <unistd.h>

#include <optional>

#include "penstock/base/checked.h"
#include "penstock/base/str_format.h"

namespace penstock {
namespace {

std::unexpected<Error> refused(std::string why) {
  return fail(ErrorKind::kCorrupt, "memory of a burst: " + std::move(why));
}

/// The end of what is to be mapped.
Result<std::uint64_t> checked_end(const BurstMemory& memory) {
  if (memory.kind != MemoryKind::kSharedFile) {
    return fail(ErrorKind::kUnsupported,
                str_format("memory of a burst: kind {} is not mapped here; 1 (shared file) is",
                           static_cast<std::uint32_t>(memory.kind)));
  }
  if (memory.access != MemoryAccess::kRead && memory.access != MemoryAccess::kReadWrite) {
    return refused(str_format("access {}", static_cast<std::uint32_t>(memory.access)));
  }
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto end = checked_sum(memory.offset, memory.size);
  if (!end || memory.size == 0 || memory.offset % page != 0) {
    return refused(str_format("{} bytes from {} on", memory.size, memory.offset));
  }
  return *end;
}

}  // namespace

Result<void> BurstQuota::count(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (slots_ >= limits_.slots) {
    return fail(ErrorKind::kExhausted,
                str_format("{} slots are in use, as many as may be", slots_));
  }
  if (bytes > limits_.bytes - bytes_) {
    return fail(ErrorKind::kExhausted, str_format("{} bytes more than the {} of {} that are mapped",
                                                  bytes, bytes_, limits_.bytes));
  }
  ++slots_;
  bytes_ += bytes;
  return {};
}

Result<BurstQuota::Share> BurstQuota::take(std::uint64_t bytes) {
  PENSTOCK_TRY(count(bytes));
  if (within_ != nullptr) {
    if (auto counted = within_->count(bytes); !counted) {
      const std::lock_guard lock(mutex_);
      --slots_;
      bytes_ -= bytes;
      return std::unexpected(std::move(counted).error());
    }
  }
  return Share(shared_from_this(), bytes);
}

void BurstQuota::give_back(std::uint64_t bytes) {
  if (within_ != nullptr) within_->give_back(bytes);
  const std::lock_guard lock(mutex_);
  --slots_;
  bytes_ -= bytes;
}

std::size_t BurstQuota::slots() const {
  const std::lock_guard lock(mutex_);
  return slots_;
}

std::uint64_t BurstQuota::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

Result<std::shared_ptr<MappedMemory>> MappedMemory::map(BurstMemory memory, BurstQuota& quota) {
  const auto end = checked_end(memory);
  if (!end) return std::unexpected(end.error());
  PENSTOCK_TRY(check_shared_file(memory.file, *end));
  auto share = quota.take(*end);
  if (!share) return std::unexpected(std::move(share).error());
  const bool writes = memory.access == MemoryAccess::kReadWrite;
  if (!writes && !writers_are_sealed(memory.file)) {
    return refused("its owner has not sealed it against writers");
  }
  auto mapping = SharedMapping::map(memory.file, static_cast<std::size_t>(*end),
                                    writes ? MapAccess::kReadWrite : MapAccess::kRead);
  if (!mapping) return std::unexpected(std::move(mapping).error());
  // After this no page can go; those that had gone before come back.
  if (writes) PENSTOCK_TRY(seal_writers(memory.file));
  PENSTOCK_TRY(allocate_pages(memory.file, static_cast<std::size_t>(*end)));
  return std::shared_ptr<MappedMemory>(new MappedMemory(std::move(*share), std::move(*mapping),
                                                        static_cast<std::size_t>(memory.offset),
                                                        memory.access));
}

}  // namespace penstock
