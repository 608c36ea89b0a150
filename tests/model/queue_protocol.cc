// SPDX-License-Identifier: Apache-2.0
#include "tests/model/queue_protocol.h"

#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace penstock::model {
namespace {

constexpr std::uint8_t kNotFull = 1;
constexpr std::uint8_t kNotEmpty = 2;
constexpr std::uint8_t kWords = 4;  // Values that the word can have.

std::uint8_t without(std::uint8_t word, std::uint8_t bit) {
  return static_cast<std::uint8_t>(word & ~bit);
}

/// One end's view of a state, so that both share the code of their steps.
struct Side {
  bool writes;
  std::uint8_t own_bit;   // Waited for.
  std::uint8_t peer_bit;  // Set for the peer.
};
constexpr Side kWriterSide = {.writes = true, .own_bit = kNotFull, .peer_bit = kNotEmpty};
constexpr Side kReaderSide = {.writes = false, .own_bit = kNotEmpty, .peer_bit = kNotFull};

End& end_of(State& state, const Side& side) { return side.writes ? state.writer : state.reader; }
End& peer_of(State& state, const Side& side) { return side.writes ? state.reader : state.writer; }

void rouse(End& end) {
  if (end.step != Step::kAsleep) return;
  end.step = Step::kClean;
  end.moved = false;
}

/// FUTEX_WAKE at the shared word.
void wake(End& end) {
  if (!end.moved) rouse(end);
}

void copy_element(State& state, const Side& side) {
  End& end = end_of(state, side);
  auto& slot = state.ring.at(end.count % kCapacity);
  ++end.count;
  if (side.writes) {
    slot = end.count;  // Element i holds i + 1; 0 is none.
  } else if (slot != end.count) {
    state.wrong = true;
  }
}

void publish(State& state, const Side& side) { ++(side.writes ? state.written : state.read); }

/// The order of the steps that pass an element.
Step after_look(Flaw flaw, const Side& side) {
  if (flaw == Flaw::kWakeBeforePublish) return Step::kPeek;
  if (flaw == Flaw::kPublishBeforeStore && side.writes) return Step::kPublish;
  return Step::kStore;
}

Step after_store(Flaw flaw, const Side& side) {
  if (flaw == Flaw::kPublishBeforeStore && side.writes) return Step::kPeek;
  if (flaw == Flaw::kPeekBeforePublish) return Step::kPeek;
  return Step::kPublish;
}

Step next_element(const End& end) { return end.count == kItems ? Step::kDone : Step::kCheck; }

Step after_publish(Flaw flaw, const Side& side, const End& end) {
  if (flaw == Flaw::kWakeBeforePublish) return next_element(end);
  if (flaw == Flaw::kPublishBeforeStore && side.writes) return Step::kStore;
  if (flaw == Flaw::kPeekBeforePublish) return end.saw ? next_element(end) : Step::kSetBit;
  return Step::kPeek;
}

Step after_wake(Flaw flaw, const End& end) {
  return flaw == Flaw::kWakeBeforePublish ? Step::kStore : next_element(end);
}

void look(State& state, const Side& side, Flaw flaw) {
  const int there = state.written - state.read;
  const bool possible = side.writes ? there < kCapacity : there > 0;
  end_of(state, side).step = possible ? after_look(flaw, side) : Step::kClear;
}

void peek(State& state, const Side& side, Flaw flaw) {
  End& end = end_of(state, side);
  const bool is_set = (state.word & side.peer_bit) != 0;
  if (flaw == Flaw::kPeekBeforePublish) {
    end.saw = is_set;
    end.step = Step::kPublish;
  } else {
    end.step = is_set ? after_wake(flaw, end) : Step::kSetBit;
  }
}

void set_bit(State& state, const Side& side, Flaw flaw) {
  End& end = end_of(state, side);
  const std::uint8_t old = std::exchange(state.word, state.word | side.peer_bit);
  const bool skip = flaw == Flaw::kSkipIfAnyBit ? old != 0 : (old & side.peer_bit) != 0;
  end.step = skip ? after_wake(flaw, end) : Step::kWake;
}

void clear(State& state, const Side& side, Flaw flaw) {
  End& end = end_of(state, side);
  end.old = std::exchange(state.word, without(state.word, side.own_bit));
  const bool was_set = (end.old & side.own_bit) != 0 && flaw != Flaw::kIgnoreSetBit;
  end.old = without(end.old, side.own_bit);
  end.step = was_set ? Step::kCheck : Step::kSleep;
}

bool may_sleep(const State& state, const End& end, Flaw flaw) {
  if (flaw == Flaw::kSleepWithoutCompare) return true;
  return state.word == end.old && (!state.cut || flaw == Flaw::kSleepAtOneWord);
}

/// Takes the step that the end is at.
void take_step(State& state, const Side& side, Flaw flaw) {
  End& end = end_of(state, side);
  switch (end.step) {
    case Step::kCheck:
      end.step = state.cut ? Step::kGone : Step::kLook;
      break;
    case Step::kLook:
      look(state, side, flaw);
      break;
    case Step::kStore:
      copy_element(state, side);
      end.step = after_store(flaw, side);
      break;
    case Step::kPublish:
      publish(state, side);
      end.step = after_publish(flaw, side, end);
      break;
    case Step::kPeek:
      peek(state, side, flaw);
      break;
    case Step::kSetBit:
      set_bit(state, side, flaw);
      break;
    case Step::kWake:
      wake(peer_of(state, side));
      end.step = after_wake(flaw, end);
      break;
    case Step::kClear:
      clear(state, side, flaw);
      break;
    case Step::kSleep:
      end.step = may_sleep(state, end, flaw) ? Step::kAsleep : Step::kClean;
      break;
    case Step::kClean:
      state.word = without(state.word, side.own_bit);
      end.step = Step::kCheck;
      break;
    case Step::kAsleep:
    case Step::kDone:
    case Step::kGone:
    case Step::kDead:
      break;
  }
}

bool can_step(const End& end) {
  return end.step != Step::kAsleep && end.step != Step::kDone && end.step != Step::kGone &&
         end.step != Step::kDead;
}

/// Lifeline::cut() in the survivor's process.
void take_watcher_step(State& state, const Side& survivor, Flaw flaw) {
  const bool first = state.watcher++ == 0;
  if (first != (flaw == Flaw::kWakeBeforeCut)) {
    state.cut = true;
  } else if (flaw == Flaw::kSleepAtOneWord) {
    wake(end_of(state, survivor));
  } else {
    rouse(end_of(state, survivor));
  }
}

/// What a hostile peer can do to the survivor's sleep, at any time while it lives.
void add_hostile_steps(const State& state, const Side& survivor, std::vector<State>& next) {
  for (std::uint8_t word = 0; word < kWords; ++word) {
    if (word == state.word) continue;
    State changed = state;
    changed.word = word;
    next.push_back(changed);
  }
  State moved = state;
  End& end = end_of(moved, survivor);
  if (end.step == Step::kAsleep && !end.moved) {
    end.moved = true;
    next.push_back(moved);
  }
}

std::vector<State> successors(const State& state, Mortal mortal, Peer peer, Flaw flaw) {
  std::vector<State> next;
  const Side& survivor = mortal == Mortal::kWriter ? kReaderSide : kWriterSide;
  const bool someone_dead = state.writer.step == Step::kDead || state.reader.step == Step::kDead;
  for (const Side& side : {kWriterSide, kReaderSide}) {
    State stepped = state;
    End& end = end_of(stepped, side);
    if (can_step(end)) {
      take_step(stepped, side, flaw);
      next.push_back(stepped);
    }
    const bool may_die = mortal == (side.writes ? Mortal::kWriter : Mortal::kReader);
    if (may_die && !someone_dead) {
      State died = state;
      end_of(died, side).step = Step::kDead;
      next.push_back(died);
    }
  }
  if (someone_dead && state.watcher < 2 && flaw != Flaw::kNoWatcher) {
    State watched = state;
    take_watcher_step(watched, survivor, flaw);
    next.push_back(watched);
  }
  if (!someone_dead && peer == Peer::kHostile) add_hostile_steps(state, survivor, next);
  return next;
}

bool has_ended(const End& end) {
  return end.step == Step::kDone || end.step == Step::kGone || end.step == Step::kDead;
}

std::string name_of(const State& state) {
  const auto end = [](const End& e) {
    return std::to_string(static_cast<int>(e.step)) + "/" + std::to_string(e.count);
  };
  return "writer " + end(state.writer) + " reader " + end(state.reader) + " word " +
         std::to_string(state.word) + " counters " + std::to_string(state.written) + "-" +
         std::to_string(state.read) + (state.cut ? " cut" : "");
}

std::string fault_of(const State& state, bool is_end) {
  const int there = state.written - state.read;
  if (there < 0 || there > kCapacity) return "the counters are apart: ";
  if (state.wrong) return "the reader got another element than the next: ";
  if (is_end && !(has_ended(state.writer) && has_ended(state.reader))) return "stuck for ever: ";
  return {};
}

}  // namespace

Exploration explore(Mortal mortal, Peer peer, Flaw flaw) {
  Exploration found;
  std::map<State, std::vector<State>> before;  // Which states lead here.
  std::deque<State> open = {State{}};
  std::vector<State> ends;
  before[State{}];
  while (!open.empty()) {
    const State state = open.front();
    open.pop_front();
    const auto next = successors(state, mortal, peer, flaw);
    if (next.empty()) ends.push_back(state);
    const std::string fault = fault_of(state, next.empty());
    if (!fault.empty() && found.complaint.empty()) found.complaint = fault + name_of(state);
    for (const State& after : next) {
      auto& leads = before[after];
      if (leads.empty() && after != State{}) open.push_back(after);
      leads.push_back(state);
    }
  }
  found.states = before.size();
  found.ends = ends.size();
  // Nobody goes round in circles: an end can be reached from everywhere.
  std::set<State> reaching(ends.begin(), ends.end());
  open.assign(ends.begin(), ends.end());
  while (!open.empty()) {
    const State state = open.front();
    open.pop_front();
    for (const State& earlier : before[state]) {
      if (reaching.insert(earlier).second) open.push_back(earlier);
    }
  }
  if (reaching.size() != found.states && found.complaint.empty()) {
    found.complaint = "from some states no end can be reached";
  }
  return found;
}

}  // namespace penstock::model
