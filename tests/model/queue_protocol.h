// SPDX-License-Identifier: Apache-2.0
//
// The waiting protocol of a synchronised queue with an event word, as a transition system small
// enough to be explored completely: writer, reader and the survivor's watcher take their atomic
// steps in every order, and one of the two ends may die before any of its steps; a hostile one may
// besides set the event word to anything and move its sleeping peer elsewhere (FUTEX_REQUEUE). The
// steps are those of RingWriter/RingReader, EventFlag, Waiter and Lifeline::cut(), one atomic
// access or system call each. Left out on purpose: time slices and deadlines, which would hide a
// lost wake-up, and spurious wake-ups, which only add looks.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock::model {

inline constexpr std::uint8_t kCapacity = 2;
inline constexpr std::uint8_t kItems = 5;

/// Ways to get the protocol wrong, each of which the exploration must find.
enum class Flaw {
  kNone,
  kPublishBeforeStore,   ///< The counter is published before the element is there.
  kWakeBeforePublish,    ///< The bit is set, and the peer woken, before the counter is published.
  kSleepWithoutCompare,  ///< The kernel does not compare the word.
  kIgnoreSetBit,         ///< The waiter sleeps although clearing showed that its bit was set.
  kPeekBeforePublish,    ///< Whether the bit is set is looked at before the counter is published.
  kSkipIfAnyBit,         ///< No system call when any bit was set, instead of this one.
  kSleepAtOneWord,  ///< The waiter sleeps at the shared word only, and the watcher wakes it there.
  kWakeBeforeCut,   ///< The watcher wakes first and marks the lifeline then.
  kNoWatcher,       ///< Nobody tells the survivor.
};

enum class Mortal { kNobody, kWriter, kReader };
enum class Peer { kHonest, kHostile };  ///< The mortal one.

/// What an end does next. Both have the same steps; kStore is the reader's load.
enum class Step : std::uint8_t {
  kCheck,    ///< Look at the lifeline.
  kLook,     ///< Load the peer's counter; room, or something there?
  kStore,    ///< Copy the element.
  kPublish,  ///< Store the own counter.
  kPeek,     ///< Load the word; when the peer's bit is set, nobody needs to be woken.
  kSetBit,   ///< word |= the peer's bit.
  kWake,     ///< FUTEX_WAKE.
  kClear,    ///< word &= ~own bit.
  kSleep,    ///< futex_waitv: compares word and lifeline, and sleeps at both, in one.
  kAsleep,   ///< Nothing, until woken.
  kClean,    ///< word &= ~own bit after the sleep.
  kDone,     ///< All elements passed.
  kGone,     ///< Told that the peer is gone.
  kDead,
};

struct End {
  Step step = Step::kCheck;
  std::uint8_t count = 0;  ///< Elements stored (or loaded) by this end.
  std::uint8_t old = 0;    ///< The word as the last access found it.
  bool saw = false;        ///< kPeekBeforePublish: the bit was set.
  bool moved = false;      ///< Asleep where wake-ups of the word do not reach it.
  auto operator<=>(const End&) const = default;
};

struct State {
  End writer, reader;
  std::uint8_t written = 0, read = 0;  ///< The counters, in elements.
  std::uint8_t word = 0;
  std::uint8_t watcher = 0;  ///< Its next step, 0 to 2.
  bool cut = false;          ///< The survivor's lifeline.
  std::array<std::uint8_t, kCapacity> ring{};
  bool wrong = false;  ///< The reader got an element that was not the next one.
  auto operator<=>(const State&) const = default;
};

struct Exploration {
  std::size_t states = 0;
  std::size_t ends = 0;   ///< States in which nothing can happen any more.
  std::string complaint;  ///< Empty, or the first state that must not be, and why.
};

/// Every state that can come of the first one.
Exploration explore(Mortal mortal, Peer peer, Flaw flaw);

}  // namespace penstock::model
