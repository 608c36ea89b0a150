// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/ring.h"

#include <algorithm>
#include <atomic>

#include "penstock/burst/shared_copy.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace penstock {
namespace {

static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);

// Two ends in one process have the ring at two addresses, and ThreadSanitizer knows a counter by
// its address: it would not see that what one end did before it published is ordered before what
// the other does with it. One address for all rings orders more than there is, but nothing less.
#if defined(__SANITIZE_THREAD__)
char all_rings;
void order_before_store() { __tsan_release(&all_rings); }
void order_after_load() { __tsan_acquire(&all_rings); }
#else
void order_before_store() {}
void order_after_load() {}
#endif

/// Of a ring's next elements, the bytes that are fetched ahead.
constexpr std::size_t kMostExpected = 1024;

std::uint64_t load(std::uint64_t* counter, std::memory_order order) {
  const std::uint64_t value = std::atomic_ref(*counter).load(order);
  if (order == std::memory_order_acquire) order_after_load();
  return value;
}

void store(std::uint64_t* counter, std::uint64_t value, std::memory_order order) {
  if (order == std::memory_order_release) order_before_store();
  std::atomic_ref(*counter).store(value, order);
}

constexpr std::size_t kLine = 64;

/// Of a region, what is fetched ahead.
void prefetch_to_read(const RingSlots::Region& region) {
  const std::size_t size = std::min(region.size, kMostExpected);
  for (std::size_t done = 0; done < size; done += kLine) __builtin_prefetch(region.data + done, 0);
}

}  // namespace

RingSlots::RingSlots(const RingView& ring, std::uint64_t counter, std::size_t count)
    : count_(count), quantum_(ring.quantum) {
  const std::size_t offset = counter % ring.bytes;
  const std::size_t size = count * ring.quantum;
  first_ = {ring.data + offset, std::min(size, ring.bytes - offset)};
  if (first_.size < size) second_ = {ring.data, size - first_.size};
}

bool RingSlots::get(std::size_t start, std::byte* to, std::size_t count) const {
  if (!holds(start, count)) return false;
  const std::size_t offset = start * quantum_;
  const std::size_t size = count * quantum_;
  const std::size_t before_end =
      offset < first_.size ? std::min(size, first_.size - offset) : std::size_t{0};
  if (before_end > 0) copy_from_shared(to, first_.data + offset, before_end);
  if (before_end < size) {
    copy_from_shared(to + before_end, second_.data + (offset + before_end - first_.size),
                     size - before_end);
  }
  return true;
}

bool RingSlots::set(std::size_t start, const std::byte* from, std::size_t count) const {
  if (!holds(start, count)) return false;
  const std::size_t offset = start * quantum_;
  const std::size_t size = count * quantum_;
  const std::size_t before_end =
      offset < first_.size ? std::min(size, first_.size - offset) : std::size_t{0};
  if (before_end > 0) copy_to_shared(first_.data + offset, from, before_end);
  if (before_end < size) {
    copy_to_shared(second_.data + (offset + before_end - first_.size), from + before_end,
                   size - before_end);
  }
  return true;
}

Result<RingWriter, QueueError> RingWriter::open(const RingView& ring, QueueFlavor flavor) {
  const std::uint64_t own = load(ring.write_counter, std::memory_order_acquire);
  if (own > kMaxCounter || own % ring.quantum != 0) return std::unexpected(QueueError::kCorrupt);
  RingWriter writer(ring, flavor, own, own);
  if (flavor == QueueFlavor::kUnsynchronised) {
    writer.claim_ = own;
    return writer;
  }
  writer.peer_ = own - std::min<std::uint64_t>(own, ring.bytes);
  PENSTOCK_TRY(writer.look());
  return writer;
}

Result<void, QueueError> RingWriter::look() {
  if (poisoned_) return std::unexpected(QueueError::kCorrupt);
  const std::uint64_t peer = load(ring_.read_counter, std::memory_order_acquire);
  if (peer < peer_ || peer > own_ || peer % ring_.quantum != 0) {
    poisoned_ = true;
    return std::unexpected(QueueError::kCorrupt);
  }
  peer_ = peer;
  return {};
}

Result<std::size_t, QueueError> RingWriter::available() {
  if (flavor_ == QueueFlavor::kUnsynchronised) return capacity();
  PENSTOCK_TRY(look());
  return room();
}

/// Makes sure that `count` slots are the writer's.
Result<void, QueueError> RingWriter::claim(std::size_t count) {
  if (poisoned_) return std::unexpected(QueueError::kCorrupt);
  if (count > capacity()) return std::unexpected(QueueError::kTooMany);
  if (flavor_ == QueueFlavor::kSynchronised) {
    if (count > room()) PENSTOCK_TRY(look());
    if (count > room()) return std::unexpected(QueueError::kFull);
    return {};
  }
  claim_ = std::max(claim_, own_ + count * ring_.quantum);
  store(ring_.read_counter, claim_, std::memory_order_relaxed);
  // Who sees any byte of what is stored from here on sees the claim, too.
  std::atomic_thread_fence(std::memory_order_release);
  return {};
}

void RingWriter::publish(std::size_t count) {
  own_ += count * ring_.quantum;
  store(ring_.write_counter, own_, std::memory_order_release);
}

/// The next elements will be about as many: their cache lines are fetched for writing while the
/// reader is busy with the last ones. Not the line that it may be reading.
void RingWriter::expect(std::size_t count) const {
  const std::size_t size = std::min(count * ring_.quantum, kMostExpected);
  std::size_t offset = own_ % ring_.bytes;
  offset += kLine - reinterpret_cast<std::uintptr_t>(ring_.data + offset) % kLine;
  for (std::size_t done = 0; done < size; done += kLine, offset += kLine) {
    if (offset >= ring_.bytes) offset -= ring_.bytes;
    __builtin_prefetch(ring_.data + offset, 1);
  }
}

Result<void, QueueError> RingWriter::write(const std::byte* from, std::size_t count) {
  if (count == 0) return {};
  PENSTOCK_TRY(claim(count));
  begun_ = 0;
  (void)RingSlots(ring_, own_, count).set(0, from, count);
  publish(count);
  if (flavor_ == QueueFlavor::kSynchronised) expect(count);
  return {};
}

Result<RingSlots, QueueError> RingWriter::begin(std::size_t count) {
  begun_ = 0;
  PENSTOCK_TRY(claim(count));
  begun_ = count;
  return RingSlots(ring_, own_, count);
}

Result<void, QueueError> RingWriter::commit(std::size_t count) {
  if (poisoned_) return std::unexpected(QueueError::kCorrupt);
  if (count > begun_) return std::unexpected(QueueError::kNotBegun);
  begun_ = 0;
  if (count > 0) publish(count);
  return {};
}

Result<RingReader, QueueError> RingReader::open(const RingView& ring, QueueFlavor flavor) {
  if (flavor == QueueFlavor::kUnsynchronised) {
    RingReader reader(ring, flavor, 0, 0);
    if (const auto looked = reader.look(); !looked && looked.error() == QueueError::kCorrupt) {
      return std::unexpected(looked.error());
    }
    reader.own_ = 0;
    return reader;
  }
  const std::uint64_t own = load(ring.read_counter, std::memory_order_acquire);
  if (own > kMaxCounter || own % ring.quantum != 0) return std::unexpected(QueueError::kCorrupt);
  RingReader reader(ring, flavor, own, own);
  PENSTOCK_TRY(reader.look());
  return reader;
}

/// Loads the writer's counter; poisons this end when it lies.
Result<void, QueueError> RingReader::look() {
  if (poisoned_) return std::unexpected(QueueError::kCorrupt);
  const std::uint64_t peer = load(ring_.write_counter, std::memory_order_acquire);
  const std::uint64_t limit =
      flavor_ == QueueFlavor::kSynchronised ? own_ + ring_.bytes : kMaxCounter;
  if (peer < peer_ || peer > limit || peer % ring_.quantum != 0) {
    poisoned_ = true;
    return std::unexpected(QueueError::kCorrupt);
  }
  peer_ = peer;
  if (peer_ - own_ > ring_.bytes) {
    move_to_newer_half(peer_);
    return std::unexpected(QueueError::kOverflow);
  }
  return {};
}

Result<std::size_t, QueueError> RingReader::available() {
  PENSTOCK_TRY(look());
  return unread();
}

Result<void, QueueError> RingReader::check_lapped() {
  if (flavor_ == QueueFlavor::kSynchronised) return {};
  // With the fence in RingWriter::claim: if any byte copied before was the next lap's, this load
  // sees that lap's claim.
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::uint64_t claim = load(ring_.read_counter, std::memory_order_relaxed);
  // Writers that do not know the claim leave it behind their counter.
  PENSTOCK_TRY(look());
  if (claim <= own_ || claim - own_ <= ring_.bytes) return {};
  move_to_newer_half(claim);
  return std::unexpected(QueueError::kOverflow);
}

/// Where the writer has not been and is not about to be, but never back.
void RingReader::move_to_newer_half(std::uint64_t claim) {
  const std::uint64_t half = capacity() / 2 * ring_.quantum;
  const std::uint64_t newer = peer_ - std::min(peer_, half);
  const std::uint64_t intact = claim - std::min<std::uint64_t>(claim, ring_.bytes);
  const std::uint64_t aligned = intact - intact % ring_.quantum;
  own_ = std::min(peer_, std::max({own_, newer, aligned}));
}

Result<void, QueueError> RingReader::release(std::size_t count) {
  PENSTOCK_TRY(check_lapped());
  own_ += count * ring_.quantum;
  if (flavor_ == QueueFlavor::kSynchronised) {
    store(ring_.read_counter, own_, std::memory_order_release);
  }
  return {};
}

Result<void, QueueError> RingReader::read(std::byte* to, std::size_t count) {
  if (count == 0) return {};
  auto slots = begin(count);
  if (!slots) return std::unexpected(slots.error());
  begun_ = 0;
  // All at once, and the counter to be stored to below.
  prefetch_to_read(slots->first());
  prefetch_to_read(slots->second());
  if (flavor_ == QueueFlavor::kSynchronised) __builtin_prefetch(ring_.read_counter, 1);
  (void)slots->get(0, to, count);
  return release(count);
}

Result<RingSlots, QueueError> RingReader::begin(std::size_t count) {
  begun_ = 0;
  if (poisoned_) return std::unexpected(QueueError::kCorrupt);
  if (count > capacity()) return std::unexpected(QueueError::kTooMany);
  // An unsynchronised writer may have lapped what was seen.
  if (count > unread() || flavor_ == QueueFlavor::kUnsynchronised) PENSTOCK_TRY(look());
  if (count > unread()) return std::unexpected(QueueError::kEmpty);
  begun_ = count;
  return RingSlots(ring_, own_, count);
}

Result<void, QueueError> RingReader::commit(std::size_t count) {
  if (poisoned_) return std::unexpected(QueueError::kCorrupt);
  if (count > begun_) return std::unexpected(QueueError::kNotBegun);
  begun_ = 0;
  if (count == 0) return {};
  return release(count);
}

}  // namespace penstock
