// SPDX-License-Identifier: Apache-2.0
//
// Which frames are the same, and what is done about those that are not there.
#include <algorithm>
#include <string>
#include <utility>

#include "gst/branch_join.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

GstClockTime pts_of(const BranchJoin::Frame& frame) { return GST_BUFFER_PTS(frame.buffer.get()); }

}  // namespace

std::optional<Error> BranchJoin::first_error() const {
  for (const auto& [key, way] : ways_) {
    if (way.queue.empty()) continue;
    if (const auto* error = std::get_if<Error>(&way.queue.front())) return *error;
  }
  return std::nullopt;
}

BranchJoin::Order BranchJoin::order(const Item& head, const Timed& frame) {
  const auto* timed = std::get_if<Timed>(&head);
  const auto* gap = std::get_if<Gap>(&head);
  const Position& there = timed != nullptr ? timed->position : gap->position;
  const Stream& stream = *frame.position.stream;
  if (there.stream->id != stream.id) {
    if (there.stream->before == stream.id) return Order::kAhead;
    if (stream.before == there.stream->id) return Order::kBehind;
    return Order::kOtherSource;
  }
  const std::int64_t now = frame.position.running_time;
  if (there.running_time > now) return Order::kAhead;
  if (gap != nullptr) return gap->end <= now ? Order::kBehind : Order::kSame;
  if (there.running_time < now) return Order::kBehind;
  return pts_of(timed->frame) == pts_of(frame.frame) ? Order::kSame : Order::kOtherPts;
}

bool BranchJoin::is_late(const Way& way, const Position& head) {
  if (way.joining) return true;
  if (!way.excused) return false;
  return head.stream->id != way.excused->stream->id ||
         head.running_time <= way.excused->running_time;
}

Result<BranchJoin::Answer> BranchJoin::answer(Way& way, const Timed& frame) {
  const auto refuse = [&](std::string why) {
    return penstock::fail(ErrorKind::kUnsupported,
                          str_format("pad '{}': {}", way.pad.name, std::move(why)));
  };
  const std::string& primary = frame.frame.pad;
  while (!way.queue.empty()) {
    const Item& head = way.queue.front();
    if (std::holds_alternative<End>(head)) {
      return way.leaving ? Answer::kNotThere : Answer::kLeftOut;
    }
    // It came to the front only now.
    if (const auto* error = std::get_if<Error>(&head)) return std::unexpected(*error);
    const auto* timed = std::get_if<Timed>(&head);
    switch (order(head, frame)) {
      case Order::kSame:
        return timed != nullptr ? Answer::kFrame : Answer::kLeftOut;
      case Order::kAhead:
        return way.joining || way.leaving ? Answer::kNotThere : Answer::kLeftOut;
      case Order::kOtherSource:
        return refuse(str_format("source '{}' is not '{}', the source of pad '{}'",
                                 timed != nullptr ? timed->position.stream->id : way.stream->id,
                                 frame.position.stream->id, primary));
      case Order::kOtherPts:
        return refuse(str_format("PTS {} is not {}, that of pad '{}' at the same running time",
                                 pts_of(timed->frame), pts_of(frame.frame), primary));
      case Order::kBehind:
        if (timed == nullptr) {
          way.queue.pop_front();
          break;
        }
        if (!is_late(way, timed->position)) {
          return refuse(
              str_format("its frame with PTS {} was left out by pad '{}', which has PTS "
                         "{}",
                         pts_of(timed->frame), primary, pts_of(frame.frame)));
        }
        ++stats_.late;
        --way.frames;
        way.queue.pop_front();
        break;
    }
    room_.notify_all();
  }
  if (way.leaving) return Answer::kNotThere;
  if (way.joining && !way.begun) return Answer::kNotThere;
  return way.awaited ? Answer::kWait : Answer::kLeftOut;
}

Result<BranchJoin::Verdict> BranchJoin::judge(const Timed& frame) {
  Verdict verdict;
  for (auto& [key, way] : ways_) {
    if (way.pad.primary) continue;
    const auto answered = answer(way, frame);
    if (!answered) return std::unexpected(answered.error());
    switch (*answered) {
      case Answer::kFrame:
        verdict.with.push_back(&way);
        break;
      case Answer::kWait:
        verdict.waiting.push_back(&way);
        break;
      case Answer::kNotThere:
        verdict.without.push_back(&way);
        break;
      case Answer::kLeftOut:
        if (options_.missing == Missing::kError) {
          const bool ended = !way.queue.empty() && std::holds_alternative<End>(way.queue.front());
          const auto* next = way.queue.empty() ? nullptr : std::get_if<Timed>(&way.queue.front());
          const std::string why = next != nullptr ? str_format("has PTS {}", pts_of(next->frame))
                                                  : (ended ? "has ended" : "has a gap there");
          return penstock::fail(
              ErrorKind::kUnsupported,
              str_format("pad '{}' left out the frame with PTS {} of pad '{}': it {}; missing=pass "
                         "would let the frame go without it",
                         way.pad.name, pts_of(frame.frame), frame.frame.pad, why));
        }
        verdict.without.push_back(&way);
        ++verdict.left_out;
        break;
    }
  }
  return verdict;
}

std::optional<TimePoint> BranchJoin::deadline(TimePoint arrived) const {
  if (!playing_ && has_left_) return std::nullopt;
  TimePoint start = std::max(arrived, playing_since_);
  // A source that isn't live has no latency to keep, and frames queue up before slow stages.
  if (!live_) start = std::max(start, asked_);
  return start + options_.max_wait;
}

Result<void> BranchJoin::give_up(const Verdict& verdict, const Timed& frame) {
  for (Way* way : verdict.waiting) {
    if (options_.missing == Missing::kError) {
      return penstock::fail(
          ErrorKind::kDeadline,
          str_format("pad '{}' has not delivered the frame with PTS {} of pad '{}' within {} ms "
                     "(max-wait)",
                     way->pad.name, pts_of(frame.frame), frame.frame.pad,
                     std::chrono::duration_cast<Milliseconds>(options_.max_wait).count()));
    }
    way->awaited = false;
  }
  return {};
}

Result<TimePoint> BranchJoin::watch_primary() {
  TimePoint until = TimePoint::max();
  const bool passes = options_.missing == Missing::kPass;
  for (auto& [key, way] : ways_) {
    if (way.pad.primary || way.queue.empty()) continue;
    // A full branch may hold up the very thread that would feed the primary, as behind a tee.
    if (passes && way.frames < options_.queue_depth) continue;
    const auto* timed = std::get_if<Timed>(&way.queue.front());
    if (timed == nullptr || (!passes && is_late(way, timed->position))) continue;
    const auto limit = deadline(timed->arrived);
    if (!limit) continue;
    if (*limit <= clock_.now() && passes) {
      ++stats_.late;
      --way.frames;
      way.queue.pop_front();
      room_.notify_all();
      continue;
    }
    if (*limit <= clock_.now()) {
      return penstock::fail(
          ErrorKind::kDeadline,
          str_format("the primary pad has not delivered the frame with PTS {} of pad '{}' within "
                     "{} ms (max-wait)",
                     pts_of(timed->frame), way.pad.name,
                     std::chrono::duration_cast<Milliseconds>(options_.max_wait).count()));
    }
    until = std::min(until, *limit);
  }
  return until;
}

}  // namespace penstock::gst
