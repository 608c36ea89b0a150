// SPDX-License-Identifier: Apache-2.0
#include "gst/video_caps.h"

#include <string>
#include <string_view>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

std::unexpected<Error> refuse(std::string why) {
  return fail(ErrorKind::kUnsupported, std::move(why));
}

std::string_view wanted_feature(DeviceKind kind) {
  return kind == DeviceKind::kSim ? kSimMemoryFeature : GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY;
}

std::string_view wanted_formats(DeviceKind kind) {
  return kind == DeviceKind::kSim ? "NV12" : "NV12 or I420";
}

Result<void> check_memory(const GstCaps* caps, DeviceId device) {
  const std::string_view wanted = wanted_feature(device.kind);
  const GstCapsFeatures* features = gst_caps_get_features(caps, 0);
  if (features == nullptr || gst_caps_features_get_size(features) == 0) {
    if (wanted == GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY) return {};
  } else if (gst_caps_features_get_size(features) == 1 &&
             gst_caps_features_contains(features, std::string(wanted).c_str())) {
    return {};
  }
  gchar* text = features == nullptr ? nullptr : gst_caps_features_to_string(features);
  const std::string found = text == nullptr ? GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY : text;
  g_free(text);
  return refuse(str_format("caps feature '{}' is not supported, device '{}' takes '{}'", found,
                           to_string(device), wanted));
}

Result<PixelFormat> check_format(const GstStructure* fields, DeviceId device) {
  const gchar* format = gst_structure_get_string(fields, "format");
  const std::string_view name = format == nullptr ? "" : format;
  if (name == "NV12") return PixelFormat::kNv12;
  if (name == "I420" && device.kind == DeviceKind::kCpu) return PixelFormat::kI420;
  return refuse(str_format("format '{}' is not supported, device '{}' takes {}", name,
                           to_string(device), wanted_formats(device.kind)));
}

Result<int> check_side(const GstStructure* fields, const char* name) {
  int value = 0;
  if (!gst_structure_get_int(fields, name, &value) || value <= 0) {
    return refuse(str_format("{} is missing or not a positive number", name));
  }
  if (value % 2 != 0) return refuse(str_format("{} {} is odd, it must be even", name, value));
  if (value > kMaxFrameSide) {
    return refuse(str_format("{} {} is above the limit of {}", name, value, kMaxFrameSide));
  }
  return value;
}

Result<void> check_progressive(const GstStructure* fields) {
  const gchar* mode = gst_structure_get_string(fields, "interlace-mode");
  if (mode == nullptr || std::string_view(mode) == "progressive") return {};
  return refuse(str_format("interlace-mode '{}' is not supported, deinterlace first", mode));
}

Result<Colorimetry> check_colorimetry(const GstStructure* fields) {
  Colorimetry color;
  const gchar* text = gst_structure_get_string(fields, "colorimetry");
  if (text == nullptr) return color;
  GstVideoColorimetry declared;
  if (!gst_video_colorimetry_from_string(&declared, text)) {
    return refuse(str_format("colorimetry '{}' is not understood", text));
  }
  if (declared.transfer == GST_VIDEO_TRANSFER_SMPTE2084 ||
      declared.transfer == GST_VIDEO_TRANSFER_ARIB_STD_B67) {
    return refuse(
        str_format("colorimetry '{}' has an HDR transfer function, tone-map to SDR first", text));
  }
  switch (declared.matrix) {
    case GST_VIDEO_COLOR_MATRIX_UNKNOWN:
    case GST_VIDEO_COLOR_MATRIX_BT709:
      break;
    case GST_VIDEO_COLOR_MATRIX_BT601:
      color.matrix = ColorMatrix::kBt601;
      break;
    default:
      return refuse(
          str_format("colorimetry '{}' has a matrix that is neither BT.601 nor BT.709", text));
  }
  if (declared.range == GST_VIDEO_COLOR_RANGE_0_255) color.range = ColorRange::kFull;
  return color;
}

Result<ChromaSite> check_chroma_site(const GstStructure* fields) {
  const gchar* text = gst_structure_get_string(fields, "chroma-site");
  if (text == nullptr) return ChromaSite::kLeft;
  switch (gst_video_chroma_site_from_string(text)) {
    case GST_VIDEO_CHROMA_SITE_H_COSITED:
      return ChromaSite::kLeft;
    case GST_VIDEO_CHROMA_SITE_NONE:
      return ChromaSite::kCenter;
    default:
      return refuse(str_format(
          "chroma-site '{}' is not supported, it must be 'mpeg2', 'jpeg' or undeclared", text));
  }
}

}  // namespace

CapsPtr device_caps(DeviceKind kind) {
  return CapsPtr(kind == DeviceKind::kSim
                     ? gst_caps_from_string("video/x-raw(memory:PenstockSim), format=NV12")
                     : gst_caps_from_string("video/x-raw, format={NV12,I420}"));
}

// The program takes pictures as the element takes frames.
__attribute__((visibility("default"))) Result<VideoFormat> accept_caps(const GstCaps* caps,
                                                                       DeviceId device) {
  if (caps == nullptr || gst_caps_get_size(caps) != 1) return refuse("caps are not fixed");
  const GstStructure* fields = gst_caps_get_structure(caps, 0);
  const std::string_view media = gst_structure_get_name(fields);
  if (media != "video/x-raw") {
    return refuse(str_format("media type '{}' is not supported, it must be video/x-raw", media));
  }
  PENSTOCK_TRY(check_memory(caps, device));
  VideoFormat result;
  const auto format = check_format(fields, device);
  if (!format) return std::unexpected(format.error());
  const auto width = check_side(fields, "width");
  if (!width) return std::unexpected(width.error());
  const auto height = check_side(fields, "height");
  if (!height) return std::unexpected(height.error());
  PENSTOCK_TRY(check_progressive(fields));
  const auto color = check_colorimetry(fields);
  if (!color) return std::unexpected(color.error());
  const auto site = check_chroma_site(fields);
  if (!site) return std::unexpected(site.error());
  if (!gst_video_info_from_caps(&result.info, caps)) return refuse("caps are not fixed video caps");

  result.format = *format;
  result.width = *width;
  result.height = *height;
  result.color = *color;
  result.color.site = *site;
  const int rate = GST_VIDEO_INFO_FPS_N(&result.info);
  if (rate > 0) {
    result.frame_duration =
        gst_util_uint64_scale_int(GST_SECOND, GST_VIDEO_INFO_FPS_D(&result.info), rate);
  }
  return result;
}

}  // namespace penstock::gst
