// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/lifeline.h"

#include <algorithm>
#include <utility>

#include "penstock/burst/futex.h"

namespace penstock {
namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free &&
              sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

constexpr std::uint32_t kAnyBit = ~std::uint32_t{0};

std::uint32_t& word_of(std::atomic<std::uint32_t>& state) {
  return reinterpret_cast<std::uint32_t&>(state);
}

}  // namespace

Lifeline::Lifeline()
    : Lifeline(futex_wait_either_works() ? Sleep::kBothWords : Sleep::kShortSlices) {}

Lifeline::Lifeline(std::function<void()> when_cut)
    : sleep_(Lifeline().sleep_), when_cut_(std::move(when_cut)) {}

void Lifeline::cut(Cause cause) {
  std::uint32_t none = 0;
  const bool is_first = state_.compare_exchange_strong(none, static_cast<std::uint32_t>(cause),
                                                       std::memory_order_acq_rel);
  // Who has looked before and is not yet asleep is refused the sleep: state_ is 0 no more.
  futex_wake(word_of(state_), kAnyBit, FutexScope::kProcess);
  if (is_first && when_cut_) when_cut_();
}

Result<void, QueueError> Lifeline::check() const {
  switch (static_cast<Cause>(state_.load(std::memory_order_acquire))) {
    case Cause::kPeerGone:
      return std::unexpected(QueueError::kPeerGone);
    case Cause::kStopped:
      return std::unexpected(QueueError::kStopped);
    case Cause::kCorrupt:
      return std::unexpected(QueueError::kCorrupt);
  }
  return {};
}

void Lifeline::nap(TimePoint until) const {
  futex_wait(word_of(state_), 0, kAnyBit, until, FutexScope::kProcess);
}

void Lifeline::sleep_at(std::uint32_t& word, std::uint32_t expected, std::uint32_t bits,
                        TimePoint until) const {
  if (sleep_ == Sleep::kBothWords) {
    futex_wait_either(word, expected, word_of(state_), until);
  } else {
    const TimePoint slice = Clock::system().now() + kShortSlice;
    futex_wait(word, expected, bits, std::min(until, slice), FutexScope::kShared);
  }
}

}  // namespace penstock
