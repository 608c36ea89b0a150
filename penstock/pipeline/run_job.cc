// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/run_job.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <deque>
#include <format>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "penstock/base/deadline.h"
#include "penstock/base/log.h"
#include "penstock/pipeline/bus_error.h"
#include "penstock/pipeline/frame_times.h"
#include "penstock/pipeline/picture_sampler.h"
#include "penstock/pipeline/run_graph.h"
#include "penstock/pipeline/run_outputs.h"
#include "penstock/pipeline/upstream_copies.h"

namespace penstock {
namespace {

// How long outputs may take to close after the run was told to end.
constexpr Nanoseconds kCloseTimeout = std::chrono::seconds(20);
constexpr std::size_t kMaxNotes = 16;

// Of all threads of the process. A measure of work, not of an interval, so not the Clock's
// business.
Nanoseconds process_cpu_time() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + Nanoseconds(used.tv_nsec);
}

class RunJob {
 public:
  explicit RunJob(const RunOptions& options)
      : options_(options),
        files_(options.files != nullptr ? *options.files : FileOps::system()),
        clock_(options.clock != nullptr ? *options.clock : Clock::system()) {}

  RunOutcome execute() {
    started_ = clock_.now();
    describe();
    auto outputs = RunOutputs::open(options_, files_, clock_);
    if (!outputs) {
      fail_run(std::move(outputs).error(), RunPart::kOutputCreate);
    } else {
      outputs_ = std::move(*outputs);
      if (start()) loop();
    }
    finish();
    return std::move(outcome_);
  }

 private:
  // ---- set-up and end, on the caller's thread

  void describe() {
    RunSummary& summary = outcome_.summary;
    summary.source = options_.source.text;
    summary.model = options_.model_name;
    summary.licence = options_.licence;
    summary.device = options_.device;
    summary.policy = options_.policy;
    summary.threshold = options_.threshold.value_or(0);
  }

  bool start() {
    upstream_ = std::make_unique<UpstreamCopies>();
    auto graph = RunGraph::build(options_);
    if (!graph) {
      fail_run(std::move(graph).error(), RunPart::kPipeline);
      return false;
    }
    graph_ = std::move(*graph);
    bus_ = gst_element_get_bus(graph_->pipeline());
    gst_pad_add_probe(graph_->head(), GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_head_event, this,
                      nullptr);
    gst_pad_add_probe(graph_->head(), GST_PAD_PROBE_TYPE_BUFFER, on_head_buffer, this, nullptr);
    gst_pad_add_probe(graph_->head(), GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, on_head_query, this,
                      nullptr);
    gst_pad_add_probe(graph_->infer_sink(), GST_PAD_PROBE_TYPE_BUFFER, on_accepted, this, nullptr);
    gst_pad_add_probe(graph_->infer_src(), GST_PAD_PROBE_TYPE_BUFFER, on_analysed, this, nullptr);
    if (graph_->drawn() != nullptr) {
      gst_pad_add_probe(
          graph_->drawn(),
          GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
          on_drawn, this, nullptr);
    }
    // READY loads the model; apart from PLAYING, so that its failure is told from the source's.
    if (gst_element_set_state(graph_->pipeline(), GST_STATE_READY) == GST_STATE_CHANGE_FAILURE) {
      fail_from_bus(RunPart::kModel);
      return false;
    }
    playing_ = true;
    if (gst_element_set_state(graph_->pipeline(), GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) {
      fail_from_bus(RunPart::kPipeline);
      return false;
    }
    log("pipeline").info("waiting for '{}'", options_.source.text);
    return true;
  }

  void finish() {
    if (graph_ != nullptr) {
      if (options_.read_ledger) outcome_.summary.ledger = options_.read_ledger(graph_->infer());
      outcome_.summary.outside.decoder = graph_->decoder_name();
      // NULL unblocks whatever still waits inside the pipeline, the closing thread too.
      gst_element_set_state(graph_->pipeline(), GST_STATE_NULL);
    }
    if (closer_.joinable()) closer_.join();
    if (bus_ != nullptr) gst_object_unref(bus_);
    graph_.reset();
    count_outside();
    if (outputs_ != nullptr) close_outputs();
    const std::lock_guard lock(mutex_);
    outcome_.error = std::move(error_);
    outcome_.failed = failed_;
  }

  void count_outside() {
    OutsideCopies& outside = outcome_.summary.outside;
    outside.drawn = drawn_copies_;
    if (upstream_ != nullptr) {
      outside.upstream_known = upstream_->decoded() > 0;
      outside.upstream = upstream_->copied();
    }
    if (converted_bytes_ > 0) {
      outcome_.summary.ledger.push_back(
          {CopyClass::kFrame, "convert", outcome_.summary.frames, converted_bytes_});
    }
    if (pictures_ != nullptr) outside.pictures = pictures_->copies();
  }

  void close_outputs() {
    if (auto closed = outputs_->close_json(); !closed) {
      fail_run(std::move(closed).error(), RunPart::kOutputWrite);
    }
    outputs_->remove_empty_video();
    if (!outputs_->wants_report()) return;
    if (pictures_ != nullptr) {
      auto pictures = pictures_->encode();
      if (pictures) {
        outcome_.summary.pictures = std::move(*pictures);
      } else {
        note(pictures.error().message());
      }
    }
    if (auto written = outputs_->write_report(outcome_.summary); !written) {
      fail_run(std::move(written).error(), RunPart::kOutputWrite);
    }
  }

  // ---- failure, from any thread

  void fail_run(Error error, RunPart part) {
    const std::lock_guard lock(mutex_);
    if (error_) return;
    error_ = std::move(error);
    failed_ = part;
  }

  bool has_failed() {
    const std::lock_guard lock(mutex_);
    return error_.has_value();
  }

  /// From a streaming thread: fail and let the loop know.
  void fail_streaming(Error error, RunPart part) {
    fail_run(std::move(error), part);
    gst_element_post_message(graph_->pipeline(), gst_message_new_application(
                                                     GST_OBJECT(graph_->pipeline()),
                                                     gst_structure_new_empty("penstock-failed")));
  }

  void fail_from_bus(RunPart part) {
    while (GstMessage* message = gst_bus_pop_filtered(bus_, GST_MESSAGE_ERROR)) {
      take_error(message);
      gst_message_unref(message);
    }
    fail_run(Error(ErrorKind::kDevice, "the pipeline does not start and does not say why"), part);
  }

  /// True when nothing can be closed any more.
  bool take_error(GstMessage* message) {
    BusError error = read_bus_error(message, options_.source.text, options_.video.string());
    if (error.part == RunPart::kSource && !missing_decoder_.empty()) {
      error.error =
          Error(ErrorKind::kUnsupported, std::format("source '{}': no decoder for {} is installed",
                                                     options_.source.text, missing_decoder_));
      error.part = RunPart::kPipeline;
    }
    // Once it runs, peninfer refuses nothing but the video's caps.
    if (playing_ && error.part == RunPart::kModel &&
        error.error.kind() == ErrorKind::kUnsupported) {
      // take_caps() says it better and in the same moment; this is kept for what it lets through.
      error.part = RunPart::kSource;
      if (!refusal_) refusal_ = std::move(error);
      return false;
    }
    if (error.part == RunPart::kSource && refusal_) error = *std::exchange(refusal_, std::nullopt);
    // Behind a failed output nothing drains; behind a failed input everything does.
    const bool dead_end = error.part == RunPart::kOutputWrite ||
                          error.part == RunPart::kOutputCreate ||
                          (closing_ && error.part != RunPart::kSource);
    fail_run(std::move(error.error), error.part);
    return dead_end;
  }

  // ---- the loop

  void loop() {
    Deadline close_by = Deadline::never();
    bool ended = false;
    while (!ended) {
      pollfd fds[2] = {};
      gst_bus_get_pollfd(bus_, &bus_poll_);
      fds[0] = {bus_poll_.fd, POLLIN, 0};
      fds[1] = {options_.stop_fd, POLLIN, 0};
      const bool watch_stop = options_.stop_fd >= 0 && !outcome_.stopped;
      ::poll(fds, watch_stop ? 2 : 1, 200);
      if (watch_stop && (fds[1].revents & POLLIN) != 0) outcome_.stopped = true;
      while (!ended) {
        GstMessage* message = gst_bus_pop(bus_);
        if (message == nullptr) break;
        ended = handle(message);
        gst_message_unref(message);
      }
      if (ended) break;
      if ((outcome_.stopped || has_failed()) && !closing_) {
        // Before the first frame there is nothing to drain, and EOS would overtake stream-start.
        if (!close_streams()) break;
        close_by = Deadline::after(clock_, kCloseTimeout);
      }
      if (close_by.passed(clock_)) {
        fail_run(Error(ErrorKind::kDeadline, "the outputs did not close in 20 s"),
                 RunPart::kPipeline);
        break;
      }
      if (options_.progress != nullptr) options_.progress->update(progress());
    }
    if (options_.progress != nullptr) options_.progress->clear();
    const std::lock_guard lock(mutex_);
    if (first_frame_ != TimePoint{}) {
      outcome_.summary.set_up = first_frame_ - started_;
      outcome_.summary.running = clock_.now() - first_frame_;
      outcome_.summary.cpu = process_cpu_time() - first_frame_cpu_;
    }
  }

  /// True when the run is over.
  bool handle(GstMessage* message) {
    switch (GST_MESSAGE_TYPE(message)) {
      case GST_MESSAGE_ERROR:
        return take_error(message);
      case GST_MESSAGE_EOS:
        // A refusal that no error of the source followed still fails the run.
        if (refusal_) fail_run(refusal_->error, refusal_->part);
        check_complete();
        return true;
      case GST_MESSAGE_WARNING: {
        GError* warning = nullptr;
        gst_message_parse_warning(message, &warning, nullptr);
        note(std::format("{}: {}", GST_MESSAGE_SRC_NAME(message), warning->message));
        g_error_free(warning);
        return false;
      }
      case GST_MESSAGE_STREAM_COLLECTION:
        check_collection(message);
        return false;
      case GST_MESSAGE_ELEMENT: {
        const GstStructure* structure = gst_message_get_structure(message);
        if (structure != nullptr && gst_structure_has_name(structure, "missing-plugin")) {
          const gchar* name = gst_structure_get_string(structure, "name");
          missing_decoder_ = name != nullptr ? name : "its format";
        }
        return false;
      }
      case GST_MESSAGE_LATENCY:
        gst_bin_recalculate_latency(GST_BIN(graph_->pipeline()));
        return false;
      default:
        return false;
    }
  }

  /// Ends the stream behind what failed: what was accepted is drained, the files are closed. False
  /// when there is nothing to close.
  bool close_streams() {
    closing_ = true;
    GstPad* pad = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (first_frame_ == TimePoint{}) return false;
      if (failed_ == RunPart::kNone || failed_ == RunPart::kSource ||
          failed_ == RunPart::kOutputWrite) {
        pad = GST_PAD(gst_object_ref(graph_->head()));
      } else {
        pad = gst_pad_get_peer(graph_->infer_src());
      }
    }
    if (pad == nullptr) return false;
    // The pad's stream lock is held while a frame is on its way: not a thing to wait for here.
    closer_ = std::thread([pad] {
      gst_pad_send_event(pad, gst_event_new_eos());
      gst_object_unref(pad);
    });
    return true;
  }

  void check_collection(GstMessage* message) {
    GstStreamCollection* collection = nullptr;
    gst_message_parse_stream_collection(message, &collection);
    if (collection == nullptr) return;
    bool video = false;
    const guint size = gst_stream_collection_get_size(collection);
    for (guint i = 0; i < size; ++i) {
      GstStream* stream = gst_stream_collection_get_stream(collection, i);
      video |= (gst_stream_get_stream_type(stream) & GST_STREAM_TYPE_VIDEO) != 0;
    }
    gst_object_unref(collection);
    if (size > 0 && !video) {
      fail_run(Error(ErrorKind::kUnsupported,
                     std::format("source '{}' has no video", options_.source.text)),
               RunPart::kSource);
    }
  }

  void check_complete() {
    const std::uint64_t frames = outcome_.summary.frames;
    if (outcome_.stopped || has_failed()) return;
    if (frames == 0) {
      fail_run(Error(ErrorKind::kCorrupt,
                     std::format("source '{}': no frame could be decoded", options_.source.text)),
               RunPart::kSource);
      return;
    }
    if (options_.source.kind != SourceKind::kFile) return;
    if (const std::uint64_t missing = missing_bytes(options_.source.file); missing > 0) {
      fail_run(Error(ErrorKind::kCorrupt,
                     std::format("source '{}' is cut short: {} bytes of it are missing; the {} "
                                 "frames before the cut were analysed",
                                 options_.source.text, missing, frames)),
               RunPart::kSource);
    }
  }

  void note(std::string text) {
    auto& notes = outcome_.summary.notes;
    if (notes.size() < kMaxNotes && std::ranges::find(notes, text) == notes.end()) {
      notes.push_back(std::move(text));
    }
  }

  ProgressState progress() {
    gint64 duration = -1;
    if (options_.source.kind == SourceKind::kFile) {
      gst_element_query_duration(graph_->pipeline(), GST_FORMAT_TIME, &duration);
    }
    const std::lock_guard lock(mutex_);
    ProgressState state;
    state.frames = outcome_.summary.frames;
    if (first_frame_ != TimePoint{}) state.running = clock_.now() - first_frame_;
    if (duration > 0) state.done = double(std::max<std::int64_t>(last_pts_, 0)) / double(duration);
    return state;
  }

  // ---- streaming threads

  static GstPadProbeReturn on_head_event(GstPad*, GstPadProbeInfo* info, gpointer self) {
    GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
    if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return GST_PAD_PROBE_OK;
    GstCaps* caps = nullptr;
    gst_event_parse_caps(event, &caps);
    RunJob& job = *static_cast<RunJob*>(self);
    job.refused_ = job.refused_ || !job.take_caps(caps);
    if (!job.refused_) return GST_PAD_PROBE_OK;
    // Taken, not dropped: a pad sends a dropped sticky event again for ever.
    gst_event_unref(event);
    GST_PAD_PROBE_INFO_DATA(info) = nullptr;
    return GST_PAD_PROBE_HANDLED;
  }

  /// Lets a decoder settle on whatever the clip holds: its caps event then comes to on_head_event,
  /// which says in a user's words what is wrong with it. Negotiation alone would end in
  /// "not-negotiated". What the pipeline really takes stays first, so a decoder with a choice takes
  /// it.
  static GstPadProbeReturn on_head_query(GstPad*, GstPadProbeInfo* info, gpointer) {
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

  static GstPadProbeReturn on_head_buffer(GstPad*, GstPadProbeInfo* info, gpointer self) {
    if (!static_cast<RunJob*>(self)->refused_) return GST_PAD_PROBE_OK;
    gst_buffer_unref(GST_PAD_PROBE_INFO_BUFFER(info));
    GST_PAD_PROBE_INFO_DATA(info) = nullptr;
    GST_PAD_PROBE_INFO_FLOW_RETURN(info) = GST_FLOW_NOT_NEGOTIATED;
    return GST_PAD_PROBE_HANDLED;
  }

  bool take_caps(GstCaps* caps) {
    auto intake = intake_of(caps);
    auto shape = shape_of(caps);
    if (!intake || !shape) {
      Error error = !intake ? std::move(intake).error() : std::move(shape).error();
      fail_streaming(std::move(error).context(std::format("source '{}'", options_.source.text)),
                     RunPart::kSource);
      return false;
    }
    if (*intake == Intake::kConvert) {
      if (!options_.convert) {
        fail_streaming(
            Error(ErrorKind::kUnsupported,
                  std::format("source '{}': pixel format {} needs a convert stage, which "
                              "costs a copy of every frame; allow it with --convert",
                              options_.source.text, shape->format)),
            RunPart::kSource);
        return false;
      }
      plan(std::format("plan: a convert stage makes I420 of the decoder's {}", shape->format));
      const std::lock_guard lock(mutex_);
      converting_ = true;
    }
    const VideoShape previous = outcome_.summary.shape;
    if (previous.width != 0 && !options_.video.empty() &&
        (previous.width != shape->width || previous.height != shape->height)) {
      fail_streaming(
          Error(
              ErrorKind::kUnsupported,
              std::format("source '{}': the picture size changes from {}x{} to {}x{}, and one MP4 "
                          "holds one size; leave out --out video= to analyse it all",
                          options_.source.text, previous.width, previous.height, shape->width,
                          shape->height)),
          RunPart::kSource);
      return false;
    }
    auto line = graph_->prepare_video(*shape);
    if (!line) {
      fail_streaming(std::move(line).error(), RunPart::kPipeline);
      return false;
    }
    plan(*line);
    if (previous.width == 0) sample_pictures(*shape);
    const std::lock_guard lock(mutex_);
    outcome_.summary.shape = *shape;
    return true;
  }

  void plan(const std::string& line) {
    if (!line.empty() && options_.on_plan) options_.on_plan(line);
  }

  void sample_pictures(const VideoShape& shape) {
    if (options_.report.empty()) return;
    gint64 duration = -1;
    gst_element_query_duration(graph_->pipeline(), GST_FORMAT_TIME, &duration);
    const double frames =
        duration > 0 ? std::floor(double(duration) / GST_SECOND * shape.frame_rate) : 0;
    pictures_ = std::make_unique<PictureSampler>(std::uint64_t(frames));
  }

  static GstPadProbeReturn on_accepted(GstPad*, GstPadProbeInfo* info, gpointer self) {
    RunJob& job = *static_cast<RunJob*>(self);
    const std::lock_guard lock(job.mutex_);
    const TimePoint now = job.clock_.now();
    if (job.first_frame_ == TimePoint{}) {
      job.first_frame_ = now;
      job.first_frame_cpu_ = process_cpu_time();
      log("pipeline").info("first frame of '{}'", job.options_.source.text);
    }
    job.accepted_.push_back(now);
    if (job.converting_) {
      job.converted_bytes_ += gst_buffer_get_size(GST_PAD_PROBE_INFO_BUFFER(info));
    }
    return GST_PAD_PROBE_OK;
  }

  static GstPadProbeReturn on_analysed(GstPad* pad, GstPadProbeInfo* info, gpointer self) {
    static_cast<RunJob*>(self)->take_frame(pad, GST_PAD_PROBE_INFO_BUFFER(info));
    return GST_PAD_PROBE_OK;
  }

  void take_frame(GstPad* pad, GstBuffer* buffer) {
    std::optional<FrameReading> reading =
        options_.read_frame ? options_.read_frame(buffer) : std::nullopt;
    if (!reading) {
      fail_streaming(Error(ErrorKind::kInternal, "peninfer passed a frame on without an analysis"),
                     RunPart::kPipeline);
      return;
    }
    FrameResult result = *reading->result;
    result.source = options_.source.text;
    const std::uint64_t number = outcome_.summary.frames;
    result.frame = number;
    last_memory_ = gst_buffer_n_memory(buffer) > 0 ? gst_buffer_peek_memory(buffer, 0) : nullptr;
    if (outputs_->json() != nullptr) {
      if (auto written = outputs_->json()->write(result); !written) {
        fail_streaming(std::move(written).error(), RunPart::kOutputWrite);
        return;
      }
    }
    if (pictures_ != nullptr && pictures_->wants(number)) {
      GstCaps* caps = gst_pad_get_current_caps(pad);
      pictures_->add(buffer, caps, result);
      gst_caps_unref(caps);
    }
    if (options_.on_frame) options_.on_frame(result);
    const std::lock_guard lock(mutex_);
    outcome_.summary.add(result, *reading->times);
    last_pts_ = std::max(last_pts_, result.pts_ns);
    if (!accepted_.empty()) {
      outcome_.summary.of(Stage::kElement).record(clock_.now() - accepted_.front());
      accepted_.pop_front();
    }
  }

  static GstPadProbeReturn on_drawn(GstPad*, GstPadProbeInfo* info, gpointer self) {
    RunJob& job = *static_cast<RunJob*>(self);
    if ((GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_BUFFER) == 0) {
      job.note_timing(GST_PAD_PROBE_INFO_EVENT(info));
      return GST_PAD_PROBE_OK;
    }
    GstBuffer* buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    // The overlay runs in peninfer's push: the memory that went in was seen just before, and
    // drawing replaces it only when somebody else still needs it unchanged.
    if (gst_buffer_n_memory(buffer) > 0 && gst_buffer_peek_memory(buffer, 0) != job.last_memory_) {
      ++job.drawn_copies_;
    }
    GST_PAD_PROBE_INFO_DATA(info) = job.complete_times(buffer);
    return GST_PAD_PROBE_OK;
  }

  void note_timing(GstEvent* event) {
    if (GST_EVENT_TYPE(event) == GST_EVENT_CAPS) {
      GstCaps* caps = nullptr;
      gst_event_parse_caps(event, &caps);
      if (const auto shape = shape_of(caps)) times_.set_rate(shape->frame_rate);
    } else if (GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) {
      const GstSegment* segment = nullptr;
      gst_event_parse_segment(event, &segment);
      if (segment->format == GST_FORMAT_TIME) times_.set_start(segment->start);
    }
  }

  /// Takes the buffer and gives it back with the times that the MP4 needs. The JSON keeps the
  /// source's own.
  GstBuffer* complete_times(GstBuffer* buffer) {
    const FrameTimes::Time time =
        times_.complete(GST_BUFFER_PTS(buffer), GST_BUFFER_DURATION(buffer));
    if (time.pts == GST_BUFFER_PTS(buffer) && time.duration == GST_BUFFER_DURATION(buffer)) {
      return buffer;
    }
    if (time.pts != GST_BUFFER_PTS(buffer) && !std::exchange(untimed_, true)) {
      plan(std::format("plan: frames come without times; the video output shows {:g} a second",
                       double(GST_SECOND) / double(time.duration)));
    }
    buffer = gst_buffer_make_writable(buffer);
    GST_BUFFER_PTS(buffer) = time.pts;
    GST_BUFFER_DURATION(buffer) = time.duration;
    return buffer;
  }

  const RunOptions& options_;
  FileOps& files_;
  Clock& clock_;

  std::unique_ptr<UpstreamCopies> upstream_;
  std::unique_ptr<RunGraph> graph_;
  GstBus* bus_ = nullptr;
  GPollFD bus_poll_{};
  std::unique_ptr<RunOutputs> outputs_;
  std::unique_ptr<PictureSampler> pictures_;
  std::thread closer_;
  TimePoint started_;
  std::string missing_decoder_;
  bool closing_ = false;
  bool playing_ = false;

  std::optional<BusError> refusal_;  // the loop's thread only: peninfer's word on the caps
  bool refused_ = false;  // the decoder's thread only: frames of refused caps are dropped

  // peninfer's push thread only, read after the pipeline has stopped.
  GstMemory* last_memory_ = nullptr;
  std::uint64_t drawn_copies_ = 0;
  FrameTimes times_;
  bool untimed_ = false;  // frames without times came, and the plan said so

  std::mutex mutex_;
  RunOutcome outcome_;  // frames and shape: under the mutex while streaming
  std::optional<Error> error_;
  RunPart failed_ = RunPart::kNone;
  std::deque<TimePoint> accepted_;  // bounded by peninfer's queue
  TimePoint first_frame_{};
  Nanoseconds first_frame_cpu_{};
  std::int64_t last_pts_ = -1;
  bool converting_ = false;
  std::uint64_t converted_bytes_ = 0;
};

}  // namespace

RunOutcome run(const RunOptions& options) { return RunJob(options).execute(); }

}  // namespace penstock
