// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/run_job.h"

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "penstock/base/deadline.h"
#include "penstock/base/log.h"
#include "penstock/base/str_format.h"
#include "penstock/pipeline/bus_error.h"
#include "penstock/pipeline/container_size.h"
#include "penstock/pipeline/input_close.h"
#include "penstock/pipeline/picture_sampler.h"
#include "penstock/pipeline/run_graph.h"
#include "penstock/pipeline/run_outputs.h"
#include "penstock/pipeline/run_probes.h"
#include "penstock/pipeline/run_record.h"
#include "penstock/pipeline/silence.h"
#include "penstock/pipeline/source_end.h"
#include "penstock/pipeline/upstream_copies.h"

namespace penstock {
namespace {

// How long outputs may take to close after the run was told to end.
constexpr Nanoseconds kCloseTimeout = std::chrono::seconds(20);
/// And once more for what lies behind the analysis, when that took so long.
constexpr Nanoseconds kGiveUpTimeout = std::chrono::seconds(2);
// How long a camera may take from the start to its first frame at peninfer.
constexpr Nanoseconds kFirstFrameTimeout = std::chrono::seconds(30);

class RunJob {
 public:
  explicit RunJob(const RunOptions& options)
      : options_(options),
        files_(options.files != nullptr ? *options.files : FileOps::system()),
        clock_(options.clock != nullptr ? *options.clock : Clock::system()),
        latency_(options.latency != nullptr ? options.latency
                                            : std::make_shared<LatencyBook>(clock_)),
        record_(clock_),
        source_end_(options.source, clock_, record_) {}

  RunOutcome execute() {
    describe();
    log("pipeline").info("setting up for '{}'", options_.source.text);
    auto outputs = RunOutputs::open(options_, files_, clock_);
    if (!outputs) {
      record_.fail(std::move(outputs).error(), RunPart::kOutputCreate);
    } else {
      outputs_ = std::move(*outputs);
      if (start()) loop();
    }
    return finish();
  }

 private:
  // ---- set-up and end, on the caller's thread

  void describe() {
    RunSummary& summary = record_.summary();
    summary.source = options_.source.text;
    summary.model = options_.model_name;
    summary.task = options_.task;
    summary.licence = options_.licence;
    summary.device = options_.device;
    summary.policy = options_.policy;
    summary.threshold = options_.threshold.value_or(0);
  }

  /// Setting up takes seconds for a large model; a stop in it counts from the next step on.
  bool stop_asked() {
    pollfd fd{options_.stop_fd, POLLIN, 0};
    if (options_.stop_fd >= 0 && ::poll(&fd, 1, 0) == 1) stopped_ = true;
    return stopped_;
  }

  bool start() {
    if (stop_asked()) return false;
    if (is_camera(options_.source) && left_inputs() >= kMaxLeftInputs) {
      record_.fail(Error(ErrorKind::kExhausted,
                         str_format("source '{}': {} earlier connections to cameras do not close",
                                    options_.source.text, kMaxLeftInputs)),
                   RunPart::kSource);
      return false;
    }
    if (options_.count_upstream) upstream_ = std::make_unique<UpstreamCopies>();
    auto graph = RunGraph::build(options_);
    if (!graph) {
      record_.fail(std::move(graph).error(), RunPart::kPipeline);
      return false;
    }
    graph_ = std::move(*graph);
    bus_ = gst_element_get_bus(graph_->pipeline());
    gst_bus_get_pollfd(bus_, &bus_poll_);
    if (bus_poll_.fd < 0) {
      record_.fail(Error(ErrorKind::kExhausted,
                         "no file descriptor is left for the pipeline's messages (ulimit -n)"),
                   RunPart::kPipeline);
      return false;
    }
    probes_ = std::make_unique<RunProbes>(options_, *graph_, *outputs_, record_, *latency_);
    probes_->install();
    // READY loads the model; apart from PLAYING, so that its failure is told from the source's.
    if (gst_element_set_state(graph_->pipeline(), GST_STATE_READY) == GST_STATE_CHANGE_FAILURE) {
      fail_from_bus(RunPart::kModel);
      return false;
    }
    if (stop_asked()) return false;
    playing_ = true;
    if (gst_element_set_state(graph_->pipeline(), GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) {
      fail_from_bus(RunPart::kPipeline);
      return false;
    }
    log("pipeline").info("waiting for '{}'", options_.source.text);
    return true;
  }

  RunOutcome finish() {
    if (graph_ != nullptr) {
      if (options_.read_ledger) record_.summary().ledger = options_.read_ledger(graph_->infer());
      record_.summary().outside.decoder = graph_->decoder_name();
      // NULL unblocks whatever still waits inside the pipeline, the closing thread too.
      if (!graph_->close(options_.source, clock_)) {
        log("pipeline")
            .warn("'{}' does not close; it is left to a thread of its own", options_.source.text);
        record_.note("the connection to the source does not close; it was left to itself");
      }
    }
    for (std::thread* closer : {&closer_, &late_closer_}) {
      if (closer->joinable()) closer->join();
    }
    if (bus_ != nullptr) gst_object_unref(bus_);
    graph_.reset();
    record_.summary().stages = latency_->figures();
    count_outside();
    if (outputs_ != nullptr) close_outputs();
    RunOutcome outcome = record_.take();
    outcome.stopped = stopped_;
    return outcome;
  }

  void count_outside() {
    OutsideCopies& outside = record_.summary().outside;
    if (probes_ != nullptr) outside.drawn = probes_->drawn_frames();
    if (upstream_ != nullptr) {
      outside.upstream_known = upstream_->is_known();
      outside.upstream = upstream_->copied();
    }
    if (record_.converted_bytes() > 0) {
      record_.summary().ledger.push_back(
          {CopyClass::kFrame, "convert", record_.summary().frames, record_.converted_bytes()});
    }
    if (PictureSampler* pictures = sampler()) outside.pictures = pictures->copies();
  }

  /// Null when no pictures were wanted.
  PictureSampler* sampler() { return probes_ != nullptr ? probes_->pictures() : nullptr; }

  void close_outputs() {
    if (auto closed = outputs_->close_json(); !closed) {
      record_.fail(std::move(closed).error(), RunPart::kOutputWrite);
    }
    if (auto closed = outputs_->close_video(); !closed) {
      record_.fail(std::move(closed).error(), RunPart::kOutputWrite);
    }
    if (!outputs_->wants_report()) return;
    if (PictureSampler* sampled = sampler()) {
      auto pictures = sampled->encode();
      if (pictures) {
        record_.summary().pictures = std::move(*pictures);
      } else {
        record_.note(pictures.error().message());
      }
    }
    if (auto written = outputs_->write_report(record_.summary()); !written) {
      record_.fail(std::move(written).error(), RunPart::kOutputWrite);
    }
  }

  // ---- failure

  void fail_from_bus(RunPart part) {
    while (GstMessage* message = gst_bus_pop_filtered(bus_, GST_MESSAGE_ERROR)) {
      take_error(message);
      gst_message_unref(message);
    }
    record_.fail(Error(ErrorKind::kDevice, "the pipeline does not start and does not say why"),
                 part);
  }

  /// True when nothing can be closed any more.
  bool take_error(GstMessage* message) {
    BusError error = read_bus_error(message, options_.source, options_.video.string());
    if (error.part == RunPart::kSource && !missing_decoder_.empty()) {
      error.error =
          Error(ErrorKind::kUnsupported, str_format("source '{}': no decoder for {} is installed",
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
    if (error.part == RunPart::kSource && error.error.kind() == ErrorKind::kCorrupt &&
        options_.source.kind == SourceKind::kFile) {
      // Demuxers say that a file is wrong, not that it is not all there.
      if (const std::uint64_t missing = missing_bytes(options_.source.file); missing > 0) {
        error.error =
            Error(ErrorKind::kCorrupt, str_format("{} It is cut short: {} bytes of it are missing",
                                                  error.error.message(), missing));
      }
    }
    const bool of_video =
        error.part == RunPart::kOutputWrite || error.part == RunPart::kOutputCreate;
    const bool dead_end = closing_ && !of_video && error.part != RunPart::kSource;
    record_.fail(std::move(error.error), error.part);
    return of_video ? lose_video() : dead_end;
  }

  /// The video output has failed, and the pipeline's EOS is not that of the analysis any more: the
  /// run is over when what peninfer accepted is analysed. True when it is.
  bool lose_video() {
    video_lost_ = true;
    return analysed_;
  }

  // ---- the loop

  void loop() {
    Deadline close_by = Deadline::never();
    const Deadline first_frame_by = Deadline::after(clock_, kFirstFrameTimeout);
    bool ended = false;
    source_end_.begin();
    while (!ended) {
      pollfd fds[2] = {};
      fds[0] = {bus_poll_.fd, POLLIN, 0};
      fds[1] = {options_.stop_fd, POLLIN, 0};
      const bool watch_stop = options_.stop_fd >= 0 && !stopped_;
      ::poll(fds, watch_stop ? 2 : 1, 200);
      if (watch_stop && (fds[1].revents & POLLIN) != 0) stopped_ = true;
      while (!ended) {
        GstMessage* message = gst_bus_pop(bus_);
        if (message == nullptr) break;
        ended = handle(message);
        gst_message_unref(message);
      }
      if (ended) break;
      if (!stopped_) source_end_.watch_demuxer(*graph_);
      if (!stopped_) watch_first_frame(first_frame_by);
      watch_stall();
      if ((stopped_ || record_.has_failed()) && !closing_) {
        // Before the first frame there is nothing to drain, and EOS would overtake stream-start.
        if (!close_streams()) break;
        close_by = Deadline::after(clock_, kCloseTimeout);
      }
      if (close_by.passed(clock_) && stopped_ && !gave_up_ && !record_.has_failed()) {
        // A signal is not an error: what is not analysed by now is given up.
        if (!give_up()) break;
        close_by = Deadline::after(clock_, kGiveUpTimeout);
      } else if (close_by.passed(clock_)) {
        record_.fail(Error(ErrorKind::kDeadline, "the outputs did not close in 20 s"),
                     RunPart::kPipeline);
        break;
      }
      if (options_.progress != nullptr) options_.progress->update(progress());
    }
    if (options_.progress != nullptr) options_.progress->clear();
    record_.stop_clock();
    // A file waits for the analysis; a camera does not.
    if (options_.source.kind == SourceKind::kRtsp) record_.note_behind();
  }

  /// Some cameras answer, close or stall, and rtspsrc then says nothing.
  void watch_first_frame(const Deadline& by) {
    if (!is_camera(options_.source) || record_.has_started()) return;
    if (record_.has_failed() || !by.passed(clock_)) return;
    record_.fail(Error(ErrorKind::kDeadline,
                       str_format("source '{}': no frame came in 30 s", options_.source.text)),
                 RunPart::kSource);
  }

  void watch_stall() {
    if (options_.stall_after <= Nanoseconds::zero() || stopped_ || closing_) return;
    // Until the first frame, packets are a sign of life: the first key frame may be long in coming.
    const bool has_started = record_.has_started();
    if (!has_started && !is_camera(options_.source)) return;
    const std::uint64_t heard = probes_->arrived() + (has_started ? 0 : probes_->received());
    const Nanoseconds silent = silence_.look(clock_.now(), heard, probes_->is_taking());
    if (silent < options_.stall_after) return;
    record_.fail(Error(ErrorKind::kDeadline,
                       str_format("source '{}': no frame came for {:g} s", options_.source.text,
                                  std::chrono::duration<double>(options_.stall_after).count())),
                 RunPart::kSource);
  }

  /// True when the run is over.
  bool handle(GstMessage* message) {
    switch (GST_MESSAGE_TYPE(message)) {
      case GST_MESSAGE_ERROR:
        return take_error(message);
      case GST_MESSAGE_EOS:
        // The muxer ends its file with EOS when it fails, which says nothing of the analysis.
        if (video_lost_) return analysed_;
        // A refusal that no error of the source followed still fails the run.
        if (refusal_) record_.fail(refusal_->error, refusal_->part);
        if (!stopped_) source_end_.check(*graph_);
        return true;
      case GST_MESSAGE_WARNING: {
        GError* warning = nullptr;
        gst_message_parse_warning(message, &warning, nullptr);
        record_.note(str_format("{}: {}", GST_MESSAGE_SRC_NAME(message),
                                without_password_of(options_.source, warning->message)));
        g_error_free(warning);
        return false;
      }
      case GST_MESSAGE_STREAM_COLLECTION:
        source_end_.take_collection(message);
        return false;
      case GST_MESSAGE_APPLICATION: {
        const GstStructure* structure = gst_message_get_structure(message);
        if (gst_structure_has_name(structure, kAnalysed)) {
          analysed_ = true;
          return video_lost_;
        }
        if (gst_structure_has_name(structure, kSourceEmpty) && !stopped_) {
          record_.fail(
              Error(ErrorKind::kCorrupt, str_format("source '{}' is empty", options_.source.text)),
              RunPart::kSource);
          return false;
        }
        if (gst_structure_has_name(structure, kSourceRedirects) && !stopped_) {
          record_.fail(Error(ErrorKind::kIo, str_format("source '{}': it redirects again and again",
                                                        options_.source.text)),
                       RunPart::kSource);
          return false;
        }
        if (!gst_structure_has_name(structure, kVideoLost)) return false;
        // Elements post their error before they return it; this is for one that did not.
        record_.fail(
            Error(ErrorKind::kIo, str_format("writing '{}': {}", options_.video.string(),
                                             gst_structure_get_string(structure, "reason"))),
            RunPart::kOutputWrite);
        return lose_video();
      }
      case GST_MESSAGE_ELEMENT: {
        const GstStructure* structure = gst_message_get_structure(message);
        if (structure != nullptr && options_.on_message) options_.on_message(structure);
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
    if (!record_.has_started()) return false;
    const RunPart failed = record_.failed();
    const bool drain_all =
        failed == RunPart::kNone || failed == RunPart::kSource || failed == RunPart::kOutputWrite;
    GstPad* pad = drain_all ? GST_PAD(gst_object_ref(graph_->head()))
                            : gst_pad_get_peer(graph_->analysed_src());
    if (pad == nullptr) return false;
    // The pad's stream lock is held while a frame is on its way: not a thing to wait for here.
    closer_ = end_stream(pad);
    return true;
  }

  /// Ends the outputs behind what is still being analysed. False when there is nothing to end.
  bool give_up() {
    gave_up_ = true;
    record_.note("frames that took longer than 20 s to analyse after the signal were given up");
    GstPad* pad = record_.frames() > 0 ? gst_pad_get_peer(graph_->analysed_src()) : nullptr;
    if (pad == nullptr) return false;
    late_closer_ = end_stream(pad);
    return true;
  }

  /// Takes the pad.
  static std::thread end_stream(GstPad* pad) {
    return std::thread([pad] {
      gst_pad_send_event(pad, gst_event_new_eos());
      gst_object_unref(pad);
    });
  }

  ProgressState progress() {
    gint64 duration = -1;
    if (options_.source.kind == SourceKind::kFile) {
      gst_element_query_duration(graph_->pipeline(), GST_FORMAT_TIME, &duration);
    }
    return record_.progress(duration);
  }

  const RunOptions& options_;
  FileOps& files_;
  Clock& clock_;

  const std::shared_ptr<LatencyBook> latency_;
  RunRecord record_;
  SourceEnd source_end_;
  Silence silence_;

  std::unique_ptr<UpstreamCopies> upstream_;
  std::unique_ptr<RunOutputs> outputs_;
  std::unique_ptr<RunProbes> probes_;  // outlives the graph, whose threads run it
  std::unique_ptr<RunGraph> graph_;
  GstBus* bus_ = nullptr;
  GPollFD bus_poll_{-1, 0, 0};
  std::thread closer_;
  std::thread late_closer_;
  std::string missing_decoder_;
  std::optional<BusError> refusal_;  // peninfer's word on the caps
  bool closing_ = false;
  bool gave_up_ = false;     // on what peninfer still has
  bool analysed_ = false;    // every frame that peninfer accepted
  bool video_lost_ = false;  // its output failed
  bool playing_ = false;
  bool stopped_ = false;  // by stop_fd
};

}  // namespace

RunOutcome run(const RunOptions& options) { return RunJob(options).execute(); }

}  // namespace penstock
