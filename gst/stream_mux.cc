// SPDX-License-Identifier: Apache-2.0
#include "gst/stream_mux.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

/// Events between two frames are few; this only keeps a runaway upstream from growing the queue.
constexpr std::size_t kMostWaitingEvents = 256;

GstEvent* as_event(const ObjectPtr& object) {
  return GST_IS_EVENT(object.get()) ? GST_EVENT_CAST(object.get()) : nullptr;
}

bool is_end(const ObjectPtr& object) {
  GstEvent* event = as_event(object);
  return event != nullptr && GST_EVENT_TYPE(event) == GST_EVENT_EOS;
}

/// State that a pad keeps, but for the end, which has a place among the frames.
bool is_state(const ObjectPtr& object) {
  GstEvent* event = as_event(object);
  return event != nullptr && GST_EVENT_IS_STICKY(event) && GST_EVENT_TYPE(event) != GST_EVENT_EOS;
}

/// What a container is made for: a frame, or word that there is none.
bool completes(const ObjectPtr& object) {
  GstEvent* event = as_event(object);
  return event == nullptr || GST_EVENT_TYPE(event) == GST_EVENT_GAP ||
         GST_EVENT_TYPE(event) == GST_EVENT_EOS;
}

/// The same event for a stream whose id says where it came in: two sources of one file have one id.
EventPtr with_name(EventPtr event, const std::string& name) {
  const gchar* id = nullptr;
  gst_event_parse_stream_start(event.get(), &id);
  EventPtr named(gst_event_make_writable(event.release()));
  const std::string unique = str_format("{}/{}", name, id == nullptr ? "" : id);
  gst_structure_set(gst_event_writable_structure(named.get()), "stream-id", G_TYPE_STRING,
                    unique.c_str(), nullptr);
  return named;
}

/// NONE, which is the largest, where the frame has none.
GstClockTime running_time_of(const GstSegment& segment, const ObjectPtr& frame) {
  if (segment.format != GST_FORMAT_TIME) return GST_CLOCK_TIME_NONE;
  return gst_segment_to_running_time(&segment, GST_FORMAT_TIME,
                                     GST_BUFFER_PTS(GST_BUFFER_CAST(frame.get())));
}

ObjectPtr end_event() { return ObjectPtr(GST_MINI_OBJECT_CAST(gst_event_new_eos())); }

}  // namespace

StreamMux::StreamMux(const Options& options)
    : options_(options), clock_(options.clock != nullptr ? *options.clock : Clock::system()) {}

StreamMux::Stream* StreamMux::find(Key key) {
  const auto found = streams_.find(key);
  return found == streams_.end() || found->second.leaving ? nullptr : &found->second;
}

bool StreamMux::add(Key key, std::string name) {
  const std::lock_guard lock(mutex_);
  if (streams_.contains(key)) return false;
  Stream& stream = streams_[key];
  stream.name = std::move(name);
  gst_segment_init(&stream.segment, GST_FORMAT_TIME);
  had_streams_ = true;
  return true;
}

void StreamMux::remove(Key key) {
  const std::lock_guard lock(mutex_);
  Stream* stream = find(key);
  if (stream == nullptr) return;
  stream->leaving = true;
  stream->flushing = false;
  const bool end_waits =
      std::ranges::any_of(stream->queue, [](const Item& item) { return is_end(item.object); });
  if (stream->ended) {
    streams_.erase(key);
  } else if (!end_waits) {  // Also where a flush has just dropped it.
    stream->at_end = true;
    push(*stream, end_event());
  }
  ++changes_;
  filled_.notify_all();
  room_.notify_all();
}

void StreamMux::drop(Stream& stream) {
  std::deque<Item> dropped;
  dropped.swap(stream.queue);
  stream.frames = stream.events = 0;
  for (Item& item : dropped) {
    if (is_state(item.object)) fold(stream, std::move(item.object));
  }
}

void StreamMux::flush(Key key, bool begin) {
  const std::lock_guard lock(mutex_);
  Stream* stream = find(key);
  if (stream == nullptr) return;
  stream->flushing = begin;
  if (begin) {
    drop(*stream);
    stream->awaited = false;
  } else {
    std::erase_if(stream->sticky, [](const EventPtr& event) {
      return GST_EVENT_TYPE(event.get()) == GST_EVENT_SEGMENT;
    });
    gst_segment_init(&stream->segment, GST_FORMAT_TIME);
    stream->at_end = stream->ended = false;
  }
  ++changes_;
  filled_.notify_all();
  room_.notify_all();
}

void StreamMux::interrupt(GstFlowReturn flow) {
  const std::lock_guard lock(mutex_);
  flow_ = flow;
  for (auto& [key, stream] : streams_) {
    drop(stream);
    if (stream.at_end && !stream.ended) push(stream, end_event());
  }
  ++changes_;
  filled_.notify_all();
  room_.notify_all();
}

void StreamMux::restart() {
  const std::lock_guard lock(mutex_);
  for (auto& [key, stream] : streams_) {
    std::string name = std::move(stream.name);
    stream = {};
    stream.name = std::move(name);
    gst_segment_init(&stream.segment, GST_FORMAT_TIME);
  }
  running_time_ = 0;
  flow_ = GST_FLOW_OK;
}

bool StreamMux::relink() {
  const std::lock_guard lock(mutex_);
  if (flow_ != GST_FLOW_NOT_LINKED) return false;
  flow_ = GST_FLOW_OK;
  return true;
}

GstFlowReturn StreamMux::flow() const {
  const std::lock_guard lock(mutex_);
  return flow_;
}

bool StreamMux::all_ended() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(streams_, [](const auto& entry) { return entry.second.at_end; });
}

StreamMux::Stats StreamMux::stats() const {
  const std::lock_guard lock(mutex_);
  Stats stats = stats_;
  for (const auto& [key, stream] : streams_) {
    if (!stream.at_end) ++stats.streams;
    stats.waiting += static_cast<guint>(stream.frames);
  }
  return stats;
}

GstFlowReturn StreamMux::refusal(const Stream* stream) const {
  if (flow_ != GST_FLOW_OK) return flow_;
  if (stream == nullptr || stream->flushing) return GST_FLOW_FLUSHING;
  return stream->at_end ? GST_FLOW_EOS : GST_FLOW_OK;
}

void StreamMux::push(Stream& stream, ObjectPtr object) {
  if (completes(object)) stream.awaited = true;
  ++(as_event(object) == nullptr ? stream.frames : stream.events);
  stream.queue.push_back({std::move(object), clock_.now()});
  ++changes_;
  filled_.notify_all();
}

GstFlowReturn StreamMux::push_frame(Key key, BufferPtr frame) {
  std::unique_lock lock(mutex_);
  Stream* stream = nullptr;
  room_.wait(lock, [&] {
    stream = find(key);
    return refusal(stream) != GST_FLOW_OK || stream->frames < options_.queue_depth;
  });
  const GstFlowReturn refused = refusal(stream);
  if (refused != GST_FLOW_OK) return refused;
  if (!stream->has_caps) return GST_FLOW_NOT_NEGOTIATED;
  push(*stream, ObjectPtr(GST_MINI_OBJECT_CAST(frame.release())));
  return GST_FLOW_OK;
}

GstFlowReturn StreamMux::push_event(Key key, EventPtr event) {
  const GstEventType type = GST_EVENT_TYPE(event.get());
  ObjectPtr object(GST_MINI_OBJECT_CAST(event.release()));
  std::unique_lock lock(mutex_);
  Stream* stream = find(key);
  if (stream != nullptr && type == GST_EVENT_STREAM_START) stream->at_end = false;
  room_.wait(lock, [&] {
    stream = find(key);
    return refusal(stream) != GST_FLOW_OK || stream->events < kMostWaitingEvents;
  });
  if (stream != nullptr && type == GST_EVENT_CAPS) stream->has_caps = true;
  const GstFlowReturn refused = refusal(stream);
  if (refused != GST_FLOW_OK) {
    // Upstream says it once only, and the flow may go on after a new link.
    if (stream == nullptr || !is_state(object)) return refused;
    fold(*stream, std::move(object));
    return GST_FLOW_OK;
  }
  if (type == GST_EVENT_EOS) stream->at_end = true;
  push(*stream, std::move(object));
  return GST_FLOW_OK;
}

GstFlowReturn StreamMux::ask(Key key, std::function<void()> question) {
  auto asked = std::make_shared<Question>(Question{.ask = std::move(question)});
  std::unique_lock lock(mutex_);
  questions_.push_back(asked);
  ++changes_;
  filled_.notify_all();
  GstFlowReturn refused = GST_FLOW_OK;
  room_.wait(lock, [&] {
    const Stream* stream = find(key);
    refused = stream == nullptr || stream->flushing ? GST_FLOW_FLUSHING : GST_FLOW_OK;
    if (flow_ != GST_FLOW_OK) refused = flow_;
    return asked->answered || refused != GST_FLOW_OK;
  });
  if (asked->answered) return GST_FLOW_OK;
  std::erase(questions_, asked);
  return refused;
}

void StreamMux::answered(const QuestionPtr& question) {
  const std::lock_guard lock(mutex_);
  question->answered = true;
  room_.notify_all();
}

std::optional<StreamMux::Output> StreamMux::next() {
  std::unique_lock lock(mutex_);
  while (flow_ == GST_FLOW_OK) {
    if (!questions_.empty()) {
      QuestionPtr question = std::move(questions_.front());
      questions_.pop_front();
      return question;
    }
    const auto until = due();
    if (until && *until <= clock_.now()) {
      auto container = take();
      room_.notify_all();
      if (container) return std::move(*container);
      continue;
    }
    if (!until && over()) {
      flow_ = GST_FLOW_EOS;
      room_.notify_all();
      return End{};
    }
    clock_.wait_until(lock, filled_, until.value_or(TimePoint::max()),
                      [this, seen = changes_] { return changes_ != seen; });
  }
  return std::nullopt;
}

std::optional<TimePoint> StreamMux::due() const {
  std::optional<TimePoint> first;
  bool missing = false;
  for (const auto& [key, stream] : streams_) {
    const auto ready =
        std::ranges::find_if(stream.queue, [](const Item& item) { return completes(item.object); });
    if (ready != stream.queue.end()) {
      first = std::min(first.value_or(TimePoint::max()), ready->arrived);
    } else if (stream.awaited && !stream.at_end && !stream.flushing) {
      missing = true;
    }
  }
  if (!first) return std::nullopt;
  return missing ? *first + options_.max_wait : TimePoint::min();
}

bool StreamMux::over() const {
  if (options_.stay_open || !had_streams_) return false;
  return std::ranges::all_of(
      streams_, [](const auto& entry) { return entry.second.at_end && entry.second.ended; });
}

std::set<std::string> StreamMux::names_leaving() const {
  std::set<std::string> names;
  for (const auto& [key, stream] : streams_) {
    if (stream.leaving) names.insert(stream.name);
  }
  return names;
}

std::optional<StreamMux::Container> StreamMux::take() {
  Container container;
  bool missing = false;
  bool any = false;
  const std::set<std::string> leaving = names_leaving();
  for (auto entry = streams_.begin(); entry != streams_.end();) {
    Stream& stream = entry->second;
    // A pad of the same name again: its stream begins when the other's end has been told.
    if (!stream.leaving && leaving.contains(stream.name)) {
      ++entry;
      continue;
    }
    auto part = take_part(stream, container.running_time);
    if (part) {
      any = any || !part->objects.empty();
      if (part->objects.empty() && stream.awaited && !stream.flushing) {
        stream.awaited = false;
        missing = true;
      }
      container.streams.push_back(std::move(*part));
    } else if (!stream.has_caps) {
      stream.awaited = false;  // It has not begun in time.
    }
    entry = stream.ended && stream.leaving ? streams_.erase(entry) : std::next(entry);
  }
  if (!any) return std::nullopt;
  ++stats_.containers;
  if (missing) ++stats_.partial;
  if (GST_CLOCK_TIME_IS_VALID(container.running_time)) {
    running_time_ = std::max(running_time_, container.running_time);
    container.running_time = running_time_;
  }
  return container;
}

std::optional<ContainerStream> StreamMux::take_part(Stream& stream, GstClockTime& running_time) {
  while (!stream.queue.empty() && is_state(stream.queue.front().object)) {
    fold(stream, pop(stream));
  }
  if (stream.ended) return std::nullopt;
  ContainerStream part;
  for (const EventPtr& event : stream.sticky) part.sticky.emplace_back(gst_event_ref(event.get()));
  take_objects(stream, part.objects, running_time);
  if (caps_of(part) == nullptr) return std::nullopt;
  return part;
}

void StreamMux::take_objects(Stream& stream, std::vector<ObjectPtr>& objects,
                             GstClockTime& running_time) {
  bool whole = false;
  // State between objects would come before all of them: it begins the next container.
  while (!stream.queue.empty() && !is_state(stream.queue.front().object)) {
    const bool end = is_end(stream.queue.front().object);
    if (whole && !end) break;
    ObjectPtr object = pop(stream);
    if (end) stream.ended = true;
    whole = whole || completes(object);
    if (as_event(object) == nullptr) {
      ++stats_.frames;
      running_time = std::min(running_time, running_time_of(stream.segment, object));
    }
    objects.push_back(std::move(object));
    if (end) break;
  }
}

ObjectPtr StreamMux::pop(Stream& stream) {
  ObjectPtr object = std::move(stream.queue.front().object);
  stream.queue.pop_front();
  --(as_event(object) == nullptr ? stream.frames : stream.events);
  return object;
}

void StreamMux::fold(Stream& stream, ObjectPtr state) {
  EventPtr event(GST_EVENT_CAST(state.release()));
  if (GST_EVENT_TYPE(event.get()) == GST_EVENT_STREAM_START) {
    event = with_name(std::move(event), stream.name);
    stream.ended = false;
  }
  if (GST_EVENT_TYPE(event.get()) == GST_EVENT_SEGMENT) {
    gst_event_copy_segment(event.get(), &stream.segment);
  }
  std::erase_if(stream.sticky,
                [&](const EventPtr& kept) { return replaces(event.get(), kept.get()); });
  // As pads keep them: stream-start, caps, segment, then the others.
  const auto behind =
      std::ranges::upper_bound(stream.sticky, GST_EVENT_TYPE(event.get()), {},
                               [](const EventPtr& kept) { return GST_EVENT_TYPE(kept.get()); });
  stream.sticky.insert(behind, std::move(event));
}

}  // namespace penstock::gst
