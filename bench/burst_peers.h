// SPDX-License-Identifier: Apache-2.0
//
// The contenders of bench burst: the same question of 336 bytes and answer of 168, there and back
// between two processes (or threads, where its name says so), by different means.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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

/// A process without other threads that does `answer` on core 1, and ends with this one, and, by
/// `signal`, when this goes. To be made before the caller has threads.
class Child {
 public:
  static Result<std::unique_ptr<Child>> start(const std::function<void()>& answer,
                                              int signal = SIGKILL);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

 private:
  Child(pid_t pid, int signal) : pid_(pid), signal_(signal) {}
  const pid_t pid_;
  const int signal_;
};

/// What the answer's first byte is for a question's.
inline std::uint8_t answer_of(std::uint8_t question) {
  return static_cast<std::uint8_t>(question + 1);
}

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
