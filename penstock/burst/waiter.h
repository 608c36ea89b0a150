// SPDX-License-Identifier: Apache-2.0
//
// Waiter: the pause between two tries of something that a peer makes possible. First it polls for a
// window, then it sleeps: at an event flag where there is one, else in short naps. It always ends:
// by the deadline, or when the lifeline is cut.
//
//   Waiter waiter(place, deadline, poll_window);
//   PENSTOCK_TRY(waiter.admit());
//   while (true) {
//     auto tried = reader.read(to, count);
//     if (tried || tried.error() != QueueError::kEmpty) return tried;
//     PENSTOCK_TRY(waiter.pause());
//   }
#pragma once

#include <cstdint>
#include <optional>

#include "penstock/base/clock.h"
#include "penstock/base/deadline.h"
#include "penstock/base/error.h"
#include "penstock/burst/event_flag.h"
#include "penstock/burst/lifeline.h"
#include "penstock/burst/queue_error.h"

namespace penstock {

/// The longest time that anything sleeps at a shared word before it looks around: the peer can make
/// a wake-up go missing, by clearing a bit.
inline constexpr Nanoseconds kWaitSlice = Milliseconds(50);

/// Where and on whose behalf a wait happens. What it points to outlives the wait.
struct WaitPlace {
  const Lifeline* lifeline = nullptr;
  std::optional<EventFlag> flag = std::nullopt;  ///< None: naps.
  std::uint32_t bits = 0;                        ///< Of the flag, which the peer sets.
  const Clock* clock = &Clock::system();
  Nanoseconds slice = kWaitSlice;
  bool* slept = nullptr;  ///< Null, or set to true by the first sleep.
};

class Waiter {
 public:
  /// Naps begin with the first and double up to the second. A flag that has woken this waiter
  /// `kPatience` times in a row before its slice was over is slept through in naps of the second,
  /// too.
  static constexpr Nanoseconds kFirstNap = std::chrono::microseconds(50);
  static constexpr Nanoseconds kLongestNap = Milliseconds(1);
  static constexpr int kPatience = 64;

  Waiter(const WaitPlace& place, Deadline deadline, Nanoseconds poll_window);

  /// Whether to try at all: kNoDeadline, kNoBits, or why the lifeline is cut.
  Result<void, QueueError> admit() const;

  /// Returns when it may be worth trying again; else kDeadline, or why the lifeline was cut. When
  /// the deadline passes meanwhile, the caller has one more try before it is told.
  Result<void, QueueError> pause();

  /// Which of the place's bits the last pause() found, and cleared.
  std::uint32_t bits() const { return bits_; }

 private:
  bool poll();
  void sleep(Nanoseconds left);

  WaitPlace place_;
  Deadline deadline_;
  Nanoseconds poll_window_;
  TimePoint poll_until_;  // Set by the first poll.
  Nanoseconds nap_ = kFirstNap;
  std::uint32_t polls_ = 0;
  std::uint32_t bits_ = 0;
  int woken_ = 0;
  bool polling_;
};

/// Waits for one of `mask`; returns which, cleared. kDeadline, kNoDeadline, kNoBits (mask 0), and
/// what the lifeline says. Looks at the word once even when the deadline has passed.
Result<std::uint32_t, QueueError> wait_for_bits(EventFlag flag, std::uint32_t mask,
                                                Deadline deadline, const Lifeline& lifeline,
                                                const Clock& clock = Clock::system());

}  // namespace penstock
