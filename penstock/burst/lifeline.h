// SPDX-License-Identifier: Apache-2.0
//
// A Lifeline ends waits from outside. All queues of a burst hang on one: when the peer dies
// (PeerWatch), the burst is stopped, or one of the queues finds the protocol broken, it is cut, and
// every wait of every queue on it ends at once and for good. It is memory of this process alone;
// the peer can neither cut nor mend it.
//
//   auto lifeline = std::make_shared<Lifeline>();
//   const auto watching = watch->watch(socket, std::move(pidfd), lifeline);
//   auto reader = Queue::attach_reader(std::move(descriptor), {.lifeline = lifeline});
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/burst/queue_error.h"

namespace penstock {

class Lifeline {
 public:
  enum class Cause : std::uint32_t {
    kPeerGone = 1,  ///< The peer's process ended, or it closed the connection.
    kStopped = 2,   ///< This process does not want the burst any more.
    kCorrupt = 3,   ///< The peer broke the protocol of a queue.
  };

  /// How a sleep at a shared word ends when this is cut.
  enum class Sleep {
    kBothWords,    ///< The kernel waits for the shared word and for this process's own one at once.
    kShortSlices,  ///< For kernels that can't: nothing sleeps longer than kShortSlice.
  };
  static constexpr Nanoseconds kShortSlice = Milliseconds(5);

  /// The way that the kernel can do.
  Lifeline();
  explicit Lifeline(Sleep sleep) : sleep_(sleep) {}
  /// `when_cut` is called once, by the thread that cuts it first. It must not wait.
  explicit Lifeline(std::function<void()> when_cut);

  /// The first cause stays.
  void cut(Cause cause);

  /// Nothing, or why it was cut: kPeerGone, kStopped, kCorrupt.
  Result<void, QueueError> check() const;

  /// Sleeps until `until` on the system's monotonic clock, or until cut; may return early.
  void nap(TimePoint until) const;

  /// Sleeps at a shared futex word while it is `expected`, as futex_wait(), and until cut. Whatever
  /// the peer does to the word or to who sleeps there, a cut ends it (after kShortSlice at the
  /// latest).
  void sleep_at(std::uint32_t& word, std::uint32_t expected, std::uint32_t bits,
                TimePoint until) const;

 private:
  mutable std::atomic<std::uint32_t> state_{0};  // 0, or a Cause; also a futex word
  const Sleep sleep_;
  const std::function<void()> when_cut_;
};

}  // namespace penstock
