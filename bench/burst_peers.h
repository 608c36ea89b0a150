// SPDX-License-Identifier: Apache-2.0
//
// The contenders of bench burst: the same question of 336 bytes and answer of 168, there and back
// between two processes (or threads, where its name says so), by different means.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"

namespace penstock::bench {

/// What a small execution's packets weigh: 14 and 7 datums.
inline constexpr std::size_t kQuestionBytes = 336;
inline constexpr std::size_t kAnswerBytes = 168;

/// Asks, and waits for the answer. The other side works until this goes.
class Asker {
 public:
  virtual ~Asker() = default;
  /// One round trip; kDeadline when nothing comes back for a second, kCorrupt for a wrong answer.
  virtual Result<void> ask() = 0;
};
using AskerPtr = std::unique_ptr<Asker>;

/// Two futex words and the bytes, in memory that two processes share.
Result<AskerPtr> make_ping_pong();
/// A seqpacket pair of Unix sockets.
Result<AskerPtr> make_uds();
/// Two threads that poll one cache line; no bytes besides.
Result<AskerPtr> make_spin_ping_pong();

/// The calling thread stays on a core: 0 for who asks, 1 for who answers.
/// Of those that the process had when it first asked.
void stay_on_core(int core);
/// All of them again. A process that is started inherits what its starter may use.
void leave_core();

/// Each in nanoseconds.
Result<std::vector<double>> time_round_trips(Asker& asker, int count);

}  // namespace penstock::bench
