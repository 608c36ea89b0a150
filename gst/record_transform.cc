// SPDX-License-Identifier: Apache-2.0
#include "gst/record_transform.h"

#include "gst/bus_error.h"

namespace penstock::gst {
namespace {

GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
                                                             GST_STATIC_CAPS("video/x-raw(ANY)"));
GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS,
                                                            GST_STATIC_CAPS("video/x-raw(ANY)"));

}  // namespace

void add_any_video_pads(GstElementClass* klass) {
  gst_element_class_add_static_pad_template(klass, &sink_template);
  gst_element_class_add_static_pad_template(klass, &src_template);
}

gboolean read_picture_size(GstBaseTransform* element, const GstCaps* caps, int& width,
                           int& height) {
  const GstStructure* fields = gst_caps_get_structure(caps, 0);
  if (gst_structure_get_int(fields, "width", &width) &&
      gst_structure_get_int(fields, "height", &height)) {
    return TRUE;
  }
  post_error(GST_ELEMENT(element), "cpu", "negotiating caps",
             Error(ErrorKind::kUnsupported, "the caps have no width and height"));
  return FALSE;
}

bool begins_anew(const GstEvent* event) {
  return GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START ||
         GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP;
}

GstClockTime running_time_of(const GstBaseTransform* element, const GstBuffer* buffer) {
  if (element->segment.format != GST_FORMAT_TIME) return GST_CLOCK_TIME_NONE;
  return gst_segment_to_running_time(&element->segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
}

}  // namespace penstock::gst
