// SPDX-License-Identifier: Apache-2.0
//
// EventFlag: bits in a 32-bit word that processes share, waited for with a futex. A bit that is set
// while nobody waits stays set and ends the next wait for it at once.
//
//   flag.wake(EventFlag::kNotEmpty);                             // one process
//   auto bits = wait_for_bits(flag, EventFlag::kNotEmpty,        // another; see waiter.h
//                             Deadline::after(clock, seconds(1)), lifeline, clock);
//
// A handle: copies mean the same word, whose memory its owner keeps. Thread-safe. The word is the
// peer's, too: what it says is a hint to look again, never a fact.
#pragma once

#include <cstdint>

#include "penstock/base/clock.h"

namespace penstock {

class Lifeline;

class EventFlag {
 public:
  /// The bits that a queue uses unless told otherwise.
  static constexpr std::uint32_t kNotFull = 1;
  static constexpr std::uint32_t kNotEmpty = 2;
  static constexpr std::uint32_t kAllBits = ~std::uint32_t{0};

  /// `word` is 4-byte aligned, writable, and outlives every handle.
  explicit EventFlag(std::uint32_t& word) : word_(&word) {}

  /// Sets `mask` and wakes who waits for one of its bits. No system call when all were set: who
  /// waits has cleared its bits before, so nobody does.
  void wake(std::uint32_t mask) const;

  /// Clears `mask` and returns those of its bits that were set.
  std::uint32_t take(std::uint32_t mask) const;
  /// The same, but if none was set sleeps first, once, until `until` at the latest or until the
  /// lifeline is cut. 0 after these, a signal or a spurious wake-up.
  std::uint32_t wait_once(std::uint32_t mask, TimePoint until, const Lifeline& lifeline) const;

 private:
  std::uint32_t clear(std::uint32_t mask) const;

  std::uint32_t* word_;
};

}  // namespace penstock
