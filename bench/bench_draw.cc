// SPDX-License-Identifier: Apache-2.0
//
// bench draw: CPU time of drawing 20 labelled objects on a frame, penwatermark beside GStreamer's
// objectdetectionoverlay. They do not make the same: the peer draws into the frame itself, at
// the price of its chroma's resolution, penwatermark makes a new BGRA frame and keeps the old one.
// So there is a row of the peer behind videoconvert, too, where both end in BGRA, and one where
// both end in I420, as an encoder wants it. In turns; a row's ratio is the median of the rounds'
// ratios. Both have their defaults and one thread.
#include <gst/analytics/analytics.h>
#include <gst/app/gstappsrc.h>
#include <gst/gst.h>
#include <gst/video/video.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "bench/report.h"
#include "gst/gst_ptr.h"
#include "gst/register.h"
#include "penstock/base/error.h"
#include "penstock/base/str_format.h"

namespace penstock::bench {
namespace {

struct Flags {
  std::string json = "build/bench/draw.json";
  int rounds = 11;
  int frames = 40;
};

struct Picture {
  const char* name;
  GstVideoFormat format;
  int width, height, objects;
};

/// An element or a row of them; frames are timed from the first's sink to the last's source pad.
struct Drawer {
  const char* name;
  const char* first;
  const char* last;
  const char* elements;
  const char* output;
};

constexpr Drawer kOurs{"penwatermark", "drawer", "drawer", "penwatermark name=drawer", "BGRA"};
/// What `penstock run` has before its encoder.
constexpr Drawer kOursForEncoder{"penwatermark ! videoconvert", "drawer", "convert",
                                 "penwatermark name=drawer ! videoconvert name=convert ! "
                                 "video/x-raw,format=I420,colorimetry=bt709",
                                 "I420"};
constexpr Drawer kPeer{"objectdetectionoverlay", "drawer", "drawer",
                       "objectdetectionoverlay name=drawer", "the frame"};
constexpr Drawer kPeerBgra{
    "videoconvert ! objectdetectionoverlay", "convert", "drawer",
    "videoconvert name=convert ! video/x-raw,format=BGRA ! objectdetectionoverlay name=drawer",
    "BGRA"};

double thread_cpu_ms() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return double(used.tv_sec) * 1e3 + double(used.tv_nsec) / 1e6;
}

/// Each frame has memory of its own, so that the peer need not copy before it draws into it.
GstBuffer* make_frame(const Picture& picture, int number) {
  GstVideoInfo info;
  gst_video_info_set_format(&info, picture.format, guint(picture.width), guint(picture.height));
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, info.size, nullptr);
  GstMapInfo map;
  if (gst_buffer_map(buffer, &map, GST_MAP_WRITE)) {
    for (gsize i = 0; i < map.size; ++i) map.data[i] = guint8(60 + (i * 7 + gsize(number)) % 120);
    gst_buffer_unmap(buffer, &map);
  }
  GST_BUFFER_PTS(buffer) = GstClockTime(number) * 40 * GST_MSECOND;
  GST_BUFFER_DURATION(buffer) = 40 * GST_MSECOND;
  GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(buffer);
  constexpr const char* kLabels[] = {"person", "bicycle", "car", "traffic light", "dog"};
  for (int i = 0; i < picture.objects; ++i) {
    const int column = i % 5, row = i / 5 % 4;
    GstAnalyticsODMtd added;
    gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string(kLabels[i % 5]),
                                           picture.width * (2 * column + 1) / 11 + number % 7,
                                           picture.height * (2 * row + 1) / 9 + number % 5,
                                           picture.width / 12, picture.height / 8,
                                           0.5f + 0.02f * float(i), &added);
  }
  return buffer;
}

/// All of it runs on the streaming thread.
struct Watch {
  double started = 0;
  double cpu_ms = 0;
  int frames = 0;
};

void watch_pad(GstElement* bin, const char* element, const char* pad, GstPadProbeCallback probe,
               Watch& watch) {
  const gst::GstPtr<GstElement> found(gst_bin_get_by_name(GST_BIN(bin), element));
  const gst::GstPtr<GstPad> where(gst_element_get_static_pad(found.get(), pad));
  gst_pad_add_probe(where.get(), GST_PAD_PROBE_TYPE_BUFFER, probe, &watch, nullptr);
}

void watch_frames(GstElement* pipeline, const Drawer& drawer, Watch& watch) {
  watch_pad(
      pipeline, drawer.first, "sink",
      [](GstPad*, GstPadProbeInfo*, gpointer data) {
        static_cast<Watch*>(data)->started = thread_cpu_ms();
        return GST_PAD_PROBE_OK;
      },
      watch);
  watch_pad(
      pipeline, drawer.last, "src",
      [](GstPad*, GstPadProbeInfo*, gpointer data) {
        auto& seen = *static_cast<Watch*>(data);
        // The first two meet cold caches, fonts and pools.
        if (++seen.frames > 2) seen.cpu_ms += thread_cpu_ms() - seen.started;
        return GST_PAD_PROBE_OK;
      },
      watch);
}

/// A query that comes before the caps, as appsrc's does, keeps the peer from ever negotiating.
GstPadProbeReturn refuse_allocation(GstPad*, GstPadProbeInfo* info, gpointer) {
  return GST_QUERY_TYPE(GST_PAD_PROBE_INFO_QUERY(info)) == GST_QUERY_ALLOCATION ? GST_PAD_PROBE_DROP
                                                                                : GST_PAD_PROBE_OK;
}

/// CPU time of a frame in ms.
Result<double> run(const Drawer& drawer, const Picture& picture, int frames) {
  const std::string text = str_format(
      "appsrc name=source format=time max-bytes=0 max-buffers=0 max-time=0 "
      "caps=video/x-raw,format={},width={},height={},framerate=25/1,colorimetry=bt709 "
      "! {} ! fakesink sync=false async=false",
      gst_video_format_to_string(picture.format), picture.width, picture.height, drawer.elements);
  GError* error = nullptr;
  const gst::GstPtr<GstElement> pipeline(gst_parse_launch(text.c_str(), &error));
  if (error != nullptr) {
    Error why(ErrorKind::kNotFound, error->message);
    g_error_free(error);
    return std::unexpected(std::move(why));
  }
  Watch watch;
  watch_frames(pipeline.get(), drawer, watch);
  const gst::GstPtr<GstElement> source(gst_bin_get_by_name(GST_BIN(pipeline.get()), "source"));
  const gst::GstPtr<GstPad> pad(gst_element_get_static_pad(source.get(), "src"));
  gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, refuse_allocation, nullptr,
                    nullptr);
  for (int i = 0; i < frames + 2; ++i) {
    gst_app_src_push_buffer(GST_APP_SRC(source.get()), make_frame(picture, i));
  }
  gst_app_src_end_of_stream(GST_APP_SRC(source.get()));
  gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
  const gst::GstPtr<GstBus> bus(gst_element_get_bus(pipeline.get()));
  const gst::GstPtr<GstMessage> message(gst_bus_timed_pop_filtered(
      bus.get(), 120 * GST_SECOND, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR)));
  gst_element_set_state(pipeline.get(), GST_STATE_NULL);
  if (message == nullptr || GST_MESSAGE_TYPE(message.get()) != GST_MESSAGE_EOS ||
      watch.frames != frames + 2) {
    return fail(ErrorKind::kInternal,
                str_format("{} let {} of {} frames pass", drawer.name, watch.frames, frames + 2));
  }
  return watch.cpu_ms / frames;
}

Result<BenchRow> compare(const Picture& picture, const Drawer& us, const Drawer& peer, double bar,
                         const Flags& flags) {
  std::vector<double> ours, theirs, ratios;
  for (int round = 0; round < flags.rounds; ++round) {
    for (const bool is_ours : {round % 2 == 0, round % 2 != 0}) {
      const auto took = run(is_ours ? us : peer, picture, flags.frames);
      if (!took) return std::unexpected(took.error());
      (is_ours ? ours : theirs).push_back(*took);
    }
    ratios.push_back(theirs.back() / ours.back());
  }
  return BenchRow{.name = str_format("{}, {} objects, to {} / to {}", picture.name, picture.objects,
                                     us.output, peer.output),
                  .unit = "CPU ms/frame",
                  .higher_is_better = false,
                  .ours = median(ours),
                  .peer_name = peer.name,
                  .peer = median(theirs),
                  .ratio = median(ratios),
                  .bar = bar};
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  using namespace penstock::bench;
  CLI::App app("penwatermark beside objectdetectionoverlay", "bench_draw");
  Flags flags;
  app.add_option("--json", flags.json, "Where the results go")->capture_default_str();
  app.add_option("--rounds", flags.rounds, "Rounds a comparison")
      ->capture_default_str()
      ->check(CLI::Range(7, 1000));
  app.add_option("--frames", flags.frames, "Frames a measurement")
      ->capture_default_str()
      ->check(CLI::Range(5, 200));
  CLI11_PARSE(app, argc, argv);
  gst_init(nullptr, nullptr);
  if (!penstock::gst::register_elements(nullptr)) {
    std::fprintf(stderr, "bench draw: GStreamer refuses penstock's elements\n");
    return 1;
  }
  std::printf(
      "penwatermark: NV12 read in place, a new BGRA frame of system memory, the input kept\n"
      "penwatermark ! videoconvert: the same, and then I420 of it\n"
      "objectdetectionoverlay: drawn into the frame itself, in place\n"
      "videoconvert ! objectdetectionoverlay: a new BGRA frame, drawn into in place\n");
  const Picture full_hd{"1080p NV12", GST_VIDEO_FORMAT_NV12, 1920, 1080, 20};
  const Picture clip{"768x576 I420", GST_VIDEO_FORMAT_I420, 768, 576, 6};
  struct Comparison {
    const Picture& picture;
    const Drawer& us;
    const Drawer& peer;
    double bar;
  };
  BenchReport report("draw");
  for (const auto& [picture, us, peer, bar] : {Comparison{full_hd, kOurs, kPeer, 3.0},
                                               {full_hd, kOurs, kPeerBgra, 3.0},
                                               {clip, kOursForEncoder, kPeer, 1.0}}) {
    auto row = compare(picture, us, peer, bar, flags);
    if (!row) {
      std::fprintf(stderr, "bench draw: %s\n", row.error().message().c_str());
      return 1;
    }
    report.add(*std::move(row));
  }
  return report.finish(flags.json) ? 0 : 1;
}
