// SPDX-License-Identifier: Apache-2.0
//
// The two ends of a circular FIFO of bytes in shared memory, each of which trusts its own private
// counter and nothing else. Elements are `quantum` bytes; all counts are of elements. See
// docs/design/burst.md for the layout and what is checked.
//
// An end is used by one thread at a time. MessageQueue is the typed front of this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>

#include "penstock/base/error.h"
#include "penstock/burst/queue_error.h"

namespace penstock {

enum class QueueFlavor : std::uint32_t {
  kSynchronised = 1,    ///< One writer, one reader; the writer waits for room.
  kUnsynchronised = 2,  ///< One writer that waits for nobody, any number of readers.
};

/// Where the parts of a ring lie. Whoever makes one vouches for it: the counters are 8-byte
/// aligned, `bytes` is a positive multiple of `quantum`, and everything stays mapped. Ends that
/// only read an unsynchronised ring write to none of it.
struct RingView {
  std::uint64_t* read_counter = nullptr;  ///< Unsynchronised: where the writer is about to get.
  std::uint64_t* write_counter = nullptr;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::size_t quantum = 0;

  std::size_t capacity() const { return bytes / quantum; }
};

/// Some consecutive elements of a ring, in two pieces where they go round its end. The memory is
/// the peer's, too: it may change while it is read, so that values are to be copied first, then
/// checked.
class RingSlots {
 public:
  struct Region {
    std::byte* data = nullptr;
    std::size_t size = 0;  ///< Bytes, a multiple of the quantum.
  };

  RingSlots() = default;
  RingSlots(const RingView& ring, std::uint64_t counter, std::size_t count);

  std::size_t count() const { return count_; }
  /// Never empty unless count() is 0.
  Region first() const { return first_; }
  /// Empty unless the slots go round the ring's end.
  Region second() const { return second_; }

  /// Copies `count` elements from or to slot `start`. False, and nothing done, when these are not
  /// all within the slots.
  [[nodiscard]] bool get(std::size_t start, std::byte* to, std::size_t count) const;
  [[nodiscard]] bool set(std::size_t start, const std::byte* from, std::size_t count) const;

 private:
  bool holds(std::size_t start, std::size_t count) const {
    return start <= count_ && count <= count_ - start;
  }

  Region first_;
  Region second_;
  std::size_t count_ = 0;
  std::size_t quantum_ = 0;
};

/// More bytes than any queue will carry. Counters beyond it are lies, so that no sum of counters
/// and sizes can overflow.
inline constexpr std::uint64_t kMaxCounter = std::uint64_t{1} << 62;

class RingWriter {
 public:
  /// Takes the counters as they are, once. kCorrupt when they can't be those of an honest queue.
  static Result<RingWriter, QueueError> open(const RingView& ring, QueueFlavor flavor);

  std::size_t capacity() const { return ring_.capacity(); }

  /// Room, as far as the reader has told; the whole capacity in the unsynchronised flavour.
  Result<std::size_t, QueueError> available();

  /// All or nothing: kFull, kTooMany, kCorrupt. Publishes all elements at once.
  Result<void, QueueError> write(const std::byte* from, std::size_t count);

  /// Slots to be filled in place. Nothing is published before commit(). A second begin takes back
  /// the first. In the unsynchronised flavour readers lose at once what the slots held.
  Result<RingSlots, QueueError> begin(std::size_t count);
  /// Publishes the first `count` slots that were begun; none may be written to afterwards.
  Result<void, QueueError> commit(std::size_t count);

 private:
  RingWriter(const RingView& ring, QueueFlavor flavor, std::uint64_t own, std::uint64_t peer)
      : ring_(ring), flavor_(flavor), own_(own), peer_(peer) {}

  /// Loads the reader's counter; poisons this end when it lies.
  Result<void, QueueError> look();
  std::size_t room() const { return (ring_.bytes - (own_ - peer_)) / ring_.quantum; }
  Result<void, QueueError> claim(std::size_t count);
  void publish(std::size_t count);
  void expect(std::size_t count) const;

  RingView ring_;
  QueueFlavor flavor_;
  std::uint64_t own_;        // Bytes written, ever.
  std::uint64_t peer_;       // Bytes read, ever, as last seen. Synchronised only.
  std::uint64_t claim_ = 0;  // Unsynchronised: what the first word says.
  std::size_t begun_ = 0;
  bool poisoned_ = false;
};

class RingReader {
 public:
  /// As RingWriter::open. An unsynchronised reader starts with the first element ever written, so
  /// that a late one begins with kOverflow.
  static Result<RingReader, QueueError> open(const RingView& ring, QueueFlavor flavor);

  std::size_t capacity() const { return ring_.capacity(); }

  /// How many elements can be read: at most the capacity. kOverflow, kCorrupt.
  Result<std::size_t, QueueError> available();

  /// All or nothing: kEmpty, kTooMany, kOverflow, kCorrupt. On an error `to` may have been written.
  Result<void, QueueError> read(std::byte* to, std::size_t count);

  /// Slots to be read in place; they stay the reader's until commit().
  Result<RingSlots, QueueError> begin(std::size_t count);
  /// Gives back the first `count` slots that were begun. kOverflow: what was read may be torn.
  Result<void, QueueError> commit(std::size_t count);

 private:
  RingReader(const RingView& ring, QueueFlavor flavor, std::uint64_t own, std::uint64_t peer)
      : ring_(ring), flavor_(flavor), own_(own), peer_(peer) {}

  Result<void, QueueError> look();
  std::size_t unread() const { return (peer_ - own_) / ring_.quantum; }
  /// Unsynchronised: kOverflow when the writer has got, or is about to get, to what is read.
  Result<void, QueueError> check_lapped();
  void move_to_newer_half(std::uint64_t claim);
  Result<void, QueueError> release(std::size_t count);

  RingView ring_;
  QueueFlavor flavor_;
  std::uint64_t own_;   // Bytes read, ever.
  std::uint64_t peer_;  // Bytes written, ever, as last seen.
  std::size_t begun_ = 0;
  bool poisoned_ = false;
};

}  // namespace penstock
