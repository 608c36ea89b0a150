// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/video_caps.h"

#include <gst/video/video.h>

#include "penstock/base/str_format.h"

namespace penstock {

Result<VideoShape> shape_of(const GstCaps* caps) {
  GstVideoInfo info;
  if (caps == nullptr || gst_caps_is_empty(caps) || !gst_video_info_from_caps(&info, caps)) {
    return fail(ErrorKind::kUnsupported, "the decoder gives no raw video");
  }
  VideoShape shape;
  shape.format = gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&info));
  shape.width = GST_VIDEO_INFO_WIDTH(&info);
  shape.height = GST_VIDEO_INFO_HEIGHT(&info);
  const int numerator = GST_VIDEO_INFO_FPS_N(&info);
  const int denominator = GST_VIDEO_INFO_FPS_D(&info);
  if (numerator > 0 && denominator > 0) shape.frame_rate = double(numerator) / denominator;
  return shape;
}

Result<Intake> intake_of(const GstCaps* caps) {
  GstVideoInfo info;
  if (caps == nullptr || gst_caps_is_empty(caps) || !gst_video_info_from_caps(&info, caps)) {
    return fail(ErrorKind::kUnsupported, "the decoder gives no raw video");
  }
  const GstCapsFeatures* features = gst_caps_get_features(caps, 0);
  if (features != nullptr &&
      !gst_caps_features_is_equal(features, GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY)) {
    gchar* text = gst_caps_features_to_string(features);
    Error error(ErrorKind::kUnsupported,
                str_format("frames lie in '{}', device 'cpu' takes system memory", text));
    g_free(text);
    return std::unexpected(std::move(error));
  }
  const int width = GST_VIDEO_INFO_WIDTH(&info);
  const int height = GST_VIDEO_INFO_HEIGHT(&info);
  const std::string format = gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&info));
  if (width % 2 != 0 || height % 2 != 0) {
    return fail(ErrorKind::kUnsupported,
                str_format("the picture is {}x{}: width and height must be even; crop or scale the "
                           "video by one pixel first",
                           width, height));
  }
  if (GST_VIDEO_INFO_IS_INTERLACED(&info)) {
    return fail(
        ErrorKind::kUnsupported,
        str_format("the video is interlaced ({}): only progressive video is analysed; "
                   "deinterlace it first",
                   gst_video_interlace_mode_to_string(GST_VIDEO_INFO_INTERLACE_MODE(&info))));
  }
  switch (info.colorimetry.transfer) {
    case GST_VIDEO_TRANSFER_SMPTE2084:
    case GST_VIDEO_TRANSFER_ARIB_STD_B67:
      return fail(ErrorKind::kUnsupported,
                  "the video is HDR (PQ or HLG transfer): tone-map it to SDR first");
    default:
      break;
  }
  const GstVideoFormatInfo* finfo = info.finfo;
  for (guint c = 0; c < GST_VIDEO_FORMAT_INFO_N_COMPONENTS(finfo); ++c) {
    if (GST_VIDEO_FORMAT_INFO_DEPTH(finfo, c) > 8) {
      return fail(ErrorKind::kUnsupported,
                  str_format("the video has {} bits a sample (format {}): only 8-bit video is "
                             "analysed; convert it first",
                             GST_VIDEO_FORMAT_INFO_DEPTH(finfo, c), format));
    }
  }
  if (format == "I420" || format == "NV12") return Intake::kDirect;
  return Intake::kConvert;
}

}  // namespace penstock
