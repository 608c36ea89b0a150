// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/waiter.h"

#include <algorithm>
#include <thread>

namespace penstock {
namespace {

/// Reading the clock costs more than a look at the ring.
constexpr std::uint32_t kPollsBetweenClocks = 16;
/// With two cores the peer or the watcher may be waiting for this one.
constexpr std::uint32_t kPollsBetweenYields = 64;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace

Waiter::Waiter(const WaitPlace& place, Deadline deadline, Nanoseconds poll_window)
    : place_(place),
      deadline_(deadline),
      poll_window_(poll_window),
      polling_(poll_window > Nanoseconds::zero()) {}

Result<void, QueueError> Waiter::admit() const {
  if (deadline_.at() == TimePoint::max()) return std::unexpected(QueueError::kNoDeadline);
  if (place_.flag && place_.bits == 0) return std::unexpected(QueueError::kNoBits);
  return place_.lifeline->check();
}

/// True when the window is still open.
bool Waiter::poll() {
  if (polls_ == 0) poll_until_ = std::min(place_.clock->now() + poll_window_, deadline_.at());
  if (++polls_ % kPollsBetweenClocks == 0 && place_.clock->now() >= poll_until_) return false;
  if (polls_ % kPollsBetweenYields == 0) {
    std::this_thread::yield();
  } else {
    relax();
  }
  return true;
}

void Waiter::sleep(Nanoseconds left) {
  if (place_.slept != nullptr) *place_.slept = true;
  const TimePoint now = Clock::system().now();
  if (!place_.flag) {
    place_.lifeline->nap(now + std::min(left, nap_));
    nap_ = std::min(2 * nap_, kLongestNap);
  } else if (woken_ < kPatience) {
    const TimePoint slice = now + std::min(left, place_.slice);
    bits_ = place_.flag->wait_once(place_.bits, slice, *place_.lifeline);
    woken_ = Clock::system().now() < slice ? woken_ + 1 : 0;
  } else {
    place_.lifeline->nap(now + std::min(left, kLongestNap));
  }
}

Result<void, QueueError> Waiter::pause() {
  PENSTOCK_TRY(place_.lifeline->check());
  bits_ = 0;
  if (polling_) {
    polling_ = poll();
    if (polling_) return {};
  }
  // The futex knows the system's clock only; another clock's deadline is looked at each slice.
  if (deadline_.passed(*place_.clock)) return std::unexpected(QueueError::kDeadline);
  sleep(deadline_.at() - place_.clock->now());
  return place_.lifeline->check();
}

Result<std::uint32_t, QueueError> wait_for_bits(EventFlag flag, std::uint32_t mask,
                                                Deadline deadline, const Lifeline& lifeline,
                                                const Clock& clock) {
  Waiter waiter({.lifeline = &lifeline, .flag = flag, .bits = mask, .clock = &clock}, deadline,
                Nanoseconds::zero());
  PENSTOCK_TRY(waiter.admit());
  std::uint32_t bits = flag.take(mask);
  while (bits == 0) {
    PENSTOCK_TRY(waiter.pause());
    bits = waiter.bits() | flag.take(mask);
  }
  return bits;
}

}  // namespace penstock
