// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/queue_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "penstock/base/checked.h"
#include "penstock/base/str_format.h"

namespace penstock {
namespace {

std::uint64_t aligned_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

std::vector<Grantor> lay_out(const QueueShape& shape, std::uint64_t ring_bytes) {
  const auto grantor = [](std::uint64_t offset, std::uint64_t extent) {
    return Grantor{.offset = static_cast<std::uint32_t>(offset), .extent = extent};
  };
  std::vector<Grantor> grantors = {grantor(0, 8), grantor(8, 8), grantor(16, ring_bytes)};
  if (shape.event_flag) grantors.push_back(grantor(aligned_up(16 + ring_bytes, 8), 4));
  return grantors;
}

Result<std::uint64_t> ring_bytes_of(const QueueShape& shape) {
  if (shape.quantum == 0 || shape.elements == 0) {
    return fail(ErrorKind::kInvalidArgument, "a queue has at least one element of one byte");
  }
  if (shape.event_flag && shape.flavor == QueueFlavor::kUnsynchronised) {
    return fail(ErrorKind::kInvalidArgument,
                "an unsynchronised queue has no event flag: its readers may not write");
  }
  const auto bytes = checked_product<std::uint64_t>(shape.quantum, std::uint64_t{shape.elements});
  if (!bytes || *bytes > kMaxRingBytes) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("a queue of {} elements of {} bytes; at most {} bytes are possible",
                           shape.elements, shape.quantum, kMaxRingBytes));
  }
  return *bytes;
}

/// How much of the file the parts need. Extents have been checked: the sums fit.
std::uint64_t size_of(const std::vector<Grantor>& grantors) {
  std::uint64_t size = 0;
  for (const Grantor& grantor : grantors) size = std::max(size, grantor.offset + grantor.extent);
  return size;
}

}  // namespace

Result<QueueMemory> QueueMemory::create(const QueueShape& shape) {
  const auto ring_bytes = ring_bytes_of(shape);
  if (!ring_bytes) return std::unexpected(ring_bytes.error());
  QueueMemory memory;
  memory.grantors_ = lay_out(shape, *ring_bytes);
  memory.quantum_ = shape.quantum;
  memory.flavor_ = shape.flavor;
  const std::uint64_t size = size_of(memory.grantors_);
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  auto file = create_shared_file(aligned_up(size, page));
  if (!file) return std::unexpected(file.error());
  auto mapping = SharedMapping::map(*file, size, MapAccess::kReadWrite);
  if (!mapping) return std::unexpected(mapping.error());
  // Synchronised: the attaching end must yet map it for writing, and seals it then.
  if (shape.flavor == QueueFlavor::kUnsynchronised) PENSTOCK_TRY(seal_writers(*file));
  memory.file_ = std::move(*file);
  memory.mapping_ = std::move(*mapping);
  memory.find_parts(shape.quantum);
  return memory;
}

Result<QueueMemory> QueueMemory::attach(QueueDescriptor descriptor, std::size_t quantum,
                                        QueueFlavor flavor) {
  PENSTOCK_TRY(check_parts(descriptor, quantum, flavor));
  QueueMemory memory;
  memory.grantors_ = std::move(descriptor.grantors);
  memory.quantum_ = quantum;
  memory.flavor_ = flavor;
  const UniqueFd& file = descriptor.files.at(0);
  const std::uint64_t size = size_of(memory.grantors_);
  const bool writes = flavor == QueueFlavor::kSynchronised;
  PENSTOCK_TRY(check_shared_file(file, size));
  if (!writes && !writers_are_sealed(file)) {
    return fail(ErrorKind::kCorrupt,
                "queue descriptor: the file of an unsynchronised queue is not sealed for writing");
  }
  auto mapping = SharedMapping::map(file, size, writes ? MapAccess::kReadWrite : MapAccess::kRead);
  if (!mapping) return std::unexpected(mapping.error());
  memory.mapping_ = std::move(*mapping);
  // In this order: pages are allocated when nobody can take them away any more.
  if (writes) PENSTOCK_TRY(seal_writers(file));
  PENSTOCK_TRY(allocate_pages(file, size));
  memory.find_parts(quantum);
  return memory;
}

std::byte* QueueMemory::part(QueuePart part) const {
  return mapping_.data() + grantors_.at(static_cast<std::size_t>(part)).offset;
}

void QueueMemory::find_parts(std::size_t quantum) {
  ring_ = {.read_counter = reinterpret_cast<std::uint64_t*>(part(QueuePart::kReadCounter)),
           .write_counter = reinterpret_cast<std::uint64_t*>(part(QueuePart::kWriteCounter)),
           .data = part(QueuePart::kRing),
           .bytes = grantors_.at(static_cast<std::size_t>(QueuePart::kRing)).extent,
           .quantum = quantum};
}

std::optional<EventFlag> QueueMemory::flag() const {
  if (grantors_.size() < kMaxGrantors) return std::nullopt;
  return EventFlag(*reinterpret_cast<std::uint32_t*>(part(QueuePart::kFlag)));
}

Result<QueueDescriptor> QueueMemory::describe() {
  if (!file_.is_valid()) {
    return fail(ErrorKind::kUnsupported,
                "only a queue's creator can describe it, until the peer has attached");
  }
  UniqueFd copy(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.is_valid()) {
    return fail(ErrorKind::kExhausted, str_format("duplicating the file of a queue: {}",
                                                  std::generic_category().message(errno)));
  }
  QueueDescriptor descriptor{.quantum = static_cast<std::uint32_t>(quantum_),
                             .flavor = static_cast<std::uint32_t>(flavor_),
                             .grantors = grantors_,
                             .files = {}};
  descriptor.files.push_back(std::move(copy));
  is_described_ = flavor_ == QueueFlavor::kSynchronised;
  return descriptor;
}

Result<void> QueueMemory::settle() {
  if (!file_.is_valid() || flavor_ == QueueFlavor::kUnsynchronised) return {};
  if (!writers_are_sealed(file_)) {
    return fail(ErrorKind::kCorrupt, "a queue that the peer says it has attached to is not sealed");
  }
  PENSTOCK_TRY(allocate_pages(file_, mapping_.size()));
  file_.reset();
  return {};
}

}  // namespace penstock
