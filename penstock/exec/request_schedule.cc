// SPDX-License-Identifier: Apache-2.0
#include "penstock/exec/request_schedule.h"

#include <algorithm>
#include <limits>

#include "penstock/base/str_format.h"

namespace penstock {

RequestSchedule::RequestSchedule(const ExecutorOptions& options)
    : depth_(options.queue_depth),
      share_(options.source_share),
      batch_size_(static_cast<std::size_t>(options.batch_size)),
      max_sources_(options.max_sources),
      max_wait_(options.max_wait) {}

Result<void> RequestSchedule::check(const SourceId& source, Generation generation) const {
  const auto found = sources_.find(source);
  if (found == sources_.end()) {
    if (sources_.size() < max_sources_) return {};
    return fail(ErrorKind::kExhausted,
                str_format("source '{}' is one more than the executor's {}; retire sources that "
                           "have ended",
                           source.name, max_sources_));
  }
  if (found->second.cancelled && generation <= *found->second.cancelled) {
    return fail(ErrorKind::kCancelled,
                str_format("generation {} of source '{}' was cancelled", generation, source.name));
  }
  return {};
}

bool RequestSchedule::has_room(const SourceId& source) const {
  if (waiting_ >= depth_) return false;
  const auto found = sources_.find(source);
  return found == sources_.end() || found->second.waiting.size() < share_;
}

Error RequestSchedule::full(const SourceId& source) const {
  if (waiting_ >= depth_) {
    return {ErrorKind::kExhausted,
            str_format("the inference queue is full ({} requests) and source '{}' asked not to "
                       "wait; send fewer frames or deepen the queue",
                       depth_, source.name)};
  }
  return {ErrorKind::kExhausted,
          str_format("source '{}' has {} requests in the inference queue, which is its share, and "
                     "asked not to wait; send fewer frames",
                     source.name, share_)};
}

void RequestSchedule::add(PendingRequest pending) {
  Source& source = enlist(pending.request.source);
  enqueue(source, std::move(pending));
}

void RequestSchedule::block(BlockedRequest& blocked) {
  ++enlist(blocked.pending.request.source).blocked;
  blocked_.push_back(&blocked);
}

TimePoint RequestSchedule::due() const {
  if (ring_.empty()) return TimePoint::max();
  if (ring_.size() >= batch_size_ || waiting_ >= depth_) return TimePoint::min();
  TimePoint oldest = TimePoint::max();
  for (const Source* source : ring_) {
    oldest = std::min(oldest, source->waiting.front().submitted);
  }
  return TimePoint::max() - oldest > max_wait_ ? oldest + max_wait_ : TimePoint::max();
}

std::vector<PendingRequest> RequestSchedule::take() {
  const std::size_t size = std::min(batch_size_, ring_.size());
  std::vector<PendingRequest> batch;
  batch.reserve(size);
  // Sources with more go to the end only after the whole batch is taken: one request a source.
  const std::vector<Source*> taken(ring_.begin(),
                                   ring_.begin() + static_cast<std::ptrdiff_t>(size));
  ring_.erase(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(size));
  for (Source* source : taken) {
    batch.push_back(std::move(source->waiting.front()));
    source->waiting.pop_front();
    ++source->running;
    --waiting_;
    if (!source->waiting.empty()) ring_.push_back(source);
  }
  admit_blocked();
  return batch;
}

void RequestSchedule::finish(const SourceId& source) {
  --sources_.at(source).running;
  forget_if_idle(source);
}

std::vector<PendingRequest> RequestSchedule::cancel(const SourceId& id, Generation generation) {
  // Beyond the limit nothing is remembered: submits of unknown sources are refused there too.
  if (!sources_.contains(id) && sources_.size() >= max_sources_) return {};
  Source& source = enlist(id);
  source.cancelled = std::max(source.cancelled.value_or(0), generation);
  for (auto it = blocked_.begin(); it != blocked_.end();) {
    const auto current = it++;
    const InferenceRequest& request = (*current)->pending.request;
    if (request.source == id && request.generation <= generation) {
      wake(current, source, BlockedRequest::State::kCancelled);
    }
  }
  std::vector<PendingRequest> removed = remove_waiting(source, generation);
  admit_blocked();
  return removed;
}

std::vector<PendingRequest> RequestSchedule::cancel_all() {
  while (!blocked_.empty()) {
    const auto first = blocked_.begin();
    wake(first, sources_.at((*first)->pending.request.source), BlockedRequest::State::kCancelled);
  }
  std::vector<PendingRequest> removed;
  for (auto& [id, source] : sources_) {
    for (PendingRequest& pending : remove_waiting(source, std::numeric_limits<Generation>::max())) {
      removed.push_back(std::move(pending));
    }
  }
  return removed;
}

void RequestSchedule::retire(const SourceId& source) {
  const auto found = sources_.find(source);
  if (found == sources_.end()) return;
  found->second.retired = true;
  found->second.cancelled.reset();
  forget_if_idle(source);
}

RequestSchedule::Source& RequestSchedule::enlist(const SourceId& source) {
  Source& state = sources_[source];
  state.retired = false;
  return state;
}

void RequestSchedule::enqueue(Source& source, PendingRequest pending) {
  if (source.waiting.empty()) ring_.push_back(&source);
  source.waiting.push_back(std::move(pending));
  source.last_admission = ++admissions_;
  ++waiting_;
}

void RequestSchedule::admit_blocked() {
  while (waiting_ < depth_) {
    auto next = blocked_.end();
    Source* next_source = nullptr;
    for (auto it = blocked_.begin(); it != blocked_.end(); ++it) {
      Source& source = sources_.at((*it)->pending.request.source);
      if (source.waiting.size() >= share_) continue;
      // On a tie, which only one source's own requests have, the earlier caller.
      if (next_source == nullptr || source.last_admission < next_source->last_admission) {
        next = it;
        next_source = &source;
      }
    }
    if (next_source == nullptr) return;
    enqueue(*next_source, std::move((*next)->pending));
    wake(next, *next_source, BlockedRequest::State::kAdmitted);
  }
}

void RequestSchedule::wake(std::list<BlockedRequest*>::iterator blocked, Source& source,
                           BlockedRequest::State state) {
  BlockedRequest& request = **blocked;
  blocked_.erase(blocked);
  --source.blocked;
  request.state = state;
  request.changed.notify_one();
}

std::vector<PendingRequest> RequestSchedule::remove_waiting(Source& source, Generation generation) {
  std::vector<PendingRequest> removed;
  std::deque<PendingRequest> kept;
  for (PendingRequest& pending : source.waiting) {
    if (pending.request.generation <= generation) {
      removed.push_back(std::move(pending));
    } else {
      kept.push_back(std::move(pending));
    }
  }
  source.waiting = std::move(kept);
  waiting_ -= removed.size();
  if (source.waiting.empty()) std::erase(ring_, &source);
  return removed;
}

void RequestSchedule::forget_if_idle(const SourceId& id) {
  const auto found = sources_.find(id);
  if (found == sources_.end()) return;
  const Source& source = found->second;
  if (!source.retired || source.running > 0 || source.blocked > 0 || !source.waiting.empty()) {
    return;
  }
  sources_.erase(found);
  // The stream has gone with the last of its lanes.
  const auto other = sources_.lower_bound({.name = id.name});
  if (other == sources_.end() || other->first.name != id.name) {
    forgotten_.push_back({.name = id.name});
  }
}

}  // namespace penstock
