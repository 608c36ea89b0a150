// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/run_graph.h"

#include <gst/video/video.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/pipeline/element_search.h"
#include "penstock/pipeline/input_close.h"
#include "penstock/pipeline/source.h"

namespace penstock {
namespace {

// openh264's default of 128 kbit/s smears a street scene; 0.2 bits a pixel keeps labels readable.
constexpr double kBitsPerPixel = 0.2;

/// For a camera's last words.
constexpr Nanoseconds kInputCloseTimeout = std::chrono::seconds(3);

void link_decoded(GstElement*, GstPad* pad, gpointer head) {
  if (!gst_pad_is_linked(GST_PAD(head))) gst_pad_link(pad, GST_PAD(head));
}

// fakesink answers no ALLOCATION query, and decoders copy every frame for a reader that says
// nothing of the video meta (`./dev bench allocation`). The frames that end here are read by
// Penstock only, which goes by it.
GstPadProbeReturn answer_video_meta(GstPad*, GstPadProbeInfo* info, gpointer) {
  GstQuery* query = GST_PAD_PROBE_INFO_QUERY(info);
  if (GST_QUERY_TYPE(query) != GST_QUERY_ALLOCATION) return GST_PAD_PROBE_OK;
  gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
  return GST_PAD_PROBE_HANDLED;
}

// The encoder's frames are what penwatermark took the decoder's for: neither file says what its
// levels mean in a way that every player heeds, so that they had better mean the same.
GstPadProbeReturn keep_colors(GstPad*, GstPadProbeInfo* info, gpointer format) {
  GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
  if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return GST_PAD_PROBE_OK;
  GstCaps* caps = nullptr;
  gst_event_parse_caps(event, &caps);
  const GstStructure* fields = gst_caps_get_structure(caps, 0);
  const gchar* color = gst_structure_get_string(fields, "colorimetry");
  const gchar* site = gst_structure_get_string(fields, "chroma-site");
  GstCaps* wanted =
      gst_caps_new_simple("video/x-raw", "format", G_TYPE_STRING, "I420", "colorimetry",
                          G_TYPE_STRING, color != nullptr ? color : GST_VIDEO_COLORIMETRY_BT709,
                          "chroma-site", G_TYPE_STRING, site != nullptr ? site : "mpeg2", nullptr);
  g_object_set(format, "caps", wanted, nullptr);
  gst_caps_unref(wanted);
  return GST_PAD_PROBE_OK;
}

Result<void> link(GstElement* from, GstElement* to) {
  if (gst_element_link(from, to)) return {};
  return fail(ErrorKind::kInternal,
              str_format("cannot link {} to {}", GST_ELEMENT_NAME(from), GST_ELEMENT_NAME(to)));
}

Result<GstElement*> add(GstElement* bin, const char* factory, const char* name) {
  auto element = make_element(factory, name);
  if (element) gst_bin_add(GST_BIN(bin), *element);
  return element;
}

// OpenH264's own limits, which it tells in a log line of its own and GStreamer as "not-negotiated".
constexpr int kLeastEncodedSide = 16;
constexpr std::int64_t kMostEncodedPixels = std::int64_t{36864} * 256;

Result<void> check_encoder(const VideoShape& shape) {
  const std::int64_t pixels = std::int64_t{shape.width} * shape.height;
  if (shape.width >= kLeastEncodedSide && shape.height >= kLeastEncodedSide &&
      pixels <= kMostEncodedPixels) {
    return {};
  }
  return fail(
      ErrorKind::kUnsupported,
      str_format("pictures of {}x{} can't be encoded as H.264, which takes sides from {} and "
                 "at most {} pixels; leave out --out video=",
                 shape.width, shape.height, kLeastEncodedSide, kMostEncodedPixels));
}

}  // namespace

ElementSettings infer_settings(const RunOptions& options) {
  ElementSettings infer{"peninfer", "infer"};
  infer.properties = {
      {"model", options.model.string()}, {"device", options.device}, {"policy", options.policy}};
  if (options.threshold) {
    infer.properties.emplace_back("threshold", str_format("{}", *options.threshold));
  }
  if (options.iou_threshold) {
    infer.properties.emplace_back("iou-threshold", str_format("{}", *options.iou_threshold));
  }
  infer.properties.insert(infer.properties.end(), options.properties.begin(),
                          options.properties.end());
  return infer;
}

RunGraph::~RunGraph() {
  if (pipeline_ == nullptr) return;
  gst_element_set_state(pipeline_, GST_STATE_NULL);
  for (GstPad* pad : {head_, infer_sink_, analysed_src_, drawn_}) {
    if (pad != nullptr) gst_object_unref(pad);
  }
  gst_object_unref(pipeline_);
}

bool RunGraph::close(const Source& source, Clock& clock) {
  GstElement* input = std::exchange(input_, nullptr);
  if (!is_camera(source) || input == nullptr) {
    gst_element_set_state(pipeline_, GST_STATE_NULL);
    return true;
  }
  g_signal_handlers_disconnect_by_data(input, head_);
  return close_with_input(pipeline_, input, clock, kInputCloseTimeout);
}

Result<std::unique_ptr<RunGraph>> RunGraph::build(const RunOptions& options) {
  std::unique_ptr<RunGraph> graph(new RunGraph);
  graph->pipeline_ = gst_pipeline_new("run");
  gst_object_ref_sink(graph->pipeline_);
  PENSTOCK_TRY(graph->add_infer(options));
  PENSTOCK_TRY(graph->add_behind(options));
  if (options.video.empty()) {
    auto end = add(graph->pipeline_, "fakesink", "end");
    if (!end) return std::unexpected(std::move(end).error());
    // Without preroll, like filesink below: an error before the first frame ends the change to
    // PLAYING, and a sink that prerolls would keep the EOS behind it for ever.
    g_object_set(*end, "sync", FALSE, "async", FALSE, "enable-last-sample", FALSE, nullptr);
    GstPad* sink = gst_element_get_static_pad(*end, "sink");
    gst_pad_add_probe(sink, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, answer_video_meta, nullptr,
                      nullptr);
    gst_object_unref(sink);
    PENSTOCK_TRY(link(graph->analysed_, *end));
  } else {
    PENSTOCK_TRY(graph->add_video(options));
  }
  PENSTOCK_TRY(graph->add_input(options));
  if (options.on_built) options.on_built(graph->pipeline_);
  return graph;
}

Result<void> RunGraph::add_infer(const RunOptions& options) {
  auto infer = add_element(GST_BIN(pipeline_), infer_settings(options));
  if (!infer) return std::unexpected(std::move(infer).error());
  infer_ = *infer;
  stages_.push_back(infer_);
  infer_sink_ = gst_element_get_static_pad(infer_, "sink");
  return {};
}

Result<void> RunGraph::add_behind(const RunOptions& options) {
  analysed_ = infer_;
  for (const ElementSettings& settings : options.behind) {
    auto element = add_element(GST_BIN(pipeline_), settings);
    if (!element) return std::unexpected(std::move(element).error());
    PENSTOCK_TRY(link(analysed_, *element));
    analysed_ = *element;
    stages_.push_back(analysed_);
  }
  analysed_src_ = gst_element_get_static_pad(analysed_, "src");
  return {};
}

Result<void> RunGraph::add_input(const RunOptions& options) {
  GstElement* first = infer_;
  if (options.convert) {
    auto convert = add(pipeline_, "videoconvert", "convert");
    if (!convert) return std::unexpected(std::move(convert).error());
    auto filter = add(pipeline_, "capsfilter", "convert-filter");
    if (!filter) return std::unexpected(std::move(filter).error());
    gst_util_set_object_arg(G_OBJECT(*filter), "caps",
                            "video/x-raw, format=(string){ I420, NV12 }");
    PENSTOCK_TRY(link(*convert, *filter));
    PENSTOCK_TRY(link(*filter, infer_));
    first = *convert;
  }
  head_ = gst_element_get_static_pad(first, "sink");
  auto decoder = make_decoder(options.source);
  if (!decoder) return std::unexpected(std::move(decoder).error());
  input_ = *decoder;
  gst_object_set_name(GST_OBJECT(input_), "input");
  gst_bin_add(GST_BIN(pipeline_), input_);
  if (options.source.kind == SourceKind::kElement) return link(input_, first);
  g_signal_connect(input_, "pad-added", G_CALLBACK(link_decoded), head_);
  return {};
}

Result<void> RunGraph::add_video(const RunOptions& options) {
  video_ = gst_bin_new("video");
  gst_bin_add(GST_BIN(pipeline_), video_);
  struct Part {
    GstElement** element;
    const char* factory;
    const char* name;
  };
  GstElement* parse = nullptr;
  GstElement* mux = nullptr;
  GstElement* file = nullptr;
  GstElement* convert = nullptr;
  GstElement* format = nullptr;
  for (const Part& part :
       {Part{&overlay_, "penwatermark", "draw"}, Part{&convert, "videoconvert", "draw-convert"},
        Part{&format, "capsfilter", "draw-format"}, Part{&encoder_, "openh264enc", "encode"},
        Part{&parse, "h264parse", "parse"}, Part{&mux, "mp4mux", "mux"},
        Part{&file, "filesink", "file"}}) {
    auto element = add(video_, part.factory, part.name);
    if (!element) return std::unexpected(std::move(element).error());
    *part.element = *element;
  }
  for (GstElement* stage : {overlay_, convert, encoder_}) stages_.push_back(stage);
  // One encoder thread, for the reason the decoder has one.
  g_object_set(encoder_, "multi-thread", 1u, "gop-size", 60u, nullptr);
  gst_util_set_object_arg(G_OBJECT(encoder_), "complexity", "low");
  gst_util_set_object_arg(G_OBJECT(encoder_), "rate-control", "bitrate");
  g_object_set(file, "location", options.video.c_str(), "sync", FALSE, "async", FALSE, nullptr);
  PENSTOCK_TRY(set_property(overlay_, "device", options.device));
  // What is counted is shown.
  for (const ElementSettings& settings : options.behind) {
    if (settings.factory != "penzone") continue;
    for (const auto& [name, value] : settings.properties) {
      if (name == "zones" || name == "lines") PENSTOCK_TRY(set_property(overlay_, name, value));
    }
  }
  PENSTOCK_TRY(link(overlay_, convert));
  PENSTOCK_TRY(link(convert, format));
  PENSTOCK_TRY(link(format, encoder_));
  PENSTOCK_TRY(link(encoder_, parse));
  PENSTOCK_TRY(link(parse, mux));
  PENSTOCK_TRY(link(mux, file));
  GstPad* sink = gst_element_get_static_pad(overlay_, "sink");
  gst_pad_add_probe(sink, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, keep_colors, format, nullptr);
  GstPad* ghost = gst_ghost_pad_new("sink", sink);
  gst_pad_set_element_private(ghost, this);
  gst_pad_set_chain_function(ghost, chain_video);
  gst_element_add_pad(video_, ghost);
  gst_object_unref(sink);
  drawn_ = gst_element_get_static_pad(overlay_, "src");
  return link(analysed_, video_);
}

GstFlowReturn RunGraph::chain_video(GstPad* pad, GstObject* parent, GstBuffer* buffer) {
  RunGraph& graph = *static_cast<RunGraph*>(gst_pad_get_element_private(pad));
  if (graph.video_lost_) {
    gst_buffer_unref(buffer);
    return GST_FLOW_OK;
  }
  const GstFlowReturn flow = gst_proxy_pad_chain_default(pad, parent, buffer);
  if (flow == GST_FLOW_OK) return flow;
  graph.video_lost_ = true;
  // A muxer that failed flushes its pads after it has said why; so does the end of the run.
  if (flow == GST_FLOW_FLUSHING) return GST_FLOW_OK;
  gst_element_post_message(
      graph.pipeline_,
      gst_message_new_application(GST_OBJECT(graph.pipeline_),
                                  gst_structure_new(kVideoLost, "reason", G_TYPE_STRING,
                                                    gst_flow_get_name(flow), nullptr)));
  return GST_FLOW_OK;
}

Result<std::string> RunGraph::prepare_video(const VideoShape& shape) {
  if (video_ == nullptr) return std::string();
  PENSTOCK_TRY(check_encoder(shape));
  const double rate = shape.frame_rate > 0 ? shape.frame_rate : kAssumedFrameRate;
  const double bits = kBitsPerPixel * shape.width * shape.height * rate;
  g_object_set(encoder_, "bitrate", guint(std::clamp(bits, 500e3, 50e6)), nullptr);
  if (std::exchange(has_planned_video_, true)) return std::string();
  return std::string(
      "plan: the video output is drawn on BGRA copies of the frames, which are converted to I420 "
      "for the encoder (draw-convert)");
}

GstElement* RunGraph::find_in_input(GstElementFactoryListType types) const {
  if (!GST_IS_BIN(input_)) return nullptr;
  return find_last(gst_bin_iterate_recurse(GST_BIN(input_)), [types](GstElement* element) {
    GstElementFactory* factory = gst_element_get_factory(element);
    return !GST_IS_BIN(element) && factory != nullptr &&
           gst_element_factory_list_is_type(factory, types);
  });
}

std::string RunGraph::decoder_name() const {
  GstElement* decoder =
      find_in_input(GST_ELEMENT_FACTORY_TYPE_DECODER | GST_ELEMENT_FACTORY_TYPE_MEDIA_VIDEO);
  if (decoder == nullptr) return {};
  const std::string name = GST_OBJECT_NAME(gst_element_get_factory(decoder));
  gst_object_unref(decoder);
  return name;
}

std::int64_t RunGraph::stated_duration() const {
  GstElement* demuxer = find_in_input(GST_ELEMENT_FACTORY_TYPE_DEMUXER);
  if (demuxer == nullptr) return -1;
  // Those whose files hold their length. Others (MPEG-TS, MPEG-PS) reckon it from the size and the
  // bit rate, which is no word of the container.
  const std::string_view name = GST_OBJECT_NAME(gst_element_get_factory(demuxer));
  const bool states = name == "qtdemux" || name == "matroskademux" || name == "avidemux" ||
                      name == "flvdemux" || name == "asfdemux";
  gint64 duration = -1;
  if (!states || !gst_element_query_duration(demuxer, GST_FORMAT_TIME, &duration)) duration = -1;
  gst_object_unref(demuxer);
  return duration;
}

}  // namespace penstock
