// SPDX-License-Identifier: Apache-2.0
//
// MessageQueue<T, Flavor>: a FIFO of plain old data in shared memory between two processes that
// need not trust each other. Laid out as Android's fast message queue. One process creates an end
// and sends its descriptor, another attaches the other end:
//
//   using Queue = MessageQueue<Sample, QueueFlavor::kSynchronised>;
//   auto writer = Queue::create_writer({.elements = 1024, .event_flag = true});
//   auto descriptor = writer->describe();               // send it by FdSocket; when it has
//   arrived: auto settled = writer->settle();
//
//   auto reader = Queue::attach_reader(std::move(*descriptor));
//   Sample samples[2];
//   auto got = reader->read_blocking(samples, Deadline::after(Clock::system(), seconds(1)));
//
// Synchronised: one writer, one reader, either may create. Unsynchronised: the writer creates,
// waits for nobody, and any number of readers attach, read-only; one that is lapped is told
// (kOverflow).
//
// An end is used by one thread at a time and moved freely. Calls are all or nothing and return
// QueueError; the plain ones never wait and wake nobody (a peer that sleeps is told by
// `event_flag()->wake()`, or looks after a slice), the blocking ones do both. After kCorrupt the
// end is poisoned and its lifeline cut. Between describe() and settle(), which is for when
// the peer has attached, a synchronised creator's end is kUnsettled.
// Elements that were read are a copy, in which any bits may be. Not for both sides of a fork(): the
// child gets the parent's end, and must not use it.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "penstock/base/deadline.h"
#include "penstock/base/error.h"
#include "penstock/burst/blocking.h"
#include "penstock/burst/queue_end.h"
#include "penstock/burst/queue_memory.h"
#include "penstock/burst/ring.h"

namespace penstock {

/// Every byte of T is part of its value, so that nothing else of this process's memory is
/// published. Where the compiler can't tell (structures with floats, unions), the author of T says
/// so:
///   template <> inline constexpr bool penstock::kHasNoPadding<Sample> = true;
template <typename T>
inline constexpr bool kHasNoPadding =
    std::has_unique_object_representations_v<T> || std::is_floating_point_v<T>;
template <>
inline constexpr bool kHasNoPadding<long double> = false;

/// What may cross: bytes that mean the same in another process, whatever they are. Pointers do not;
/// those within a structure are the author's word. A bool that is neither 0 nor 1 is undefined
/// behaviour for who reads it: send a std::uint8_t.
template <typename T>
concept PlainOldData =
    std::is_object_v<T> && std::same_as<T, std::remove_cv_t<T>> && !std::is_array_v<T> &&
    std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T> && !std::is_empty_v<T> &&
    std::is_default_constructible_v<T> && kHasNoPadding<T> && !std::same_as<T, bool> &&
    !std::is_pointer_v<T> && !std::is_member_pointer_v<T> && !std::is_null_pointer_v<T>;

/// Elements of a ring, in place; see RingSlots.
template <PlainOldData T>
class QueueSlots {
 public:
  explicit QueueSlots(const RingSlots& slots) : slots_(slots) {}

  std::size_t size() const { return slots_.count(); }

  /// A copy of slot `i`; nothing when there is no such slot.
  std::optional<T> get(std::size_t i) const {
    T item{};
    if (!slots_.get(i, reinterpret_cast<std::byte*>(&item), 1)) return std::nullopt;
    return item;
  }
  /// False when there is no such slot.
  [[nodiscard]] bool set(std::size_t i, const T& item) const {
    return slots_.set(i, reinterpret_cast<const std::byte*>(&item), 1);
  }
  /// From slot `start` on, as many as `items` has; false, and nothing done, when they are not all
  /// there.
  [[nodiscard]] bool copy_to(std::span<T> items, std::size_t start = 0) const {
    return slots_.get(start, std::as_writable_bytes(items).data(), items.size());
  }
  [[nodiscard]] bool copy_from(std::span<const T> items, std::size_t start = 0) const {
    return slots_.set(start, std::as_bytes(items).data(), items.size());
  }

 private:
  RingSlots slots_;
};

template <PlainOldData T, QueueFlavor kFlavor>
class QueueWriter {
 public:
  QueueWriter(QueueEnd end, const RingWriter& ring) : end_(std::move(end)), ring_(ring) {}

  std::size_t capacity() const { return ring_.capacity(); }
  /// Elements that can be written now.
  Result<std::size_t, QueueError> available() {
    return end_.run([&] { return ring_.available(); });
  }

  /// kFull, kTooMany, kCorrupt.
  Result<void, QueueError> write(std::span<const T> items) {
    return end_.run([&] { return ring_.write(std::as_bytes(items).data(), items.size()); });
  }
  /// Waits for room, then writes and wakes the reader. Also kDeadline, kNoDeadline, kNoBits,
  /// kPeerGone, kStopped.
  Result<void, QueueError> write_blocking(std::span<const T> items, Deadline deadline,
                                          const WaitOptions& options = {})
    requires(kFlavor == QueueFlavor::kSynchronised)
  {
    return end_.run([&] {
      return penstock::write_blocking(ring_, end_.means(), std::as_bytes(items).data(),
                                      items.size(), deadline, options);
    });
  }

  /// Slots to fill in place; commit_write() publishes the first `count` of them.
  Result<QueueSlots<T>, QueueError> begin_write(std::size_t count) {
    return end_.run([&] { return ring_.begin(count); }).transform([](const RingSlots& slots) {
      return QueueSlots<T>(slots);
    });
  }
  Result<void, QueueError> commit_write(std::size_t count) {
    return end_.run([&] { return ring_.commit(count); });
  }

  std::optional<EventFlag> event_flag() const { return end_.memory().flag(); }
  QueueEnd& end() { return end_; }
  Result<QueueDescriptor> describe() { return end_.describe(); }
  Result<void> settle() { return end_.settle(); }

 private:
  QueueEnd end_;
  RingWriter ring_;
};

template <PlainOldData T, QueueFlavor kFlavor>
class QueueReader {
 public:
  QueueReader(QueueEnd end, const RingReader& ring) : end_(std::move(end)), ring_(ring) {}

  std::size_t capacity() const { return ring_.capacity(); }
  /// Elements that can be read now; never more than the capacity.
  Result<std::size_t, QueueError> available() {
    return end_.run([&] { return ring_.available(); });
  }

  /// kEmpty, kTooMany, kOverflow, kCorrupt; `items` may then have been written to.
  Result<void, QueueError> read(std::span<T> items) {
    return end_.run([&] { return ring_.read(std::as_writable_bytes(items).data(), items.size()); });
  }
  /// Waits until all are there, then reads and wakes the writer. Also kDeadline, kNoDeadline,
  /// kNoBits, kPeerGone, kStopped. Where there is no event flag it naps, at most 1 ms each.
  Result<void, QueueError> read_blocking(std::span<T> items, Deadline deadline,
                                         const WaitOptions& options = {}) {
    return end_.run([&] {
      return penstock::read_blocking(ring_, end_.means(), std::as_writable_bytes(items).data(),
                                     items.size(), deadline, options);
    });
  }
  /// Waits until at least `count` are there; returns how many are.
  Result<std::size_t, QueueError> wait_for_items(std::size_t count, Deadline deadline,
                                                 const WaitOptions& options = {}) {
    return end_.run(
        [&] { return penstock::wait_for_items(ring_, end_.means(), count, deadline, options); });
  }

  /// Slots to read in place; commit_read() gives the first `count` of them back.
  Result<QueueSlots<T>, QueueError> begin_read(std::size_t count) {
    return end_.run([&] { return ring_.begin(count); }).transform([](const RingSlots& slots) {
      return QueueSlots<T>(slots);
    });
  }
  Result<void, QueueError> commit_read(std::size_t count) {
    return end_.run([&] { return ring_.commit(count); });
  }

  std::optional<EventFlag> event_flag() const { return end_.memory().flag(); }
  QueueEnd& end() { return end_; }
  Result<QueueDescriptor> describe() { return end_.describe(); }
  Result<void> settle() { return end_.settle(); }

 private:
  QueueEnd end_;
  RingReader ring_;
};

template <PlainOldData T, QueueFlavor kFlavor>
class MessageQueue {
 public:
  using Writer = QueueWriter<T, kFlavor>;
  using Reader = QueueReader<T, kFlavor>;

  struct Options {
    std::size_t elements = 0;
    bool event_flag = false;
  };

  /// kInvalidArgument, kExhausted; see QueueMemory::create.
  static Result<Writer> create_writer(const Options& options, QueueUse use = {}) {
    return open<Writer, RingWriter>(QueueMemory::create(shape_of(options)), std::move(use));
  }
  static Result<Reader> create_reader(const Options& options, QueueUse use = {})
    requires(kFlavor == QueueFlavor::kSynchronised)
  {
    return open<Reader, RingReader>(QueueMemory::create(shape_of(options)), std::move(use));
  }

  /// kCorrupt, kExhausted; see QueueMemory::attach. What has been written before can be read.
  static Result<Writer> attach_writer(QueueDescriptor descriptor, QueueUse use = {})
    requires(kFlavor == QueueFlavor::kSynchronised)
  {
    return open<Writer, RingWriter>(attach(std::move(descriptor)), std::move(use));
  }
  static Result<Reader> attach_reader(QueueDescriptor descriptor, QueueUse use = {}) {
    return open<Reader, RingReader>(attach(std::move(descriptor)), std::move(use));
  }

 private:
  static QueueShape shape_of(const Options& options) {
    return {.quantum = sizeof(T),
            .elements = options.elements,
            .flavor = kFlavor,
            .event_flag = options.event_flag};
  }
  static Result<QueueMemory> attach(QueueDescriptor descriptor) {
    return QueueMemory::attach(std::move(descriptor), sizeof(T), kFlavor);
  }

  template <typename End, typename Ring>
  static Result<End> open(Result<QueueMemory> memory, QueueUse use) {
    if (!memory) return std::unexpected(memory.error());
    const auto ring = Ring::open(memory->ring(), kFlavor);
    if (!ring)
      return fail(ErrorKind::kCorrupt, "a queue whose counters no honest peer can have set");
    return End(QueueEnd(std::move(*memory), std::move(use)), *ring);
  }
};

}  // namespace penstock
