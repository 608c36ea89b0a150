// SPDX-License-Identifier: Apache-2.0
//
// What a pad's thread does: it waits for a place, and notes what its pad says of its frames.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gst/branch_join.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

/// Events and gaps between two frames are few; this only keeps a runaway upstream from growing the
/// queue.
constexpr std::size_t kMostWaitingEvents = 256;

std::optional<std::int64_t> running_time(const GstSegment& segment, GstClockTime time) {
  if (segment.format != GST_FORMAT_TIME || !GST_CLOCK_TIME_IS_VALID(time)) return std::nullopt;
  guint64 magnitude = 0;
  const gint sign = gst_segment_to_running_time_full(&segment, GST_FORMAT_TIME, time, &magnitude);
  if (sign == 0) return std::nullopt;
  // Sums of these do not overflow, whatever a segment says.
  constexpr guint64 kLatest = guint64{1} << 60;
  return sign * static_cast<std::int64_t>(std::min(magnitude, kLatest));
}

bool is_end(GstEvent* event) { return GST_EVENT_TYPE(event) == GST_EVENT_EOS; }

}  // namespace

GstFlowReturn BranchJoin::refusal(const Way* way) const {
  if (flow_ != GST_FLOW_OK) return flow_;
  if (way == nullptr || way->flushing) return GST_FLOW_FLUSHING;
  return way->at_end || (ended_ && !way->pad.primary) ? GST_FLOW_EOS : GST_FLOW_OK;
}

bool BranchJoin::has_room(const Way& way) const {
  return !way.broken && way.frames < options_.queue_depth;
}

void BranchJoin::push(Way& way, Item item) {
  if (std::holds_alternative<Timed>(item)) {
    ++way.frames;
    way.begun = way.awaited = true;
  }
  if (std::holds_alternative<Error>(item)) way.broken = true;
  way.queue.push_back(std::move(item));
  ++changes_;
  filled_.notify_all();
}

BranchJoin::Item BranchJoin::item_of(Way& way, BufferPtr buffer) const {
  const auto refuse = [&](const char* why) {
    return Error(ErrorKind::kUnsupported, str_format("pad '{}': {}", way.pad.name, why));
  };
  if (way.width < 1) return refuse("a frame came before its caps");
  const GstClockTime pts = GST_BUFFER_PTS(buffer.get());
  if (!GST_CLOCK_TIME_IS_VALID(pts)) {
    return refuse("a frame has no PTS, by which frames are joined");
  }
  const auto time = running_time(way.segment, pts);
  if (!time) return refuse("a frame came without a segment in time");
  return Timed{.position = {way.stream, *time},
               .frame = {way.pad.name, std::move(buffer), way.width, way.height},
               .arrived = clock_.now()};
}

GstFlowReturn BranchJoin::push_frame(Key key, BufferPtr frame) {
  std::unique_lock lock(mutex_);
  Way* way = nullptr;
  room_.wait(lock, [&] {
    way = find(key);
    return refusal(way) != GST_FLOW_OK || has_room(*way);
  });
  const GstFlowReturn refused = refusal(way);
  if (refused != GST_FLOW_OK) return refused;
  push(*way, item_of(*way, std::move(frame)));
  return GST_FLOW_OK;
}

Result<void> BranchJoin::note(Way& way, GstEvent* event) {
  const auto refuse = [&](const char* why) {
    return penstock::fail(ErrorKind::kUnsupported, str_format("pad '{}': {}", way.pad.name, why));
  };
  if (GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START) {
    const gchar* id = nullptr;
    gst_event_parse_stream_start(event, &id);
    const std::string name = id == nullptr ? "" : id;
    if (name == way.stream->id) return {};
    way.stream = std::make_shared<const Stream>(
        Stream{.id = name, .before = way.begun ? std::optional(way.stream->id) : std::nullopt});
  } else if (GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) {
    gst_event_copy_segment(event, &way.segment);
    if (way.segment.format != GST_FORMAT_TIME) return refuse("the segment is not in time");
  } else if (GST_EVENT_TYPE(event) == GST_EVENT_CAPS) {
    GstCaps* caps = nullptr;
    gst_event_parse_caps(event, &caps);
    const GstStructure* fields = gst_caps_get_structure(caps, 0);
    if (!gst_structure_get_int(fields, "width", &way.width) ||
        !gst_structure_get_int(fields, "height", &way.height) || way.width < 1 || way.height < 1) {
      way.width = way.height = 0;
      return refuse("the caps have no width and height");
    }
  }
  return {};
}

GstFlowReturn BranchJoin::push_event(Key key, EventPtr event) {
  std::unique_lock lock(mutex_);
  Way* way = nullptr;
  const bool begins = GST_EVENT_TYPE(event.get()) == GST_EVENT_STREAM_START;
  room_.wait(lock, [&] {
    way = find(key);
    return flow_ != GST_FLOW_OK || way == nullptr || way->flushing ||
           way->queue.size() - way->frames < kMostWaitingEvents;
  });
  if (way == nullptr) return GST_FLOW_FLUSHING;
  if (begins) {
    way->at_end = false;
    if (way->pad.primary) ended_ = false;
    if (!way->queue.empty() && std::holds_alternative<End>(way->queue.back())) {
      way->queue.pop_back();
    }
  }
  auto noted = note(*way, event.get());
  const GstFlowReturn refused = refusal(way);
  if (refused != GST_FLOW_OK) {
    // State is said once only, and the flow may go on.
    if (!GST_EVENT_IS_STICKY(event.get()) || is_end(event.get())) return refused;
    if (way->pad.primary) keep_sticky(std::move(event));
    return GST_FLOW_OK;
  }
  if (way->broken) return GST_FLOW_OK;
  if (!noted) {
    push(*way, std::move(noted).error());
  } else if (way->pad.primary) {
    push_primary(*way, std::move(event));
  } else {
    push_branch(*way, event.get());
  }
  return GST_FLOW_OK;
}

void BranchJoin::push_primary(Way& way, EventPtr event) {
  if (is_end(event.get())) way.at_end = true;
  push(way, std::move(event));
}

void BranchJoin::push_branch(Way& way, GstEvent* event) {
  if (is_end(event)) return end(way);
  if (GST_EVENT_TYPE(event) != GST_EVENT_GAP) return;  // The primary has the same.
  GstClockTime start = GST_CLOCK_TIME_NONE;
  GstClockTime duration = GST_CLOCK_TIME_NONE;
  gst_event_parse_gap(event, &start, &duration);
  const auto begin = running_time(way.segment, start);
  if (!begin) return;
  const auto end =
      GST_CLOCK_TIME_IS_VALID(duration) ? running_time(way.segment, start + duration) : begin;
  push(way, Gap{{way.stream, *begin}, std::max(*begin + 1, end.value_or(*begin))});
}

bool BranchJoin::run_query(Key key, GstQuery* query) {
  auto ticket = std::make_shared<Query>();
  ticket->query = query;
  std::unique_lock lock(mutex_);
  Way* way = find(key);
  if (way == nullptr || !way->pad.primary || refusal(way) != GST_FLOW_OK || way->broken) {
    return false;
  }
  push(*way, ticket);
  // Once taken, the query is being written by the other thread and must outlive that.
  const std::uint64_t epoch = epoch_;
  room_.wait(lock, [&] { return ticket->done || (!ticket->taken && epoch != epoch_); });
  return ticket->done && ticket->answered;
}

void BranchJoin::finish(const QueryPtr& query, bool answered) {
  const std::lock_guard lock(mutex_);
  query->done = true;
  query->answered = answered;
  room_.notify_all();
}

}  // namespace penstock::gst
