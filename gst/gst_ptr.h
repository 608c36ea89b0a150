// SPDX-License-Identifier: Apache-2.0
//
// Owning pointers for GStreamer's reference-counted objects; one pointer is one reference.
#pragma once

#include <gst/gst.h>

#include <memory>

namespace penstock::gst {

struct Unref {
  void operator()(GstBuffer* p) const { gst_buffer_unref(p); }
  void operator()(GstEvent* p) const { gst_event_unref(p); }
  void operator()(GstCaps* p) const { gst_caps_unref(p); }
  void operator()(GstContext* p) const { gst_context_unref(p); }
  void operator()(GstQuery* p) const { gst_query_unref(p); }
  void operator()(GstMessage* p) const { gst_message_unref(p); }
  void operator()(GstMemory* p) const { gst_memory_unref(p); }
  void operator()(GstSample* p) const { gst_sample_unref(p); }
  void operator()(GstMiniObject* p) const { gst_mini_object_unref(p); }
  void operator()(GstStructure* p) const { gst_structure_free(p); }
  template <typename T>
  void operator()(T* p) const {  // GObjects: elements, pads, allocators, pools, buses.
    g_object_unref(p);
  }
};

template <typename T>
using GstPtr = std::unique_ptr<T, Unref>;

using BufferPtr = GstPtr<GstBuffer>;
using EventPtr = GstPtr<GstEvent>;
using CapsPtr = GstPtr<GstCaps>;

}  // namespace penstock::gst
