// SPDX-License-Identifier: Apache-2.0
//
// For tests of peninfer on containers of streams: containers as penmux, or anybody else, makes
// them.
#pragma once

#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>

#include <cstddef>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "gst/penanalysis_meta.h"
#include "gst/testing/lifecycle_fixture.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {

/// A stream's part of a container. What is empty or null is left out.
struct ContainerPart {
  std::string stream_id;
  std::string caps;                       ///< Of its caps event.
  std::vector<GstMiniObject*> objects{};  ///< Taken.
};

class ContainerFixture : public Lifecycle {
 protected:
  static constexpr const char* kMedia = "multistream/x-analytics-batch(meta:GstAnalyticsBatchMeta)";

  /// Of a container of streams with these caps.
  static CapsPtr container_caps(const std::vector<std::string>& streams) {
    CapsPtr made(gst_caps_from_string(kMedia));
    GValue list = G_VALUE_INIT;
    gst_value_array_init(&list, static_cast<guint>(streams.size()));
    for (const std::string& text : streams) {
      const CapsPtr caps(gst_caps_from_string(text.c_str()));
      EXPECT_NE(caps, nullptr) << text;
      GValue value = G_VALUE_INIT;
      g_value_init(&value, GST_TYPE_CAPS);
      gst_value_set_caps(&value, caps.get());
      gst_value_array_append_and_take_value(&list, &value);
    }
    gst_structure_take_value(gst_caps_get_structure(made.get(), 0), "streams", &list);
    return made;
  }

  /// In PLAYING, with caps of a container of streams with these.
  void play_containers(const std::vector<std::string>& streams,
                       const std::vector<std::string>& properties = {}) {
    play(properties);
    send_caps(container_caps(streams));
  }

  void send_caps(const CapsPtr& caps) {
    gst_harness_push_event(harness_.get(), gst_event_new_caps(caps.get()));
  }

  BufferPtr container(const std::vector<ContainerPart>& parts) {
    BufferPtr buffer(gst_buffer_new());
    GstAnalyticsBatchMeta* meta = gst_buffer_add_analytics_batch_meta(buffer.get());
    meta->n_streams = parts.size();
    meta->streams = g_new0(GstAnalyticsBatchStream, parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      GstAnalyticsBatchStream& stream = meta->streams[i];
      stream.index = static_cast<guint>(i);
      set_sticky_events(stream, parts[i]);
      stream.n_objects = parts[i].objects.size();
      stream.objects = g_new0(GstMiniObject*, parts[i].objects.size());
      for (std::size_t k = 0; k < parts[i].objects.size(); ++k) {
        stream.objects[k] = parts[i].objects[k];
      }
    }
    return buffer;
  }
  /// A frame of each of the streams, in the first format of the device.
  BufferPtr container_of(const std::vector<std::string>& streams, int frame) {
    std::vector<ContainerPart> parts;
    for (const std::string& stream : streams) {
      parts.push_back({stream, caps(), {object(make_frame(pts(frame)))}});
    }
    return container(parts);
  }
  static GstMiniObject* object(BufferPtr buffer) { return GST_MINI_OBJECT_CAST(buffer.release()); }

  static GstMiniObject* object_of(GstBuffer* container, std::size_t stream, std::size_t at = 0) {
    const GstAnalyticsBatchMeta* meta = gst_buffer_get_analytics_batch_meta(container);
    EXPECT_NE(meta, nullptr);
    return meta->streams[stream].objects[at];
  }
  static GstBuffer* frame_of_stream(GstBuffer* container, std::size_t stream, std::size_t at = 0) {
    return GST_BUFFER_CAST(object_of(container, stream, at));
  }
  /// Null for none.
  static const Analysis* analysis_of(GstBuffer* container, std::size_t stream, std::size_t at = 0) {
    return read_analysis(frame_of_stream(container, stream, at));
  }

  /// Tensors that were copied into batches so far.
  guint64 batched() {
    GstStructure* raw = nullptr;
    g_object_get(element_, "stats", &raw, nullptr);
    const GstPtr<GstStructure> stats(raw);
    guint64 count = 0;
    const GValue* rows = gst_structure_get_value(raw, "ledger");
    for (guint i = 0; i < gst_value_list_get_size(rows); ++i) {
      const GstStructure* row = gst_value_get_structure(gst_value_list_get_value(rows, i));
      guint64 of_row = 0;
      if (std::string(gst_structure_get_string(row, "site")) != "memory/copy") continue;
      gst_structure_get_uint64(row, "count", &of_row);
      count += of_row;
    }
    return count;
  }

  GstFlowReturn push_container(BufferPtr container) {
    return gst_harness_push(harness_.get(), container.release());
  }
  BufferPtr through(BufferPtr container) {
    EXPECT_EQ(push_container(std::move(container)), GST_FLOW_OK);
    return BufferPtr(gst_harness_pull(harness_.get()));
  }

  void TearDown() override {
    Lifecycle::TearDown();
    for (GstEvent** array : sticky_arrays_) g_free(static_cast<gpointer>(array));
  }

 private:
  /// GStreamer 1.28 leaves the array of sticky events to leak with its meta.
  void set_sticky_events(GstAnalyticsBatchStream& stream, const ContainerPart& part) {
    stream.sticky_events = g_new0(GstEvent*, 3);
    sticky_arrays_.push_back(stream.sticky_events);
    const auto add = [&](GstEvent* event) {
      stream.sticky_events[stream.n_sticky_events++] = event;
    };
    if (!part.stream_id.empty()) add(gst_event_new_stream_start(part.stream_id.c_str()));
    if (!part.caps.empty()) {
      const CapsPtr caps(gst_caps_from_string(part.caps.c_str()));
      add(gst_event_new_caps(caps.get()));
    }
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    add(gst_event_new_segment(&segment));
  }

  std::list<GstEvent**> sticky_arrays_;
};

}  // namespace penstock::gst
