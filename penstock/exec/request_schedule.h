// SPDX-License-Identifier: Apache-2.0
//
// RequestSchedule decides who is admitted and who runs next (contract B01-B04). It is the executor
// without threads and clock: plain state, changed under the executor's lock.
//
// Each source has a FIFO of its own, and the sources with waiting requests stand in a ring. A batch
// takes the first request of the first sources, which then go to the ring's end. So a source's
// first request waits at most ceil(active sources / batch size) batches, whatever the others do.
// Callers that wait for room are handed a slot the moment it falls free, the least recently
// admitted source first; newcomers can't overtake them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "penstock/exec/batch_executor.h"

namespace penstock {

struct PendingRequest {
  InferenceRequest request;
  std::promise<Result<InferenceResult>> promise;
  TimePoint submitted{};
};

/// A request whose caller waits for room; lives on that caller's stack.
struct BlockedRequest {
  enum class State { kWaiting, kAdmitted, kCancelled };

  explicit BlockedRequest(PendingRequest request) : pending(std::move(request)) {}

  PendingRequest pending;  ///< Moved from once admitted.
  State state = State::kWaiting;
  std::condition_variable changed;
};

class RequestSchedule {
 public:
  explicit RequestSchedule(const ExecutorOptions& options);

  /// kCancelled, or kExhausted when one source more would be too many.
  Result<void> check(const SourceId& source, Generation generation) const;
  bool has_room(const SourceId& source) const;
  /// Why has_room() said no, for a user.
  Error full(const SourceId& source) const;

  /// Only with room.
  void add(PendingRequest pending);
  /// Only without. `blocked` must stay until its state has changed.
  void block(BlockedRequest& blocked);

  /// When the next batch may run: TimePoint::min() at once, max() when nothing waits.
  TimePoint due() const;
  /// One batch; not empty when due() is not max(). Each request counts as running until finish().
  std::vector<PendingRequest> take();
  void finish(const SourceId& source);

  /// Removes and returns what waits; wakes the blocked. Like add() and block(), brings back a
  /// source that was retired.
  std::vector<PendingRequest> cancel(const SourceId& source, Generation generation);
  /// cancel() of everything, for good.
  std::vector<PendingRequest> cancel_all();
  void retire(const SourceId& source);

  std::size_t waiting() const { return waiting_; }
  std::size_t blocked() const { return blocked_.size(); }
  std::size_t sources() const { return sources_.size(); }
  /// Requests admitted so far.
  std::uint64_t admissions() const { return admissions_; }
  /// Streams forgotten since the last call, as their lane 0: none of their lanes is left.
  std::vector<SourceId> take_forgotten() { return std::exchange(forgotten_, {}); }

 private:
  struct Source {
    std::deque<PendingRequest> waiting;
    std::size_t running = 0;
    std::size_t blocked = 0;
    std::optional<Generation> cancelled;  // Up to and including.
    std::uint64_t last_admission = 0;
    bool retired = false;
  };
  using Sources = std::map<SourceId, Source>;

  Source& enlist(const SourceId& source);
  void enqueue(Source& source, PendingRequest pending);
  void admit_blocked();
  void wake(std::list<BlockedRequest*>::iterator blocked, Source& source,
            BlockedRequest::State state);
  std::vector<PendingRequest> remove_waiting(Source& source, Generation generation);
  void forget_if_idle(const SourceId& source);

  const std::size_t depth_;
  const std::size_t share_;
  const std::size_t batch_size_;
  const std::size_t max_sources_;
  const Nanoseconds max_wait_;

  Sources sources_;                     // Nodes are stable: ring_ points into them.
  std::deque<Source*> ring_;            // Sources with waiting requests, next first.
  std::list<BlockedRequest*> blocked_;  // In order of arrival.
  std::size_t waiting_ = 0;
  std::uint64_t admissions_ = 0;
  std::vector<SourceId> forgotten_;
};

}  // namespace penstock
