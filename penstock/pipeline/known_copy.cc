// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/known_copy.h"

#include <gst/gst.h>

#include <array>
#include <cstdint>

namespace penstock {
namespace {

/// A gray BMP: file header, picture header, and two rows of two pixels, each filled up to 8 bytes.
constexpr std::array<std::uint8_t, 70> kPicture{
    'B', 'M', 70, 0, 0,  0, 0,  0,  0,  0,  54, 0,  0, 0, 40, 0,  0,  0,  2,  0,  0, 0, 2, 0,
    0,   0,   1,  0, 24, 0, 0,  0,  0,  0,  16, 0,  0, 0, 0,  0,  0,  0,  0,  0,  0, 0, 0, 0,
    0,   0,   0,  0, 0,  0, 99, 99, 99, 99, 99, 99, 0, 0, 99, 99, 99, 99, 99, 99, 0, 0};

GstFlowReturn take(GstPad* pad, GstObject*, GstBuffer* buffer) {
  *static_cast<int*>(gst_pad_get_element_private(pad)) += 1;
  gst_buffer_unref(buffer);
  return GST_FLOW_OK;
}

void feed(GstPad* sink) {
  gst_pad_send_event(sink, gst_event_new_stream_start("known-copy"));
  GstCaps* caps = gst_caps_new_empty_simple("image/bmp");
  gst_pad_send_event(sink, gst_event_new_caps(caps));
  gst_caps_unref(caps);
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_pad_send_event(sink, gst_event_new_segment(&segment));
  GstBuffer* buffer = gst_buffer_new_memdup(kPicture.data(), kPicture.size());
  GST_BUFFER_PTS(buffer) = 0;
  gst_pad_chain(sink, buffer);
  gst_pad_send_event(sink, gst_event_new_eos());
}

}  // namespace

bool decode_with_a_copy() {
  GstElement* decoder = gst_element_factory_make("avdec_bmp", nullptr);
  if (decoder == nullptr) return false;
  gst_object_ref_sink(decoder);
  if (g_object_class_find_property(G_OBJECT_GET_CLASS(decoder), "direct-rendering") == nullptr) {
    gst_object_unref(decoder);
    return false;
  }
  g_object_set(decoder, "direct-rendering", FALSE, nullptr);
  int pictures = 0;
  GstPad* end = gst_pad_new("end", GST_PAD_SINK);
  gst_object_ref_sink(end);
  gst_pad_set_element_private(end, &pictures);
  gst_pad_set_chain_function(end, take);
  GstPad* sink = gst_element_get_static_pad(decoder, "sink");
  GstPad* source = gst_element_get_static_pad(decoder, "src");
  gst_pad_set_active(end, TRUE);
  if (gst_pad_link(source, end) == GST_PAD_LINK_OK &&
      gst_element_set_state(decoder, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE) {
    feed(sink);
  }
  gst_element_set_state(decoder, GST_STATE_NULL);
  gst_pad_set_active(end, FALSE);
  gst_object_unref(source);
  gst_object_unref(sink);
  gst_object_unref(end);
  gst_object_unref(decoder);
  return pictures == 1;
}

}  // namespace penstock
