// SPDX-License-Identifier: Apache-2.0
//
// Blocking calls on the ends of a ring, all or nothing as the plain ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "penstock/base/deadline.h"
#include "penstock/burst/event_flag.h"
#include "penstock/burst/ring.h"
#include "penstock/burst/waiter.h"

namespace penstock {

struct WaitOptions {
  /// How long to poll before sleeping. Polling answers in under a microsecond and costs a core.
  Nanoseconds poll_window{0};
  /// Where not null: set to true when polling was not enough.
  bool* slept = nullptr;
  /// Which bits say that there is room, and that there is something to read. Both ends must agree.
  std::uint32_t not_full = EventFlag::kNotFull;
  std::uint32_t not_empty = EventFlag::kNotEmpty;
};

/// What an end waits with.
struct WaitMeans {
  const Lifeline* lifeline = nullptr;
  std::optional<EventFlag> flag = std::nullopt;
  const Clock* clock = nullptr;
  Nanoseconds slice = kWaitSlice;
};

/// Writes `count` elements when there is room for all, then wakes the reader. The errors of write()
/// and of Waiter.
Result<void, QueueError> write_blocking(RingWriter& writer, const WaitMeans& means,
                                        const std::byte* from, std::size_t count, Deadline deadline,
                                        const WaitOptions& options);

/// Reads `count` elements when all are there, then wakes the writer.
Result<void, QueueError> read_blocking(RingReader& reader, const WaitMeans& means, std::byte* to,
                                       std::size_t count, Deadline deadline,
                                       const WaitOptions& options);

/// Waits until at least `count` elements can be read; returns how many can.
Result<std::size_t, QueueError> wait_for_items(RingReader& reader, const WaitMeans& means,
                                               std::size_t count, Deadline deadline,
                                               const WaitOptions& options);

}  // namespace penstock
