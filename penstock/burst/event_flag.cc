// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/event_flag.h"

#include <atomic>

#include "penstock/burst/futex.h"
#include "penstock/burst/lifeline.h"

namespace penstock {

static_assert(std::atomic_ref<std::uint32_t>::is_always_lock_free);

void EventFlag::wake(std::uint32_t mask) const {
  if (mask == 0) return;
  // What was published before is seen by whoever clears the bits after this look at them; see
  // take(). While peers poll, the word stays in both caches.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if ((std::atomic_ref(*word_).load(std::memory_order_relaxed) & mask) == mask) return;
  const std::uint32_t old = std::atomic_ref(*word_).fetch_or(mask, std::memory_order_acq_rel);
  if ((old & mask) != mask) futex_wake(*word_, mask, FutexScope::kShared);
}

std::uint32_t EventFlag::take(std::uint32_t mask) const { return clear(mask) & mask; }

/// Returns the word as it was.
std::uint32_t EventFlag::clear(std::uint32_t mask) const {
  const std::uint32_t old = std::atomic_ref(*word_).fetch_and(~mask, std::memory_order_acq_rel);
  // A peer that saw the bits yet and therefore wakes nobody has published before: its counter is
  // seen by what comes next here.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return old;
}

std::uint32_t EventFlag::wait_once(std::uint32_t mask, TimePoint until,
                                   const Lifeline& lifeline) const {
  const std::uint32_t old = clear(mask);
  if ((old & mask) != 0) return old & mask;
  // Whatever is set from here on makes the word differ from `old`, so that the kernel refuses to
  // sleep.
  lifeline.sleep_at(*word_, old, mask, until);
  return take(mask);
}

}  // namespace penstock
