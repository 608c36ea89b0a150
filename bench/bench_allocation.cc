// SPDX-License-Identifier: Apache-2.0
//
// bench allocation: which ALLOCATION reply makes which decoder copy each frame. Peers are the
// replies that peninfer could give instead of its own; the figure is how many frames of the clip
// were copied.
#include <gst/app/gstappsink.h>
#include <gst/gst.h>
#include <gst/video/video.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/clips.h"
#include "bench/report.h"
#include "gst/allocation.h"
#include "penstock/pipeline/source.h"
#include "penstock/pipeline/upstream_copies.h"

namespace penstock::bench {
namespace {

namespace fs = std::filesystem;

// What peninfer may hold with its defaults on two cores; the number only has to be a likely one.
constexpr guint kHeld = 11;

enum class Reply { kOurs, kNone, kMetaOnly, kPool, kPoolAndMeta, kNumberAndMeta };
struct NamedReply {
  Reply reply;
  const char* name;
};
constexpr std::array kPeers{
    NamedReply{Reply::kNone, "no-reply"}, NamedReply{Reply::kMetaOnly, "meta-only"},
    NamedReply{Reply::kPool, "pool"}, NamedReply{Reply::kPoolAndMeta, "pool-and-meta"},
    NamedReply{Reply::kNumberAndMeta, "number-and-meta"}};

enum class PoolOffer { kPlain, kWithMeta, kNumberOnly };

void add_pool(GstQuery* query, PoolOffer offer) {
  GstCaps* caps = nullptr;
  gst_query_parse_allocation(query, &caps, nullptr);
  GstVideoInfo info;
  if (caps == nullptr || !gst_video_info_from_caps(&info, caps)) return;
  if (offer == PoolOffer::kNumberOnly) {
    gst_query_add_allocation_pool(query, nullptr, guint(info.size), kHeld, 0);
    return;
  }
  GstBufferPool* pool = gst_video_buffer_pool_new();
  GstStructure* config = gst_buffer_pool_get_config(pool);
  gst_buffer_pool_config_set_params(config, caps, guint(info.size), kHeld, 0);
  if (offer == PoolOffer::kWithMeta)
    gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  gst_buffer_pool_set_config(pool, config);
  gst_query_add_allocation_pool(query, pool, guint(info.size), kHeld, 0);
  gst_object_unref(pool);
}

gboolean answer(GstAppSink*, GstQuery* query, gpointer reply) {
  switch (*static_cast<const Reply*>(reply)) {
    case Reply::kOurs:
      // Behind peninfer stands an element that reads the video meta, as all stock ones do that map
      // frames.
      gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
      gst::add_held_frames(query, kHeld, DeviceKind::kCpu);
      return TRUE;
    case Reply::kNone:
      return FALSE;
    case Reply::kMetaOnly:
      gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
      return TRUE;
    case Reply::kPool:
      add_pool(query, PoolOffer::kPlain);
      return TRUE;
    case Reply::kPoolAndMeta:
      add_pool(query, PoolOffer::kWithMeta);
      gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
      return TRUE;
    case Reply::kNumberAndMeta:
      add_pool(query, PoolOffer::kNumberOnly);
      gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
      return TRUE;
  }
  return FALSE;
}

void link_to(GstElement*, GstPad* pad, gpointer sink) {
  if (!gst_pad_is_linked(GST_PAD(sink))) gst_pad_link(pad, GST_PAD(sink));
}

struct Count {
  std::uint64_t decoded = 0;
  std::uint64_t copied = 0;
};

Result<Count> play(const fs::path& clip, Reply reply) {
  auto source = parse_source(clip.string());
  if (!source) return std::unexpected(source.error());
  const UpstreamCopies copies;
  auto decoder = make_decoder(*source);
  if (!decoder) return std::unexpected(decoder.error());
  GstElement* pipeline = gst_pipeline_new(nullptr);
  GstElement* sink = gst_element_factory_make("appsink", nullptr);
  g_object_set(sink, "sync", FALSE, "max-buffers", 1u, "drop", TRUE, "wait-on-eos", FALSE,
               "enable-last-sample", FALSE, nullptr);
  GstAppSinkCallbacks callbacks = {};
  callbacks.propose_allocation = answer;
  gst_app_sink_set_callbacks(GST_APP_SINK(sink), &callbacks, &reply, nullptr);
  gst_bin_add_many(GST_BIN(pipeline), *decoder, sink, nullptr);
  GstPad* pad = gst_element_get_static_pad(sink, "sink");
  g_signal_connect(*decoder, "pad-added", G_CALLBACK(link_to), pad);
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  GstBus* bus = gst_element_get_bus(pipeline);
  GstMessage* message = gst_bus_timed_pop_filtered(
      bus, 120 * GST_SECOND, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
  const bool ended = message != nullptr && GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS;
  if (message != nullptr) gst_message_unref(message);
  gst_object_unref(bus);
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(pad);
  gst_object_unref(pipeline);
  if (!ended) return fail(ErrorKind::kIo, "the clip does not play to its end");
  if (!copies.is_known()) {
    return fail(ErrorKind::kUnsupported, "its decoder is not one of libav's, or not one we know");
  }
  return Count{copies.decoded(), copies.copied()};
}

Result<void> measure(const fs::path& clip, BenchReport& report) {
  auto ours = play(clip, Reply::kOurs);
  if (!ours) return std::unexpected(std::move(ours).error().context(clip.string()));
  for (const NamedReply& peer : kPeers) {
    auto theirs = play(clip, peer.reply);
    if (!theirs) return std::unexpected(std::move(theirs).error().context(clip.string()));
    // One on both sides, since none is a figure here.
    report.add({.name = clip.filename().string(),
                .unit = "frames copied",
                .higher_is_better = false,
                .ours = double(ours->copied),
                .peer_name = peer.name,
                .peer = double(theirs->copied),
                .ratio = double(theirs->copied + 1) / double(ours->copied + 1),
                .bar = 1.0});
  }
  return {};
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  using namespace penstock;
  using namespace penstock::bench;
  CLI::App app("Frames that decoders copy, by ALLOCATION reply", "bench_allocation");
  std::string clip(kDefaultClip);
  std::string json = "build/bench/allocation.json";
  app.add_option("--clip", clip, "The clip")->capture_default_str();
  app.add_option("--json", json, "Where the results go")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  gst_init(nullptr, nullptr);
  BenchReport report("allocation");
  auto done = [&]() -> Result<void> {
    auto h264 = h264_of(clip, fs::absolute(json).parent_path());
    if (!h264) return std::unexpected(h264.error());
    PENSTOCK_TRY(measure(clip, report));
    return measure(*h264, report);
  }();
  if (!done) {
    std::fprintf(stderr, "bench allocation: %s\n", done.error().message().c_str());
    return 1;
  }
  return report.finish(json) ? 0 : 1;
}
