// SPDX-License-Identifier: Apache-2.0
#include "gst/branch_join.h"

#include <algorithm>
#include <utility>

#include "gst/batch_container.h"

namespace penstock::gst {
BranchJoin::BranchJoin(const Options& options)
    : options_(options), clock_(options.clock != nullptr ? *options.clock : Clock::system()) {}

BranchJoin::Way* BranchJoin::find(Key key) {
  const auto found = ways_.find(key);
  return found == ways_.end() || found->second.leaving ? nullptr : &found->second;
}

BranchJoin::Way* BranchJoin::primary() {
  const auto found =
      std::ranges::find_if(ways_, [](const auto& entry) { return entry.second.pad.primary; });
  return found == ways_.end() ? nullptr : &found->second;
}

void BranchJoin::notify() {
  ++changes_;
  filled_.notify_all();
  room_.notify_all();
}

// Any thread.

void BranchJoin::add(Pad pad) {
  const std::lock_guard lock(mutex_);
  Way& way = ways_[pad.key];
  way.pad = std::move(pad);
  way.stream = std::make_shared<const Stream>();
  way.joining = !way.pad.from_start;
  gst_segment_init(&way.segment, GST_FORMAT_TIME);
  notify();
}

void BranchJoin::remove(Key key) {
  const std::lock_guard lock(mutex_);
  Way* way = find(key);
  if (way == nullptr) return;
  way->leaving = true;
  way->flushing = false;
  if (!way->at_end) end(*way);
  forget_gone();
  notify();
}

void BranchJoin::end(Way& way) {
  way.at_end = true;
  push(way, way.pad.primary ? Item(EventPtr(gst_event_new_eos())) : Item(End{}));
}

void BranchJoin::forget_gone() {
  std::erase_if(ways_, [&](const auto& entry) {
    const Way& way = entry.second;
    if (!way.leaving) return false;
    if (way.pad.primary) return ended_;
    return way.queue.empty() || std::holds_alternative<End>(way.queue.front());
  });
}

void BranchJoin::drop(Way& way) {
  std::deque<Item> dropped;
  dropped.swap(way.queue);
  way.frames = 0;
  way.broken = false;
  for (Item& item : dropped) {
    if (auto* event = std::get_if<EventPtr>(&item)) keep_sticky(std::move(*event));
  }
}

void BranchJoin::keep_sticky(EventPtr event) {
  if (!GST_EVENT_IS_STICKY(event.get()) || GST_EVENT_TYPE(event.get()) == GST_EVENT_EOS) return;
  std::erase_if(sticky_, [&](const EventPtr& kept) { return replaces(event.get(), kept.get()); });
  sticky_.push_back(std::move(event));
}

std::vector<EventPtr> BranchJoin::take_sticky() { return std::exchange(sticky_, {}); }

void BranchJoin::begin_flush(Key key) {
  const std::lock_guard lock(mutex_);
  Way* way = find(key);
  if (way == nullptr) return;
  way->flushing = way->awaited = true;
  drop(*way);
  if (way->pad.primary) {
    // Times begin anew.
    for (auto& [other_key, other] : ways_) other.excused.reset();
    has_left_ = false;
    ++epoch_;
  }
  notify();
}

std::vector<EventPtr> BranchJoin::end_flush(Key key) {
  const std::lock_guard lock(mutex_);
  Way* way = find(key);
  if (way == nullptr) return {};
  way->flushing = way->at_end = false;
  gst_segment_init(&way->segment, GST_FORMAT_TIME);
  notify();
  if (!way->pad.primary) return {};
  ended_ = false;
  flow_ = failed_ ? GST_FLOW_ERROR : GST_FLOW_OK;
  std::erase_if(sticky_, [](const EventPtr& event) {
    return GST_EVENT_TYPE(event.get()) == GST_EVENT_SEGMENT;
  });
  return take_sticky();
}

void BranchJoin::stop(GstFlowReturn flow) {
  const std::lock_guard lock(mutex_);
  flow_ = failed_ ? GST_FLOW_ERROR : flow;
  ++epoch_;
  for (auto& [key, way] : ways_) {
    drop(way);
    if (way.at_end && !(way.pad.primary && ended_)) end(way);
  }
  forget_gone();
  notify();
}

void BranchJoin::fail() {
  {
    const std::lock_guard lock(mutex_);
    failed_ = true;
  }
  stop(GST_FLOW_ERROR);
}

void BranchJoin::restart() {
  const std::lock_guard lock(mutex_);
  std::erase_if(ways_, [](const auto& entry) { return entry.second.leaving; });
  for (auto& [key, way] : ways_) {
    Pad pad = std::move(way.pad);
    way = {};
    way.pad = std::move(pad);
    way.pad.from_start = true;
    way.stream = std::make_shared<const Stream>();
    gst_segment_init(&way.segment, GST_FORMAT_TIME);
  }
  sticky_.clear();
  failed_ = ended_ = has_left_ = false;
  playing_since_ = clock_.now();
  flow_ = GST_FLOW_OK;
  notify();
}

std::optional<std::vector<EventPtr>> BranchJoin::relink() {
  const std::lock_guard lock(mutex_);
  if (flow_ != GST_FLOW_NOT_LINKED) return std::nullopt;
  flow_ = GST_FLOW_OK;
  // What was dropped is neither to be joined nor missed.
  for (auto& [key, way] : ways_) way.joining = true;
  notify();
  return take_sticky();
}

void BranchJoin::set_playing(bool playing) {
  const std::lock_guard lock(mutex_);
  playing_ = playing;
  playing_since_ = clock_.now();
  notify();
}

void BranchJoin::set_live(bool live) {
  const std::lock_guard lock(mutex_);
  live_ = live;
  notify();
}

GstFlowReturn BranchJoin::flow() const {
  const std::lock_guard lock(mutex_);
  return flow_;
}

bool BranchJoin::runs() const {
  const std::lock_guard lock(mutex_);
  return flow_ == GST_FLOW_OK && std::ranges::any_of(ways_, [](const auto& entry) {
           return entry.second.pad.primary && !entry.second.flushing;
         });
}

bool BranchJoin::has_ended() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::none_of(
      ways_, [](const auto& entry) { return entry.second.pad.primary && !entry.second.at_end; });
}

BranchJoin::Stats BranchJoin::stats() const {
  const std::lock_guard lock(mutex_);
  Stats stats = stats_;
  for (const auto& [key, way] : ways_) stats.waiting += static_cast<guint>(way.frames);
  return stats;
}

// The source pad's task.

std::optional<BranchJoin::Output> BranchJoin::next() {
  std::unique_lock lock(mutex_);
  asked_ = clock_.now();
  while (flow_ == GST_FLOW_OK) {
    Way* way = primary();
    if (way == nullptr || way->flushing) return std::nullopt;
    if (auto error = first_error()) return broken(*std::move(error));
    TimePoint until = TimePoint::max();
    if (way->queue.empty()) {
      const auto limit = watch_primary();
      if (!limit) return broken(limit.error());
      until = *limit;
    } else if (const auto* frame = std::get_if<Timed>(&way->queue.front())) {
      const auto verdict = judge(*frame);
      if (!verdict) return broken(verdict.error());
      if (verdict->waiting.empty()) return take(*way, *verdict);
      until = deadline(frame->arrived).value_or(until);
      if (until <= clock_.now()) {
        const auto given_up = give_up(*verdict, *frame);
        if (!given_up) return broken(given_up.error());
        continue;
      }
    } else {
      return leave(*way);
    }
    clock_.wait_until(lock, filled_, until, [this, seen = changes_] { return changes_ != seen; });
  }
  return std::nullopt;
}

BranchJoin::Output BranchJoin::broken(Error error) {
  // Nothing more leaves, although upstream hears of it only when the caller has said why.
  for (auto& [key, way] : ways_) way.broken = true;
  return error;
}

BranchJoin::Output BranchJoin::leave(Way& way) {
  Item item = std::move(way.queue.front());
  way.queue.pop_front();
  room_.notify_all();
  if (auto* query = std::get_if<QueryPtr>(&item)) {
    (*query)->taken = true;
    return std::move(*query);
  }
  EventPtr event = std::move(std::get<EventPtr>(item));
  if (GST_EVENT_TYPE(event.get()) == GST_EVENT_EOS) {
    const bool is_gone = way.leaving;
    ended_ = true;
    drop_branches();
    forget_gone();
    // Another primary pad may have come meanwhile.
    if (is_gone && primary() != nullptr) ended_ = false;
  }
  return event;
}

void BranchJoin::drop_branches() {
  for (auto& [key, way] : ways_) {
    if (way.pad.primary) continue;
    stats_.late += way.frames;
    drop(way);
    if (way.at_end) end(way);
  }
}

BranchJoin::Joined BranchJoin::take(Way& way, const Verdict& verdict) {
  const auto pop = [](Way& from) {
    Timed timed = std::move(std::get<Timed>(from.queue.front()));
    from.queue.pop_front();
    --from.frames;
    from.joining = false;
    return timed;
  };
  Timed first = pop(way);
  Joined joined{.primary = std::move(first.frame), .branches = {}};
  for (Way* with : verdict.with) joined.branches.push_back(pop(*with).frame);
  for (Way* without : verdict.without) without->excused = first.position;
  has_left_ = true;
  ++stats_.frames;
  stats_.joined += verdict.with.size();
  stats_.missing += verdict.left_out;
  forget_gone();
  room_.notify_all();
  return joined;
}

}  // namespace penstock::gst
