// SPDX-License-Identifier: Apache-2.0
#include "bench/clips.h"

#include <gst/gst.h>

#include <cstdio>
#include <string>

#include "penstock/base/str_format.h"

namespace penstock::bench {

namespace fs = std::filesystem;

Result<fs::path> h264_of(const fs::path& clip, const fs::path& folder) {
  fs::path path = folder / (clip.stem().string() + "-h264.mp4");
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (fs::exists(path, ec)) return path;
  std::printf("making %s\n", path.c_str());
  const fs::path partial = path.string() + ".partial";
  GError* error = nullptr;
  GstElement* pipeline = gst_parse_launch(
      str_format("filesrc location=\"{}\" ! decodebin3 ! openh264enc bitrate=2000000 "
                 "complexity=high ! h264parse ! mp4mux ! filesink location=\"{}\"",
                 clip.string(), partial.string())
          .c_str(),
      &error);
  if (error != nullptr) {
    Error wrong(ErrorKind::kUnsupported, error->message);
    g_error_free(error);
    return std::unexpected(std::move(wrong));
  }
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  GstBus* bus = gst_element_get_bus(pipeline);
  GstMessage* message = gst_bus_timed_pop_filtered(
      bus, GST_CLOCK_TIME_NONE, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
  const bool ended = GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS;
  gst_message_unref(message);
  gst_object_unref(bus);
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(pipeline);
  if (!ended) return fail(ErrorKind::kIo, "transcoding the clip failed");
  fs::rename(partial, path, ec);
  if (ec) return fail(ErrorKind::kIo, "cannot keep the transcoded clip: " + ec.message());
  return path;
}

}  // namespace penstock::bench
