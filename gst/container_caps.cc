// SPDX-License-Identifier: Apache-2.0
#include "gst/container_caps.h"

#include <gst/analytics/analytics.h>

#include <algorithm>
#include <string>
#include <utility>

#include "gst/infer_sources.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

constexpr const char* kFeature = GST_CAPS_FEATURE_META_GST_ANALYTICS_BATCH_META;

std::unexpected<Error> refuse(std::string why) {
  return fail(ErrorKind::kUnsupported, std::move(why));
}

Result<ContainerFormat> accept_container(const GstCaps* caps, DeviceId device) {
  const GstCapsFeatures* features = gst_caps_get_features(caps, 0);
  if (features == nullptr || gst_caps_features_get_size(features) != 1 ||
      !gst_caps_features_contains(features, kFeature)) {
    return refuse(str_format("media type '{}' without the one caps feature '{}' is not supported",
                             kContainerMediaType, kFeature));
  }
  const GValue* streams = gst_structure_get_value(gst_caps_get_structure(caps, 0), "streams");
  if (streams == nullptr || !GST_VALUE_HOLDS_ARRAY(streams)) {
    return refuse("streams, the caps of the container's streams, is missing or not an array");
  }
  const guint count = gst_value_array_get_size(streams);
  if (count > InferSources::kMaxStreams) {
    return refuse(str_format("streams are {}, which is above the limit of {}", count,
                             InferSources::kMaxStreams));
  }
  ContainerFormat format;
  for (guint i = 0; i < count; ++i) {
    const GValue* stream = gst_value_array_get_value(streams, i);
    if (!GST_VALUE_HOLDS_CAPS(stream)) return refuse(str_format("stream {} has no caps", i));
    auto accepted = accept_caps(gst_value_get_caps(stream), device);
    if (!accepted) {
      return std::unexpected(accepted.error().context(str_format("stream {} of the container", i)));
    }
    format.streams.push_back(*std::move(accepted));
  }
  return format;
}

}  // namespace

bool is_container(const GstCaps* caps) {
  return caps != nullptr && gst_caps_get_size(caps) == 1 &&
         gst_structure_has_name(gst_caps_get_structure(caps, 0), kContainerMediaType);
}

Result<InputFormat> accept_input(const GstCaps* caps, DeviceId device) {
  if (is_container(caps)) return accept_container(caps, device);
  return accept_caps(caps, device);
}

CapsPtr input_caps(DeviceKind kind) {
  CapsPtr caps = device_caps(kind);
  gst_caps_append(caps.get(),
                  gst_caps_new_full(gst_structure_new_empty(kContainerMediaType), nullptr));
  gst_caps_set_features(caps.get(), gst_caps_get_size(caps.get()) - 1,
                        gst_caps_features_new_single(kFeature));
  return caps;
}

GstClockTime frame_duration(const InputFormat& format) {
  if (const auto* video = std::get_if<VideoFormat>(&format)) return video->frame_duration;
  GstClockTime longest = GST_CLOCK_TIME_NONE;
  for (const VideoFormat& stream : std::get<ContainerFormat>(format).streams) {
    if (!GST_CLOCK_TIME_IS_VALID(stream.frame_duration)) continue;
    longest = GST_CLOCK_TIME_IS_VALID(longest) ? std::max(longest, stream.frame_duration)
                                               : stream.frame_duration;
  }
  return longest;
}

}  // namespace penstock::gst
