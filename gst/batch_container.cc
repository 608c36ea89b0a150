// SPDX-License-Identifier: Apache-2.0
#include "gst/batch_container.h"

#include <gst/analytics/analytics.h>

#include <utility>

#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

// GStreamer 1.28 unrefs a stream's sticky events when the meta is freed, but not their array. This
// meta comes before it in the buffer's list, so it is freed first, and takes both away.
struct EventArrays {
  GstMeta meta;
};

GType event_arrays_api() {
  static const gchar* tags[] = {nullptr};
  static const GType type = gst_meta_api_type_register("PenEventArraysAPI", tags);
  return type;
}

void free_events(GstAnalyticsBatchStream& stream) {
  for (gsize i = 0; i < stream.n_sticky_events; ++i) gst_event_unref(stream.sticky_events[i]);
  g_free(static_cast<gpointer>(stream.sticky_events));
  stream.sticky_events = nullptr;
  stream.n_sticky_events = 0;
}

void free_event_arrays(GstMeta*, GstBuffer* buffer) {
  GstAnalyticsBatchMeta* batch = gst_buffer_get_analytics_batch_meta(buffer);
  if (batch == nullptr) return;
  for (gsize i = 0; i < batch->n_streams; ++i) free_events(batch->streams[i]);
}

gboolean init_event_arrays(GstMeta*, gpointer, GstBuffer*) { return TRUE; }

/// Copies own other arrays, so this meta stays behind.
gboolean keep_to_buffer(GstBuffer*, GstMeta*, GstBuffer*, GQuark, gpointer) { return TRUE; }

const GstMetaInfo* event_arrays_info() {
  static const GstMetaInfo* const info =
      gst_meta_register(event_arrays_api(), "PenEventArrays", sizeof(EventArrays),
                        init_event_arrays, free_event_arrays, keep_to_buffer);
  return info;
}

void fill(GstAnalyticsBatchStream& place, ContainerStream stream, guint index) {
  place.index = index;
  place.n_sticky_events = stream.sticky.size();
  place.sticky_events = g_new0(GstEvent*, stream.sticky.size());
  for (gsize i = 0; i < stream.sticky.size(); ++i) {
    place.sticky_events[i] = stream.sticky[i].release();
  }
  place.n_objects = stream.objects.size();
  place.objects = g_new0(GstMiniObject*, stream.objects.size());
  for (gsize i = 0; i < stream.objects.size(); ++i) place.objects[i] = stream.objects[i].release();
}

Error lacks(gsize stream, const char* what) {
  return {ErrorKind::kCorrupt, str_format("stream {} of the container lacks {}", stream, what)};
}

bool is_flow(GstMiniObject* object) {
  return GST_IS_BUFFER(object) || GST_IS_EVENT(object) || GST_IS_BUFFER_LIST(object);
}

Result<void> check_arrays(const GstAnalyticsBatchMeta& batch) {
  if (batch.n_streams > kMostContainerStreams) {
    return std::unexpected(
        Error(ErrorKind::kCorrupt, str_format("the container has {} streams, more than {}",
                                              batch.n_streams, kMostContainerStreams)));
  }
  if (batch.n_streams > 0 && batch.streams == nullptr) return std::unexpected(lacks(0, "itself"));
  for (gsize i = 0; i < batch.n_streams; ++i) {
    const GstAnalyticsBatchStream& stream = batch.streams[i];
    if (stream.n_sticky_events > 0 && stream.sticky_events == nullptr) {
      return std::unexpected(lacks(i, "its sticky events"));
    }
    if (stream.n_objects > 0 && stream.objects == nullptr) {
      return std::unexpected(lacks(i, "its objects"));
    }
    for (gsize k = 0; k < stream.n_sticky_events; ++k) {
      if (!GST_IS_EVENT(stream.sticky_events[k])) return std::unexpected(lacks(i, "an event"));
    }
    for (gsize k = 0; k < stream.n_objects; ++k) {
      if (stream.objects[k] == nullptr) return std::unexpected(lacks(i, "an object"));
      if (!is_flow(stream.objects[k])) {
        return std::unexpected(
            Error(ErrorKind::kCorrupt,
                  str_format("stream {} of the container has what is neither frame nor event", i)));
      }
    }
  }
  return {};
}

ContainerStream share(const GstAnalyticsBatchStream& stream) {
  ContainerStream shared;
  for (gsize i = 0; i < stream.n_sticky_events; ++i) {
    shared.sticky.emplace_back(gst_event_ref(stream.sticky_events[i]));
  }
  for (gsize i = 0; i < stream.n_objects; ++i) {
    shared.objects.emplace_back(gst_mini_object_ref(stream.objects[i]));
  }
  return shared;
}

GstEvent* sticky_of(const ContainerStream& stream, GstEventType type) {
  for (const EventPtr& event : stream.sticky) {
    if (GST_EVENT_TYPE(event.get()) == type) return event.get();
  }
  return nullptr;
}

}  // namespace

GstCaps* caps_of(const ContainerStream& stream) {
  GstCaps* caps = nullptr;
  GstEvent* event = sticky_of(stream, GST_EVENT_CAPS);
  if (event != nullptr) gst_event_parse_caps(event, &caps);
  return caps;
}

std::string stream_id_of(const ContainerStream& stream) {
  const gchar* id = nullptr;
  GstEvent* event = sticky_of(stream, GST_EVENT_STREAM_START);
  if (event != nullptr) gst_event_parse_stream_start(event, &id);
  return id == nullptr ? "" : id;
}

bool replaces(GstEvent* later, GstEvent* earlier) {
  if (GST_EVENT_TYPE(later) != GST_EVENT_TYPE(earlier)) return false;
  if ((static_cast<guint>(GST_EVENT_TYPE(later)) & GST_EVENT_TYPE_STICKY_MULTI) == 0) return true;
  const GstStructure* named = gst_event_get_structure(later);
  return named != nullptr && gst_event_has_name(earlier, gst_structure_get_name(named));
}

CapsPtr container_caps(std::span<const ContainerStream> streams) {
  GValue array = G_VALUE_INIT;
  g_value_init(&array, GST_TYPE_ARRAY);
  for (const ContainerStream& stream : streams) {
    GValue value = G_VALUE_INIT;
    g_value_init(&value, GST_TYPE_CAPS);
    gst_value_set_caps(&value, caps_of(stream));
    gst_value_array_append_and_take_value(&array, &value);
  }
  CapsPtr caps(gst_caps_new_empty_simple(kContainerMediaType));
  gst_caps_set_features(
      caps.get(), 0,
      gst_caps_features_new_single_static_str(GST_CAPS_FEATURE_META_GST_ANALYTICS_BATCH_META));
  gst_caps_set_value(caps.get(), "streams", &array);
  g_value_unset(&array);
  return caps;
}

BufferPtr make_container(std::vector<ContainerStream> streams) {
  BufferPtr container(gst_buffer_new());
  gst_buffer_add_meta(container.get(), event_arrays_info(), nullptr);
  GstAnalyticsBatchMeta* batch = gst_buffer_add_analytics_batch_meta(container.get());
  batch->n_streams = streams.size();
  batch->streams = g_new0(GstAnalyticsBatchStream, streams.size());
  for (gsize i = 0; i < streams.size(); ++i) {
    fill(batch->streams[i], std::move(streams[i]), static_cast<guint>(i));
  }
  return container;
}

BufferPtr make_writable(BufferPtr buffer) {
  if (gst_buffer_is_writable(buffer.get()) ||
      gst_buffer_get_analytics_batch_meta(buffer.get()) == nullptr) {
    return BufferPtr(gst_buffer_make_writable(buffer.release()));
  }
  BufferPtr copy(gst_buffer_new());
  gst_buffer_add_meta(copy.get(), event_arrays_info(), nullptr);
  gst_buffer_copy_into(copy.get(), buffer.get(), GST_BUFFER_COPY_ALL, 0, static_cast<gsize>(-1));
  return copy;
}

Result<std::vector<ContainerStream>> take_container(BufferPtr container) {
  GstAnalyticsBatchMeta* batch = gst_buffer_get_analytics_batch_meta(container.get());
  if (batch == nullptr) {
    return std::unexpected(
        Error(ErrorKind::kCorrupt, "the buffer is no container: it has no GstAnalyticsBatchMeta"));
  }
  PENSTOCK_TRY(check_arrays(*batch));
  std::vector<ContainerStream> streams;
  streams.reserve(batch->n_streams);
  for (gsize i = 0; i < batch->n_streams; ++i) {
    streams.push_back(share(batch->streams[i]));
  }
  return streams;
}

}  // namespace penstock::gst
