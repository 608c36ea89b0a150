// SPDX-License-Identifier: Apache-2.0
#include "gst/stream_container.h"

#include <gst/analytics/analytics.h>

#include <span>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock::gst {

struct ArrivalReader::Stream {
  const GstAnalyticsBatchStream& listed;
  std::size_t position;
  const VideoFormat* declared;  ///< By the container's caps, if they do.
  StreamKey key{};
  bool begun = false;
  GstCaps* caps = nullptr;
  std::size_t frames = 0;
};

namespace {

/// Of `count` entries of a C array that may be missing.
template <typename T>
std::span<T> entries(T* array, gsize count) {
  return array == nullptr ? std::span<T>() : std::span<T>(array, count);
}

}  // namespace

Result<Arrived> ArrivalReader::read(GstBuffer* buffer, const InputFormat& format) {
  Arrived arrived;
  if (const auto* video = std::get_if<VideoFormat>(&format)) {
    arrived.frames.push_back({.buffer = buffer, .format = *video, .key = {}, .place = {}});
    return arrived;
  }
  arrived.is_container = true;
  const GstAnalyticsBatchMeta* meta = gst_buffer_get_analytics_batch_meta(buffer);
  if (meta == nullptr) {
    return fail(ErrorKind::kCorrupt,
                "the container has no GstAnalyticsBatchMeta, which its caps promise");
  }
  if (meta->n_streams > InferSources::kMaxStreams) {
    return fail(ErrorKind::kExhausted,
                str_format("the container has {} streams, at most {} are taken", meta->n_streams,
                           InferSources::kMaxStreams));
  }
  const auto streams = entries(meta->streams, meta->n_streams);
  const auto& declared = std::get<ContainerFormat>(format).streams;
  occurrences_.clear();
  std::erase_if(accepted_, [&](const auto& entry) { return entry.first >= streams.size(); });
  for (std::size_t i = 0; i < streams.size(); ++i) {
    Stream stream{.listed = streams[i],
                  .position = i,
                  .declared = i < declared.size() ? &declared[i] : nullptr};
    PENSTOCK_TRY(read_stream(stream, arrived));
    // A stream may begin anew inside, again and again.
    if (arrived.streams.size() > InferSources::kMaxStreams) {
      return fail(ErrorKind::kExhausted, str_format("the container begins more than {} streams",
                                                    InferSources::kMaxStreams));
    }
  }
  return arrived;
}

Result<void> ArrivalReader::read_stream(Stream& stream, Arrived& arrived) {
  for (GstEvent* event : entries(stream.listed.sticky_events, stream.listed.n_sticky_events)) {
    if (event != nullptr) read_event(stream, event, arrived);
  }
  if (!stream.begun) begin(stream, str_format("stream-{}", stream.listed.index), arrived);
  const auto objects = entries(stream.listed.objects, stream.listed.n_objects);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    PENSTOCK_TRY(read_object(stream, objects[i], i, arrived));
  }
  if (stream.frames > arrived.most_of_a_stream) {
    arrived.most_of_a_stream = stream.frames;
    arrived.busiest = stream.key.stream_id;
  }
  return {};
}

Result<void> ArrivalReader::read_object(Stream& stream, GstMiniObject* object, std::size_t position,
                                        Arrived& arrived) {
  FramePlace place{.contained = true, .stream = stream.position, .object = position};
  if (object != nullptr && GST_IS_BUFFER(object)) {
    ++stream.frames;
    return add(stream, GST_BUFFER_CAST(object), place, arrived);
  }
  if (object != nullptr && GST_IS_BUFFER_LIST(object)) {
    GstBufferList* list = GST_BUFFER_LIST_CAST(object);
    for (guint i = 0; i < gst_buffer_list_length(list); ++i) {
      place.in_list = i;
      ++stream.frames;
      PENSTOCK_TRY(add(stream, gst_buffer_list_get(list, i), place, arrived));
    }
    return {};
  }
  if (object != nullptr && GST_IS_EVENT(object)) {
    read_event(stream, GST_EVENT_CAST(object), arrived);
    return {};
  }
  return fail(ErrorKind::kCorrupt,
              str_format("object {} of stream '{}' is a {}, not a buffer, buffer list or event",
                         position, stream.key.stream_id,
                         object == nullptr ? "hole" : g_type_name(GST_MINI_OBJECT_TYPE(object))));
}

void ArrivalReader::read_event(Stream& stream, GstEvent* event, Arrived& arrived) {
  if (GST_EVENT_TYPE(event) == GST_EVENT_CAPS) {
    gst_event_parse_caps(event, &stream.caps);
  } else if (GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START) {
    const gchar* id = nullptr;
    gst_event_parse_stream_start(event, &id);
    if (id != nullptr && (!stream.begun || stream.key.stream_id != id)) begin(stream, id, arrived);
  }
}

void ArrivalReader::begin(Stream& stream, std::string id, Arrived& arrived) {
  stream.begun = true;
  stream.key.occurrence = occurrences_[id]++;
  stream.key.stream_id = std::move(id);
  arrived.streams.push_back(stream.key);
}

Result<void> ArrivalReader::add(const Stream& stream, GstBuffer* buffer, FramePlace place,
                                Arrived& arrived) {
  if (arrived.frames.size() == kMaxFrames) {
    return fail(ErrorKind::kExhausted,
                str_format("the container has more than {} frames", kMaxFrames));
  }
  auto format = format_of(stream);
  if (!format) {
    return std::unexpected(format.error().context(str_format("stream '{}'", stream.key.stream_id)));
  }
  arrived.frames.push_back(
      {.buffer = buffer, .format = *std::move(format), .key = stream.key, .place = place});
  return {};
}

Result<VideoFormat> ArrivalReader::format_of(const Stream& stream) {
  if (stream.caps == nullptr) {
    if (stream.declared != nullptr) return *stream.declared;
    return fail(ErrorKind::kUnsupported, "a frame came without caps");
  }
  // The entry holds the caps, so nobody else's have their address.
  if (const auto known = accepted_.find(stream.position);
      known != accepted_.end() && known->second.caps.get() == stream.caps) {
    return known->second.format;
  }
  auto format = accept_caps(stream.caps, device_);
  if (format) {
    accepted_.insert_or_assign(stream.position,
                               Accepted{CapsPtr(gst_caps_ref(stream.caps)), *format});
  }
  return format;
}

Result<void> write_frame(GstBuffer* item, const FramePlace& place,
                         const std::function<Result<void>(GstBuffer*)>& write) {
  if (!place.contained) return write(item);
  const GstAnalyticsBatchMeta* meta = gst_buffer_get_analytics_batch_meta(item);
  if (meta == nullptr || place.stream >= meta->n_streams ||
      place.object >= meta->streams[place.stream].n_objects) {
    return fail(ErrorKind::kCorrupt, "the container was changed while it waited");
  }
  GstMiniObject*& object = meta->streams[place.stream].objects[place.object];
  if (!place.in_list) {
    GstBuffer* own = gst_buffer_make_writable(GST_BUFFER_CAST(object));
    object = GST_MINI_OBJECT_CAST(own);
    return write(own);
  }
  GstBufferList* own = gst_buffer_list_make_writable(GST_BUFFER_LIST_CAST(object));
  object = GST_MINI_OBJECT_CAST(own);
  return write(gst_buffer_list_get_writable(own, *place.in_list));
}

}  // namespace penstock::gst
