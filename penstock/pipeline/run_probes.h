// SPDX-License-Identifier: Apache-2.0
//
// RunProbes is what a run does on the pipeline's streaming threads: it checks the decoder's caps,
// writes the JSON line of every frame that peninfer has analysed, keeps pictures for the report,
// and completes the times that the MP4 needs.
//
//   RunProbes probes(options, *graph, *outputs, record);
//   probes.install();                                     // before the pipeline starts
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "penstock/base/error.h"
#include "penstock/observe/latency_book.h"
#include "penstock/pipeline/frame_times.h"
#include "penstock/pipeline/picture_sampler.h"
#include "penstock/pipeline/run_graph.h"
#include "penstock/pipeline/run_job.h"
#include "penstock/pipeline/run_outputs.h"
#include "penstock/pipeline/run_record.h"
#include "penstock/pipeline/video_caps.h"

namespace penstock {

/// The application message that says that every frame peninfer accepted has its JSON line.
inline constexpr const char* kAnalysed = "penstock-analysed";

class RunProbes {
 public:
  /// All must outlive the pipeline's streaming threads, and so must the probes.
  RunProbes(const RunOptions& options, RunGraph& graph, RunOutputs& outputs, RunRecord& record,
            LatencyBook& latency)
      : options_(options), graph_(graph), outputs_(outputs), record_(record), latency_(latency) {}
  RunProbes(const RunProbes&) = delete;
  RunProbes& operator=(const RunProbes&) = delete;

  void install();

  // Any thread.

  /// Frames that the decoder has pushed, the one that is being taken too.
  std::uint64_t arrived() const { return arrived_; }
  /// Packets that an RTSP camera has sent.
  std::uint64_t received() const { return *received_; }
  /// A frame, or what is serialized with frames, is on its way into what follows the decoder, which
  /// takes its time: no other can come.
  bool is_taking() const;

  // When nothing streams any more.

  /// Null when the report wants none.
  PictureSampler* pictures() { return pictures_.get(); }
  /// Frames that drawing copied.
  std::uint64_t drawn_frames() const { return drawn_frames_; }

 private:
  static GstPadProbeReturn on_head_event(GstPad* pad, GstPadProbeInfo* info, gpointer self);
  static GstPadProbeReturn on_head_query(GstPad* pad, GstPadProbeInfo* info, gpointer self);
  static GstPadProbeReturn on_head_buffer(GstPad* pad, GstPadProbeInfo* info, gpointer self);
  static GstPadProbeReturn on_accepted(GstPad* pad, GstPadProbeInfo* info, gpointer self);
  static GstPadProbeReturn on_analysed(GstPad* pad, GstPadProbeInfo* info, gpointer self);
  static GstPadProbeReturn on_drawn(GstPad* pad, GstPadProbeInfo* info, gpointer self);

  static GstPadProbeReturn on_stage_in(GstPad* pad, GstPadProbeInfo* info, gpointer stage);
  static GstPadProbeReturn on_stage_out(GstPad* pad, GstPadProbeInfo* info, gpointer stage);

  void time_stages();
  bool take_caps(GstCaps* caps);
  void sample_pictures(const VideoShape& shape);
  void take_frame(GstPad* pad, GstBuffer* buffer);
  /// False when that failed.
  bool tell(GstPad* pad, GstBuffer* buffer, const FrameReading& reading);
  /// Takes the event and gives back the one that the encoder is to see.
  GstEvent* note_timing(GstEvent* event);
  /// Takes the buffer and gives it back with the times that the MP4 needs. The JSON keeps the
  /// source's own, as far as they grow.
  GstBuffer* complete_times(GstBuffer* buffer);
  void plan(const std::string& line);
  void post(const char* name);
  /// Fails the run and lets the loop know.
  void fail(Error error, RunPart part);

  const RunOptions& options_;
  RunGraph& graph_;
  RunOutputs& outputs_;
  RunRecord& record_;
  LatencyBook& latency_;
  struct Timed {
    RunProbes* probes;
    LatencyBook::Stage* stage;
  };
  std::deque<Timed> timed_;  ///< Given to probes, so they stay where they are.

  /// Made on the decoder's thread, then used on peninfer's push thread: the caps lie between.
  std::unique_ptr<PictureSampler> pictures_;

  // The decoder's thread only.
  bool refused_ = false;  ///< Frames of refused caps are dropped.

  std::atomic<std::uint64_t> arrived_{0};
  /// Shared with the camera's element, which may outlive the run.
  std::shared_ptr<std::atomic<std::uint64_t>> received_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);
  bool may_pass_ = false;  ///< peninfer has an interval: frames come that nobody looked at.

  // peninfer's push thread only, read after the pipeline has stopped.
  std::uint64_t drawn_frames_ = 0;
  FrameTimes times_;
  FrameTimes json_times_;  ///< Of the frames that have any.
  bool untimed_ = false;   ///< Frames without times came, and the plan said so.
};

}  // namespace penstock
