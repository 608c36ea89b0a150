// SPDX-License-Identifier: Apache-2.0
#include "gst/watermark_caps.h"

#include "penstock/base/str_format.h"
#include "penstock/draw/draw_list.h"

namespace penstock::gst {
namespace {

CapsPtr drawn_caps(DeviceKind device) {
  CapsPtr caps(device_caps(device));
  gst_caps_set_simple(caps.get(), "format", G_TYPE_STRING, "BGRA", nullptr);
  return caps;
}

}  // namespace

Result<VideoFormat> accept_watermark_caps(const GstCaps* caps, DeviceId device) {
  auto format = accept_caps(caps, device);
  if (!format) return format;
  for (const auto& [name, side] : {std::pair{"width", format->width}, {"height", format->height}}) {
    if (side > kMaxDrawnSide) {
      return fail(ErrorKind::kUnsupported, str_format("{} {} is above the limit of {} for drawing",
                                                      name, side, kMaxDrawnSide));
    }
  }
  return format;
}

CapsPtr watermark_caps_for(GstPadDirection direction, const GstCaps* caps, DeviceKind device) {
  const bool forwards = direction == GST_PAD_SINK;
  const CapsPtr here(forwards ? device_caps(device) : drawn_caps(device));
  const CapsPtr there(forwards ? drawn_caps(device) : device_caps(device));
  const CapsPtr possible(gst_caps_intersect(const_cast<GstCaps*>(caps), here.get()));
  CapsPtr made(gst_caps_new_empty());
  for (guint i = 0; i < gst_caps_get_size(possible.get()); ++i) {
    const GstStructure* from = gst_caps_get_structure(possible.get(), i);
    CapsPtr one(gst_caps_copy(there.get()));
    for (const char* field : {"width", "height", "framerate", "pixel-aspect-ratio", "views",
                              "multiview-mode", "multiview-flags"}) {
      const GValue* value = gst_structure_get_value(from, field);
      if (value != nullptr) gst_caps_set_value(one.get(), field, value);
    }
    if (forwards) {
      gst_caps_set_simple(one.get(), "colorimetry", G_TYPE_STRING, GST_VIDEO_COLORIMETRY_SRGB,
                          nullptr);
    }
    made.reset(gst_caps_merge(made.release(), one.release()));
  }
  return made;
}

}  // namespace penstock::gst
