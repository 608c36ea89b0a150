// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/run_probes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/base/str_format.h"

namespace penstock {

namespace {

PassingFrame passing(GstBuffer* buffer) {
  // GST_CLOCK_TIME_NONE is -1.
  return {.pts_ns = std::int64_t(GST_BUFFER_PTS(buffer)),
          .memory = gst_buffer_n_memory(buffer) > 0 ? gst_buffer_peek_memory(buffer, 0) : nullptr};
}

using PacketCount = std::shared_ptr<std::atomic<std::uint64_t>>;

void free_count(gpointer count) { delete static_cast<PacketCount*>(count); }

GstPadProbeReturn count_packet(GstPad*, GstPadProbeInfo*, gpointer count) {
  ++**static_cast<PacketCount*>(count);
  return GST_PAD_PROBE_OK;
}

void count_packets(GstElement*, GstPad* pad, gpointer count) {
  if (GST_PAD_DIRECTION(pad) != GST_PAD_SRC) return;
  gst_pad_add_probe(pad,
                    GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST),
                    count_packet, new PacketCount(*static_cast<PacketCount*>(count)), free_count);
}

/// Counts what leaves the camera's element, before it is decoded.
void watch_packets(GstElement* input, const PacketCount& count) {
  GstElement* source = GST_IS_BIN(input) ? gst_bin_get_by_name(GST_BIN(input), "source") : nullptr;
  if (source == nullptr) return;
  g_signal_connect_data(
      source, "pad-added", G_CALLBACK(count_packets), new PacketCount(count),
      [](gpointer data, GClosure*) { free_count(data); }, GConnectFlags(0));
  gst_object_unref(source);
}

}  // namespace

/// Before the other probes: some give frames new times.
void RunProbes::time_stages() {
  for (GstElement* element : graph_.stages()) {
    LatencyBook::Stage* const stage = latency_.stage(GST_ELEMENT_NAME(element));
    // Of an earlier run.
    latency_.forget(stage);
    Timed& timed = timed_.emplace_back(Timed{this, stage});
    for (const auto& [name, probe] :
         {std::pair{"sink", on_stage_in}, std::pair{"src", on_stage_out}}) {
      GstPad* pad = gst_element_get_static_pad(element, name);
      gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, probe, &timed, nullptr);
      gst_object_unref(pad);
    }
  }
}

GstPadProbeReturn RunProbes::on_stage_in(GstPad*, GstPadProbeInfo* info, gpointer stage) {
  const Timed& timed = *static_cast<const Timed*>(stage);
  const RunOptions& options = timed.probes->options_;
  timed.probes->latency_.arrive(timed.stage, passing(GST_PAD_PROBE_INFO_BUFFER(info)),
                                options.name.empty() ? options.source.text : options.name);
  return GST_PAD_PROBE_OK;
}

GstPadProbeReturn RunProbes::on_stage_out(GstPad*, GstPadProbeInfo* info, gpointer stage) {
  const Timed& timed = *static_cast<const Timed*>(stage);
  timed.probes->latency_.leave(timed.stage, passing(GST_PAD_PROBE_INFO_BUFFER(info)));
  return GST_PAD_PROBE_OK;
}

void RunProbes::install() {
  time_stages();
  watch_packets(graph_.input(), received_);
  GstElement* infer = graph_.infer();
  if (g_object_class_find_property(G_OBJECT_GET_CLASS(infer), "interval") != nullptr) {
    guint interval = 1;
    g_object_get(infer, "interval", &interval, nullptr);
    may_pass_ = interval > 1;
  }
  gst_pad_add_probe(graph_.head(), GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_head_event, this,
                    nullptr);
  gst_pad_add_probe(graph_.head(), GST_PAD_PROBE_TYPE_BUFFER, on_head_buffer, this, nullptr);
  gst_pad_add_probe(graph_.head(), GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, on_head_query, this,
                    nullptr);
  gst_pad_add_probe(graph_.infer_sink(), GST_PAD_PROBE_TYPE_BUFFER, on_accepted, this, nullptr);
  gst_pad_add_probe(
      graph_.analysed_src(),
      GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM), on_analysed,
      this, nullptr);
  if (graph_.drawn() != nullptr) {
    gst_pad_add_probe(
        graph_.drawn(),
        GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM), on_drawn,
        this, nullptr);
  }
}

bool RunProbes::is_taking() const {
  // A pad holds its stream lock until its element has taken what came. It comes before the probe
  // that counts, so that a frame is seen by one or the other.
  if (!GST_PAD_STREAM_TRYLOCK(graph_.head())) return true;
  GST_PAD_STREAM_UNLOCK(graph_.head());
  return false;
}

void RunProbes::fail(Error error, RunPart part) {
  record_.fail(std::move(error), part);
  post("penstock-failed");
}

void RunProbes::post(const char* name) {
  gst_element_post_message(
      graph_.pipeline(),
      gst_message_new_application(GST_OBJECT(graph_.pipeline()), gst_structure_new_empty(name)));
}

GstPadProbeReturn RunProbes::on_head_event(GstPad*, GstPadProbeInfo* info, gpointer self) {
  GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
  if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return GST_PAD_PROBE_OK;
  GstCaps* caps = nullptr;
  gst_event_parse_caps(event, &caps);
  RunProbes& probes = *static_cast<RunProbes*>(self);
  probes.refused_ = probes.refused_ || !probes.take_caps(caps);
  if (!probes.refused_) return GST_PAD_PROBE_OK;
  // Taken, not dropped: a pad sends a dropped sticky event again for ever.
  gst_event_unref(event);
  GST_PAD_PROBE_INFO_DATA(info) = nullptr;
  return GST_PAD_PROBE_HANDLED;
}

/// Lets a decoder settle on whatever the clip holds: its caps event then comes to on_head_event,
/// which says in a user's words what is wrong with it. Negotiation alone would end in
/// "not-negotiated". What the pipeline really takes stays first, so a decoder with a choice takes
/// it.
GstPadProbeReturn RunProbes::on_head_query(GstPad*, GstPadProbeInfo* info, gpointer) {
  GstQuery* query = GST_PAD_PROBE_INFO_QUERY(info);
  if (GST_QUERY_TYPE(query) == GST_QUERY_ACCEPT_CAPS) {
    if ((GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_PUSH) == 0) return GST_PAD_PROBE_OK;
    gst_query_set_accept_caps_result(query, TRUE);
    return GST_PAD_PROBE_HANDLED;
  }
  if (GST_QUERY_TYPE(query) != GST_QUERY_CAPS ||
      (GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_PULL) == 0) {
    return GST_PAD_PROBE_OK;
  }
  GstCaps* taken = nullptr;
  gst_query_parse_caps_result(query, &taken);
  GstCaps* any = gst_caps_new_empty_simple("video/x-raw");
  GstCaps* filter = nullptr;
  gst_query_parse_caps(query, &filter);
  if (filter != nullptr) {
    GstCaps* filtered = gst_caps_intersect_full(filter, any, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(any);
    any = filtered;
  }
  GstCaps* answer = gst_caps_merge(gst_caps_copy(taken), any);
  gst_query_set_caps_result(query, answer);
  gst_caps_unref(answer);
  return GST_PAD_PROBE_OK;
}

GstPadProbeReturn RunProbes::on_head_buffer(GstPad*, GstPadProbeInfo* info, gpointer self) {
  auto& probes = *static_cast<RunProbes*>(self);
  ++probes.arrived_;
  if (!probes.refused_) return GST_PAD_PROBE_OK;
  gst_buffer_unref(GST_PAD_PROBE_INFO_BUFFER(info));
  GST_PAD_PROBE_INFO_DATA(info) = nullptr;
  GST_PAD_PROBE_INFO_FLOW_RETURN(info) = GST_FLOW_NOT_NEGOTIATED;
  return GST_PAD_PROBE_HANDLED;
}

bool RunProbes::take_caps(GstCaps* caps) {
  auto intake = intake_of(caps);
  auto shape = shape_of(caps);
  if (!intake || !shape) {
    Error error = !intake ? std::move(intake).error() : std::move(shape).error();
    fail(std::move(error).context(str_format("source '{}'", options_.source.text)),
         RunPart::kSource);
    return false;
  }
  if (*intake == Intake::kConvert) {
    if (!options_.convert) {
      fail(Error(ErrorKind::kUnsupported,
                 str_format("source '{}': pixel format {} needs a convert stage, which "
                            "costs a copy of every frame; allow it with --convert",
                            options_.source.text, shape->format)),
           RunPart::kSource);
      return false;
    }
    plan(str_format("plan: a convert stage makes I420 of the decoder's {}", shape->format));
    record_.set_converting();
  }
  const VideoShape previous = record_.shape();
  if (previous.width != 0 && !options_.video.empty() &&
      (previous.width != shape->width || previous.height != shape->height)) {
    fail(Error(ErrorKind::kUnsupported,
               str_format("source '{}': the picture size changes from {}x{} to {}x{}, and one MP4 "
                          "holds one size; leave out --out video= to analyse it all",
                          options_.source.text, previous.width, previous.height, shape->width,
                          shape->height)),
         RunPart::kSource);
    return false;
  }
  auto line = graph_.prepare_video(*shape);
  if (!line) {
    fail(std::move(line).error(), RunPart::kPipeline);
    return false;
  }
  plan(*line);
  if (previous.width == 0) sample_pictures(*shape);
  record_.set_shape(*shape);
  return true;
}

void RunProbes::plan(const std::string& line) {
  if (!line.empty() && options_.on_plan) options_.on_plan(line);
}

void RunProbes::sample_pictures(const VideoShape& shape) {
  if (options_.report.empty()) return;
  gint64 duration = -1;
  gst_element_query_duration(graph_.pipeline(), GST_FORMAT_TIME, &duration);
  const double frames =
      duration > 0 ? std::floor(double(duration) / GST_SECOND * shape.frame_rate) : 0;
  pictures_ = std::make_unique<PictureSampler>(std::uint64_t(frames));
}

GstPadProbeReturn RunProbes::on_accepted(GstPad*, GstPadProbeInfo* info, gpointer self) {
  RunProbes& probes = *static_cast<RunProbes*>(self);
  GstBuffer* buffer = GST_PAD_PROBE_INFO_BUFFER(info);
  // GST_CLOCK_TIME_NONE becomes negative.
  if (probes.record_.accept(gst_buffer_get_size(buffer), std::int64_t(GST_BUFFER_PTS(buffer)),
                            std::int64_t(GST_BUFFER_DURATION(buffer)))) {
    log("pipeline").info("first frame of '{}'", probes.options_.source.text);
  }
  return GST_PAD_PROBE_OK;
}

GstPadProbeReturn RunProbes::on_analysed(GstPad* pad, GstPadProbeInfo* info, gpointer self) {
  RunProbes& probes = *static_cast<RunProbes*>(self);
  if ((GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_BUFFER) != 0) {
    probes.take_frame(pad, GST_PAD_PROBE_INFO_BUFFER(info));
  } else if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_EOS) {
    probes.post(kAnalysed);
  }
  return GST_PAD_PROBE_OK;
}

void RunProbes::take_frame(GstPad* pad, GstBuffer* buffer) {
  std::optional<FrameReading> reading =
      options_.read_frame ? options_.read_frame(buffer) : std::nullopt;
  if (!may_pass_ && (!reading || reading->times == nullptr)) {
    fail(Error(ErrorKind::kInternal, "peninfer passed a frame on without an analysis"),
         RunPart::kPipeline);
    return;
  }
  if (!reading) {
    if (options_.on_pass) options_.on_pass();
    record_.pass();
  } else if (tell(pad, buffer, *reading) && reading->times == nullptr) {
    record_.pass();
  }
}

bool RunProbes::tell(GstPad* pad, GstBuffer* buffer, const FrameReading& reading) {
  FrameResult result = *reading.result;
  result.source = options_.source.text;
  const std::uint64_t number = record_.frames();
  result.frame = number;
  if (result.pts_ns >= 0) {
    json_times_.set_rate(record_.shape().frame_rate);
    result.pts_ns =
        std::int64_t(json_times_.complete(GstClockTime(result.pts_ns), GST_CLOCK_TIME_NONE).pts);
  }
  if (outputs_.json() != nullptr) {
    if (auto written = outputs_.json()->write(result); !written) {
      fail(std::move(written).error(), RunPart::kOutputWrite);
      return false;
    }
  }
  if (pictures_ != nullptr && pictures_->wants(number)) {
    GstCaps* caps = gst_pad_get_current_caps(pad);
    pictures_->add(buffer, caps, result);
    gst_caps_unref(caps);
  }
  if (options_.on_frame) options_.on_frame(result);
  if (reading.times != nullptr) record_.add(result, *reading.times);
  return true;
}

GstPadProbeReturn RunProbes::on_drawn(GstPad*, GstPadProbeInfo* info, gpointer self) {
  RunProbes& probes = *static_cast<RunProbes*>(self);
  if ((GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_BUFFER) == 0) {
    GST_PAD_PROBE_INFO_DATA(info) = probes.note_timing(GST_PAD_PROBE_INFO_EVENT(info));
    return GST_PAD_PROBE_OK;
  }
  GstBuffer* buffer = GST_PAD_PROBE_INFO_BUFFER(info);
  ++probes.drawn_frames_;
  GST_PAD_PROBE_INFO_DATA(info) = probes.complete_times(buffer);
  return GST_PAD_PROBE_OK;
}

GstEvent* RunProbes::note_timing(GstEvent* event) {
  if (GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) {
    const GstSegment* segment = nullptr;
    gst_event_parse_segment(event, &segment);
    if (segment->format == GST_FORMAT_TIME) times_.set_start(segment->start);
    return event;
  }
  if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return event;
  GstCaps* caps = nullptr;
  gst_event_parse_caps(event, &caps);
  const auto shape = shape_of(caps);
  if (!shape) return event;
  times_.set_rate(shape->frame_rate);
  if (shape->frame_rate > 0) return event;
  // Without a rate openh264enc plans for 0 frames a second, and its buffers are then too small for
  // a frame that compresses badly. The times of the MP4 stay those of the frames.
  GstCaps* timed = gst_caps_copy(caps);
  gst_caps_set_simple(timed, "framerate", GST_TYPE_FRACTION, kAssumedFrameRate, 1, nullptr);
  GstEvent* with_rate = gst_event_new_caps(timed);
  gst_event_set_seqnum(with_rate, gst_event_get_seqnum(event));
  gst_caps_unref(timed);
  gst_event_unref(event);
  return with_rate;
}

GstBuffer* RunProbes::complete_times(GstBuffer* buffer) {
  const FrameTimes::Time time =
      times_.complete(GST_BUFFER_PTS(buffer), GST_BUFFER_DURATION(buffer));
  if (time.pts == GST_BUFFER_PTS(buffer) && time.duration == GST_BUFFER_DURATION(buffer)) {
    return buffer;
  }
  if (time.pts != GST_BUFFER_PTS(buffer) && !std::exchange(untimed_, true)) {
    plan(str_format("plan: frames come without times; the video output shows {:g} a second",
                    double(GST_SECOND) / double(time.duration)));
  }
  buffer = gst_buffer_make_writable(buffer);
  GST_BUFFER_PTS(buffer) = time.pts;
  GST_BUFFER_DURATION(buffer) = time.duration;
  return buffer;
}

}  // namespace penstock
