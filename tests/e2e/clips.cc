// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/clips.h"

#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/gst.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "penstock/base/str_format.h"

namespace penstock::e2e {
namespace {

constexpr GstClockTime kTimeout = 60 * GST_SECOND;

/// Empty when the pipeline came to its end.
std::string await_end(GstElement* pipeline) {
  GstBus* bus = gst_element_get_bus(pipeline);
  GstMessage* message = gst_bus_timed_pop_filtered(
      bus, kTimeout, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
  std::string error;
  if (message == nullptr) {
    error = "no end within a minute";
  } else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
    GError* cause = nullptr;
    gst_message_parse_error(message, &cause, nullptr);
    error = cause->message;
    g_error_free(cause);
  }
  if (message != nullptr) gst_message_unref(message);
  gst_object_unref(bus);
  return error;
}

// Pure red in BT.709 limited range, and grey.
constexpr unsigned char kRed[3] = {63, 102, 240};
constexpr unsigned char kGrey[3] = {126, 128, 128};

GstBuffer* square_frame(int n, int side) {
  const std::string picture = square_picture(n, side);
  GstBuffer* buffer = gst_buffer_new_memdup(picture.data(), picture.size());
  GST_BUFFER_PTS(buffer) = GstClockTime(n) * GST_SECOND / 25;
  GST_BUFFER_DURATION(buffer) = GST_SECOND / 25;
  return buffer;
}

}  // namespace

std::string square_picture(int n, int side) {
  std::string picture;
  for (int p = 0; p < 3; ++p) {
    const int shrink = p == 0 ? 1 : 2;
    const int stride = side / shrink;
    std::string plane(std::size_t(stride) * (side / shrink), char(kGrey[p]));
    for (int y = kSquareTop / shrink; y < (kSquareTop + kSquare) / shrink; ++y) {
      std::memset(plane.data() + y * stride + square_left(n) / shrink, kRed[p], kSquare / shrink);
    }
    picture += plane;
  }
  return picture;
}

void make_square_clip(const std::filesystem::path& path, int frames, const std::string& description,
                      int side) {
  GError* error = nullptr;
  GstElement* pipeline = gst_parse_launch(
      str_format("appsrc name=frames format=time caps=\"video/x-raw, format=I420, width={0}, "
                 "height={0}, framerate=25/1, colorimetry=bt709\" ! {1} ! filesink location={2}",
                 side, description, path.string())
          .c_str(),
      &error);
  ASSERT_EQ(error, nullptr) << error->message;
  GstElement* source = gst_bin_get_by_name(GST_BIN(pipeline), "frames");
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  for (int n = 0; n < frames; ++n) {
    gst_app_src_push_buffer(GST_APP_SRC(source), square_frame(n, side));
  }
  gst_app_src_end_of_stream(GST_APP_SRC(source));
  EXPECT_EQ(await_end(pipeline), "");
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(source);
  gst_object_unref(pipeline);
}

std::filesystem::path square_mp4(const std::filesystem::path& folder, int frames) {
  const std::filesystem::path path = folder / "square.mp4";
  make_square_clip(path, frames, "openh264enc bitrate=4000000 ! h264parse ! mp4mux");
  return path;
}

void make_clip(const std::filesystem::path& path, const std::string& description) {
  GError* error = nullptr;
  GstElement* pipeline = gst_parse_launch(
      str_format("{} ! filesink location={}", description, path.string()).c_str(), &error);
  ASSERT_EQ(error, nullptr) << error->message;
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  EXPECT_EQ(await_end(pipeline), "") << description;
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(pipeline);
}

Decoded decode_file(const std::filesystem::path& path) {
  Decoded decoded;
  GError* error = nullptr;
  GstElement* pipeline =
      gst_parse_launch(str_format("filesrc location={} ! decodebin ! videoconvert ! "
                                  "appsink name=out sync=false caps=video/x-raw,format=I420",
                                  path.string())
                           .c_str(),
                       &error);
  if (error != nullptr) {
    decoded.error = error->message;
    g_error_free(error);
    return decoded;
  }
  GstElement* out = gst_bin_get_by_name(GST_BIN(pipeline), "out");
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  while (GstSample* sample = gst_app_sink_try_pull_sample(GST_APP_SINK(out), kTimeout)) {
    GstVideoInfo info;
    gst_video_info_from_caps(&info, gst_sample_get_caps(sample));
    decoded.width = GST_VIDEO_INFO_WIDTH(&info);
    decoded.height = GST_VIDEO_INFO_HEIGHT(&info);
    ++decoded.frames;
    GstVideoFrame frame;
    if (gst_video_frame_map(&frame, &info, gst_sample_get_buffer(sample), GST_MAP_READ)) {
      decoded.last_frame.clear();
      for (int p = 0; p < 3; ++p) {
        const auto* row = static_cast<const char*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, p));
        for (int y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT(&frame, p); ++y) {
          decoded.last_frame.append(row, std::size_t(GST_VIDEO_FRAME_COMP_WIDTH(&frame, p)));
          row += GST_VIDEO_FRAME_PLANE_STRIDE(&frame, p);
        }
      }
      gst_video_frame_unmap(&frame);
    }
    gst_sample_unref(sample);
  }
  decoded.error = await_end(pipeline);
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(out);
  gst_object_unref(pipeline);
  return decoded;
}

}  // namespace penstock::e2e
