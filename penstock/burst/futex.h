// SPDX-License-Identifier: Apache-2.0
//
// The futex system call, as far as this room needs it.
#pragma once

#include <cstdint>

#include "penstock/base/clock.h"

namespace penstock {

enum class FutexScope {
  kProcess,  ///< All waiters and wakers are threads of this process.
  kShared,   ///< The word lies in memory that processes share.
};

/// Sleeps while `word` is `expected`, until a wake-up of one of `bits` or until `until` on the
/// monotonic clock; also returns for no reason, after a signal, and at once when the word differs.
/// Why it returned says nothing that the caller must not look for itself, so it is not told.
void futex_wait(std::uint32_t& word, std::uint32_t expected, std::uint32_t bits, TimePoint until,
                FutexScope scope);

/// As futex_wait at a shared `word`, and at the same time at this process's own word `own` while
/// that is 0. To be called only where futex_wait_either_works().
void futex_wait_either(std::uint32_t& word, std::uint32_t expected, std::uint32_t& own,
                       TimePoint until);
/// The kernel has futex_waitv (Linux 5.16), and no sandbox forbids it.
bool futex_wait_either_works();

/// Wakes all who wait at `word` for one of `bits`.
void futex_wake(std::uint32_t& word, std::uint32_t bits, FutexScope scope);

}  // namespace penstock
