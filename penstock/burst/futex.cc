// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <ctime>

namespace penstock {
namespace {

int operation(int what, FutexScope scope) {
  return scope == FutexScope::kProcess ? what | FUTEX_PRIVATE_FLAG : what;
}

timespec absolute(TimePoint until) {
  // std::chrono::steady_clock is CLOCK_MONOTONIC.
  const auto since = std::max(until.time_since_epoch(), Nanoseconds::zero());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
  timespec limit{};
  limit.tv_sec = seconds.count();
  limit.tv_nsec = static_cast<long>((since - seconds).count());
  return limit;
}

futex_waitv waiter_at(std::uint32_t& word, std::uint32_t expected, std::uint32_t flags) {
  futex_waitv waiter{};
  waiter.val = expected;
  waiter.uaddr = reinterpret_cast<std::uintptr_t>(&word);
  waiter.flags = FUTEX_32 | flags;
  return waiter;
}

}  // namespace

void futex_wait(std::uint32_t& word, std::uint32_t expected, std::uint32_t bits, TimePoint until,
                FutexScope scope) {
  const timespec limit = absolute(until);
  ::syscall(SYS_futex, &word, operation(FUTEX_WAIT_BITSET, scope), expected, &limit, nullptr, bits);
}

void futex_wait_either(std::uint32_t& word, std::uint32_t expected, std::uint32_t& own,
                       TimePoint until) {
  std::array<futex_waitv, 2> waiters = {waiter_at(word, expected, 0),
                                        waiter_at(own, 0, FUTEX_PRIVATE_FLAG)};
  timespec limit = absolute(until);
  ::syscall(SYS_futex_waitv, waiters.data(), waiters.size(), 0, &limit, CLOCK_MONOTONIC);
}

bool futex_wait_either_works() {
  // Nothing to wait for is EINVAL where the call exists; ENOSYS, or EPERM in a sandbox, elsewhere.
  static const bool works =
      ::syscall(SYS_futex_waitv, nullptr, 0, 0, nullptr, CLOCK_MONOTONIC) < 0 && errno == EINVAL;
  return works;
}

void futex_wake(std::uint32_t& word, std::uint32_t bits, FutexScope scope) {
  ::syscall(SYS_futex, &word, operation(FUTEX_WAKE_BITSET, scope), INT_MAX, nullptr, nullptr, bits);
}

}  // namespace penstock
