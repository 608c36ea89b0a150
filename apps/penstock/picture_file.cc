// SPDX-License-Identifier: Apache-2.0
#include "apps/penstock/picture_file.h"

#include <gst/analytics/analytics.h>
#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/video/video.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "apps/penstock/picture_regions.h"
#include "gst/buffer_frame.h"
#include "gst/video_caps.h"
#include "penstock/base/str_format.h"
#include "penstock/pipeline/drawn_labels.h"
#include "penstock/pipeline/output_files.h"
#include "penstock/pipeline/source.h"

namespace penstock {
namespace {

constexpr GstClockTime kTimeout = 60 * GST_SECOND;
constexpr std::int64_t kMaxPixels = std::int64_t{1} << 27;

struct Unref {
  void operator()(gpointer object) const { gst_object_unref(object); }
  void operator()(GstSample* sample) const { gst_sample_unref(sample); }
};
using ObjectPtr = std::unique_ptr<GstElement, Unref>;
using SamplePtr = std::unique_ptr<GstSample, Unref>;

/// A pipeline that is stopped before it goes.
class Pipeline {
 public:
  static Result<Pipeline> parse(const char* description) {
    GError* error = nullptr;
    GstElement* made = gst_parse_launch(description, &error);
    if (error == nullptr) {
      refuse_vast_pictures(GST_BIN(made));
      return Pipeline(made);
    }
    Error failed(ErrorKind::kUnsupported, str_format("GStreamer lacks a part: {}", error->message));
    g_error_free(error);
    if (made != nullptr) gst_object_unref(made);
    return std::unexpected(std::move(failed));
  }
  Pipeline(Pipeline&& other) noexcept : element_(std::exchange(other.element_, nullptr)) {}
  Pipeline& operator=(Pipeline&&) = delete;
  ~Pipeline() {
    if (element_ == nullptr) return;
    gst_element_set_state(element_, GST_STATE_NULL);
    gst_object_unref(element_);
  }

  void start(GstState state) { gst_element_set_state(element_, state); }
  ObjectPtr part(const char* name) {
    return ObjectPtr(gst_bin_get_by_name(GST_BIN(element_), name));
  }
  /// Waits for what the bus says of `types`, a minute at most; what went wrong, or empty.
  std::string await(guint types) {
    GstBus* bus = gst_element_get_bus(element_);
    GstMessage* message =
        gst_bus_timed_pop_filtered(bus, kTimeout, GstMessageType(types | GST_MESSAGE_ERROR));
    gst_object_unref(bus);
    if (message == nullptr) return "it took longer than a minute";
    std::string text;
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
      GError* cause = nullptr;
      gst_message_parse_error(message, &cause, nullptr);
      text = cause->message;
      g_error_free(cause);
    }
    gst_message_unref(message);
    return text;
  }

 private:
  explicit Pipeline(GstElement* element) : element_(element) {}
  GstElement* element_;
};

/// The first frame that leaves the decoder. Written by its thread before the sink has a picture.
struct FirstFrame {
  SamplePtr sample;
  bool is_turned = false;  // by its EXIF

  static GstPadProbeReturn take(GstPad* pad, GstPadProbeInfo* info, gpointer data) {
    auto* self = static_cast<FirstFrame*>(data);
    if ((GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_BUFFER) != 0) {
      GstCaps* caps = gst_pad_get_current_caps(pad);
      self->sample.reset(gst_sample_new(GST_PAD_PROBE_INFO_BUFFER(info), caps, nullptr, nullptr));
      if (caps != nullptr) gst_caps_unref(caps);
      return GST_PAD_PROBE_REMOVE;
    }
    GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
    if (GST_EVENT_TYPE(event) != GST_EVENT_TAG) return GST_PAD_PROBE_OK;
    GstTagList* tags = nullptr;
    gst_event_parse_tag(event, &tags);
    gchar* turn = nullptr;
    if (gst_tag_list_get_string(tags, GST_TAG_IMAGE_ORIENTATION, &turn)) {
      self->is_turned = std::string_view(turn) != "rotate-0";
      g_free(turn);
    }
    return GST_PAD_PROBE_OK;
  }

  /// Null where peninfer would refuse it, or the picture is turned.
  FramePtr frame() const {
    if (is_turned || sample == nullptr) return nullptr;
    const auto format = gst::accept_caps(gst_sample_get_caps(sample.get()), DeviceId{});
    if (!format) return nullptr;
    auto made = gst::frame_of(gst_sample_get_buffer(sample.get()), *format, DeviceId{});
    return made ? std::move(made->frame) : nullptr;
  }
};

Result<Picture> picture_of(GstSample* sample) {
  GstVideoInfo info;
  if (!gst_video_info_from_caps(&info, gst_sample_get_caps(sample))) {
    return fail(ErrorKind::kUnsupported, "its decoder gives no picture");
  }
  Picture picture{
      .width = GST_VIDEO_INFO_WIDTH(&info), .height = GST_VIDEO_INFO_HEIGHT(&info), .rgb = {}};
  if (std::int64_t{picture.width} * picture.height > kMaxPixels) {
    return fail(ErrorKind::kUnsupported, str_format("{}x{} is more than {} pixels", picture.width,
                                                    picture.height, kMaxPixels));
  }
  GstVideoFrame mapped;
  if (!gst_video_frame_map(&mapped, &info, gst_sample_get_buffer(sample), GST_MAP_READ)) {
    return fail(ErrorKind::kIo, "its decoded picture can't be read");
  }
  const auto* rows = static_cast<const std::uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&mapped, 0));
  const int stride = GST_VIDEO_FRAME_PLANE_STRIDE(&mapped, 0);
  for (int y = 0; y < picture.height; ++y) {
    const std::uint8_t* row = rows + std::ptrdiff_t{y} * stride;
    picture.rgb.insert(picture.rgb.end(), row, row + std::ptrdiff_t{3} * picture.width);
  }
  gst_video_frame_unmap(&mapped);
  return picture;
}

void put_dot(Picture& picture, float x, float y, int radius, const Rgb& color) {
  if (!(std::abs(x) < 1e6f && std::abs(y) < 1e6f)) return;
  const int cx = static_cast<int>(std::floor(x)), cy = static_cast<int>(std::floor(y));
  for (int row = std::max(cy - radius, 0); row <= std::min(cy + radius, picture.height - 1);
       ++row) {
    for (int at = std::max(cx - radius, 0); at <= std::min(cx + radius, picture.width - 1); ++at) {
      std::ranges::copy(color,
                        picture.rgb.begin() + 3 * (std::ptrdiff_t{row} * picture.width + at));
    }
  }
}

void put_line(Picture& picture, std::array<float, 2> from, std::array<float, 2> to,
              const Rgb& color) {
  const float length = std::hypot(to[0] - from[0], to[1] - from[1]);
  if (!(length < 1e6f)) return;
  const int steps = static_cast<int>(length) + 1;
  for (int i = 0; i <= steps; ++i) {
    const float part = static_cast<float>(i) / static_cast<float>(steps);
    put_dot(picture, from[0] + part * (to[0] - from[0]), from[1] + part * (to[1] - from[1]), 1,
            color);
  }
}

void put_rotated(Picture& picture, const RotatedBox& box, const Rgb& color) {
  const float cosine = std::cos(box.angle), sine = std::sin(box.angle);
  const auto corner = [&](float right, float down) {
    const float x = right * box.width / 2, y = down * box.height / 2;
    return std::array{box.center_x + x * cosine - y * sine, box.center_y + x * sine + y * cosine};
  };
  const std::array corners{corner(-1, -1), corner(1, -1), corner(1, 1), corner(-1, 1)};
  for (std::size_t i = 0; i < 4; ++i) put_line(picture, corners[i], corners[(i + 1) % 4], color);
}

/// What the overlay element does not draw.
void draw_details(Picture& picture, const Findings& findings) {
  const int radius = std::max(2, std::max(picture.width, picture.height) / 300);
  for (const Detection& object : findings.objects) {
    const Rgb color = color_of(object.class_id);
    if (object.rotated) put_rotated(picture, *object.rotated, color);
    for (const Keypoint& keypoint : object.keypoints) {
      if (keypoint.confidence >= 0.5f) put_dot(picture, keypoint.x, keypoint.y, radius, color);
    }
  }
}

/// For objectdetectionoverlay, which draws boxes and labels.
void add_boxes(GstBuffer* buffer, const Findings& findings) {
  GstAnalyticsRelationMeta* relations = gst_buffer_add_analytics_relation_meta(buffer);
  for (const Detection& object : findings.objects) {
    if (object.rotated) continue;
    GstAnalyticsODMtd box;
    const int x = static_cast<int>(std::lround(object.x)),
              y = static_cast<int>(std::lround(object.y));
    gst_analytics_relation_meta_add_od_mtd(
        relations, g_quark_from_string(drawn_label(object.label).c_str()), x, y,
        std::max(1, static_cast<int>(std::lround(object.x + object.width)) - x),
        std::max(1, static_cast<int>(std::lround(object.y + object.height)) - y), object.confidence,
        &box);
  }
}

GstBuffer* to_buffer(const Picture& picture, GstVideoInfo& info) {
  gst_video_info_set_format(&info, GST_VIDEO_FORMAT_RGB, static_cast<guint>(picture.width),
                            static_cast<guint>(picture.height));
  // Rows of RGB are padded to four bytes there.
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr);
  GstMapInfo map;
  if (buffer == nullptr || !gst_buffer_map(buffer, &map, GST_MAP_WRITE)) return buffer;
  std::memset(map.data, 0, map.size);
  const std::size_t row = 3 * static_cast<std::size_t>(picture.width);
  for (std::size_t y = 0; y < static_cast<std::size_t>(picture.height); ++y) {
    std::memcpy(map.data + y * static_cast<std::size_t>(GST_VIDEO_INFO_PLANE_STRIDE(&info, 0)),
                picture.rgb.data() + y * row, row);
  }
  gst_buffer_unmap(buffer, &map);
  GST_BUFFER_PTS(buffer) = 0;
  return buffer;
}

/// A query that comes before the caps, as appsrc's does, keeps the overlay from ever negotiating.
GstPadProbeReturn refuse_allocation(GstPad*, GstPadProbeInfo* info, gpointer) {
  return GST_QUERY_TYPE(GST_PAD_PROBE_INFO_QUERY(info)) == GST_QUERY_ALLOCATION ? GST_PAD_PROBE_DROP
                                                                                : GST_PAD_PROBE_OK;
}

bool is_png(const std::filesystem::path& path) { return path.extension() == ".png"; }

/// The file's bytes.
Result<std::vector<std::byte>> encode(const char* encoder, Picture picture,
                                      const Findings& findings) {
  auto pipeline = Pipeline::parse(
      str_format("appsrc name=in format=time ! objectdetectionoverlay ! videoconvert ! {} ! "
                 "appsink name=out sync=false",
                 encoder)
          .c_str());
  if (!pipeline) return std::unexpected(std::move(pipeline).error());
  draw_details(picture, findings);
  GstVideoInfo info;
  GstBuffer* buffer = to_buffer(picture, info);
  if (buffer == nullptr) return fail(ErrorKind::kExhausted, "no memory");
  add_boxes(buffer, findings);
  GST_VIDEO_INFO_FPS_N(&info) = 1;
  GST_VIDEO_INFO_FPS_D(&info) = 1;
  const ObjectPtr source = pipeline->part("in");
  GstPad* pad = gst_element_get_static_pad(source.get(), "src");
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, refuse_allocation, nullptr, nullptr);
  gst_object_unref(pad);
  GstCaps* caps = gst_video_info_to_caps(&info);
  gst_app_src_set_caps(GST_APP_SRC(source.get()), caps);
  gst_caps_unref(caps);
  pipeline->start(GST_STATE_PLAYING);
  gst_app_src_push_buffer(GST_APP_SRC(source.get()), buffer);
  gst_app_src_end_of_stream(GST_APP_SRC(source.get()));
  std::vector<std::byte> bytes;
  const ObjectPtr sink = pipeline->part("out");
  while (const SamplePtr sample{gst_app_sink_try_pull_sample(GST_APP_SINK(sink.get()), kTimeout)}) {
    GstMapInfo map;
    if (!gst_buffer_map(gst_sample_get_buffer(sample.get()), &map, GST_MAP_READ)) {
      return fail(ErrorKind::kInternal, "the encoded picture can't be read");
    }
    const auto* data = reinterpret_cast<const std::byte*>(map.data);
    bytes.insert(bytes.end(), data, data + map.size);
    gst_buffer_unmap(gst_sample_get_buffer(sample.get()), &map);
  }
  if (const std::string why = pipeline->await(GST_MESSAGE_EOS); !why.empty()) {
    return fail(ErrorKind::kUnsupported, why);
  }
  return bytes;
}

}  // namespace

Result<Picture> read_picture(const std::filesystem::path& path) {
  const auto where = [&](Error error) {
    return std::unexpected(std::move(error).context(str_format("picture '{}'", path.string())));
  };
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec)) {
    return where({ErrorKind::kInvalidArgument, "that is a folder; give one picture of it"});
  }
  if (!std::filesystem::is_regular_file(path, ec)) {
    if (!std::filesystem::exists(path, ec)) {
      return where({ErrorKind::kNotFound, "there is no such file"});
    }
    return where({ErrorKind::kInvalidArgument, "that is a device or pipe; give a file"});
  }
  FirstFrame first;  // outlives the pipeline, whose threads write it
  auto pipeline = Pipeline::parse(
      "filesrc name=in ! decodebin ! videoconvert name=first ! videoflip video-direction=auto ! "
      "video/x-raw,format=RGB ! appsink name=out sync=false max-buffers=1");
  if (!pipeline) return where(std::move(pipeline).error());
  g_object_set(pipeline->part("in").get(), "location", path.c_str(), nullptr);
  GstPad* pad = gst_element_get_static_pad(pipeline->part("first").get(), "sink");
  gst_pad_add_probe(
      pad, GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
      FirstFrame::take, &first, nullptr);
  gst_object_unref(pad);
  pipeline->start(GST_STATE_PAUSED);
  // The first picture is at the sink then.
  if (const std::string why = pipeline->await(GST_MESSAGE_ASYNC_DONE); !why.empty()) {
    return where({ErrorKind::kCorrupt, why});
  }
  const ObjectPtr sink = pipeline->part("out");
  std::unique_ptr<GstSample, Unref> sample(
      gst_app_sink_try_pull_preroll(GST_APP_SINK(sink.get()), 0));
  if (sample == nullptr) return where({ErrorKind::kCorrupt, "it holds no picture"});
  auto picture = picture_of(sample.get());
  if (!picture) return where(std::move(picture).error());
  picture->decoded = first.frame();
  return picture;
}

FramePtr to_frame(const Picture& picture) {
  if (picture.decoded != nullptr) return picture.decoded;
  const int width = (picture.width + 1) & ~1, height = (picture.height + 1) & ~1;
  const std::size_t luma = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  auto samples = std::make_shared<std::vector<std::byte>>(luma * 3 / 2);
  const auto pixel = [&](int x, int y) {
    const int column = std::min(x, picture.width - 1), row = std::min(y, picture.height - 1);
    return picture.rgb.data() + 3 * (std::ptrdiff_t{row} * picture.width + column);
  };
  const auto level = [](float value) {
    return static_cast<std::byte>(std::clamp(std::lround(value), 0L, 255L));
  };
  // The equations of JFIF.
  std::byte* out = samples->data();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const std::uint8_t* p = pixel(x, y);
      *out++ = level(0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2]);
    }
  }
  std::byte* chroma = samples->data() + luma;
  for (int y = 0; y < height; y += 2) {
    for (int x = 0; x < width; x += 2, ++chroma) {
      std::array<float, 3> mean{};
      for (const auto& [dx, dy] :
           {std::pair(0, 0), std::pair(1, 0), std::pair(0, 1), std::pair(1, 1)}) {
        for (std::size_t c = 0; c < 3; ++c)
          mean[c] += 0.25f * static_cast<float>(pixel(x + dx, y + dy)[c]);
      }
      chroma[0] = level(128 - 0.168736f * mean[0] - 0.331264f * mean[1] + 0.5f * mean[2]);
      chroma[luma / 4] = level(128 + 0.5f * mean[0] - 0.418688f * mean[1] - 0.081312f * mean[2]);
    }
  }
  const StoragePtr storage = wrap_host_memory(std::span(*samples), samples);
  auto frame = std::make_shared<VideoFrame>();
  frame->width = width;
  frame->height = height;
  frame->color = {ColorMatrix::kBt601, ColorRange::kFull, ChromaSite::kCenter};
  const std::size_t half = static_cast<std::size_t>(width) / 2;
  frame->planes = {Plane{storage, 0, static_cast<std::size_t>(width)}, Plane{storage, luma, half},
                   Plane{storage, luma + luma / 4, half}};
  return frame;
}

Result<void> check_picture_name(const std::filesystem::path& path) {
  const auto extension = path.extension();
  if (is_png(path) || extension == ".jpg" || extension == ".jpeg") return {};
  return fail(ErrorKind::kInvalidArgument,
              str_format("--out '{}' ends in neither .jpg nor .png", path.string()));
}

Result<void, OutputError> write_picture(const std::filesystem::path& path, Picture picture,
                                        const Findings& findings) {
  PENSTOCK_TRY(check_picture_name(path));
  const auto bytes = encode(is_png(path) ? "pngenc snapshot=false" : "jpegenc quality=92",
                            std::move(picture), findings);
  const auto where = [&] { return str_format("cannot write picture '{}'", path.string()); };
  if (!bytes) return std::unexpected(Error(bytes.error()).context(where()));
  const auto written = replace_file(path, *bytes);
  if (written) return {};
  return std::unexpected(
      OutputError(written.error().step(), Error(written.error()).context(where())));
}

}  // namespace penstock
