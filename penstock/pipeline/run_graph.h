// SPDX-License-Identifier: Apache-2.0
//
// RunGraph is the GStreamer pipeline of a run:
//
//   input (filesrc|rtspsrc ! decodebin3)  [! convert ! filter]
//     ! infer (peninfer)  [! pentrack ! penzone ...]
//     ! end (fakesink)              without video output
//     ! video (draw (penwatermark) ! draw-convert ! draw-format ! openh264enc
//              ! h264parse ! mp4mux ! filesink)
//
// The parts in brackets exist only when asked for.
//
// A failure of `video` stays in it: its error is on the bus, a message named kVideoLost follows,
// and what peninfer still gives is taken and dropped, so that the analysis can go on.
#pragma once

#include <gst/gst.h>

#include <memory>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/pipeline/element_settings.h"
#include "penstock/pipeline/run_job.h"
#include "penstock/pipeline/video_caps.h"

namespace penstock {

/// The application message that says that the video output takes no more frames. Its text "reason"
/// names the flow that ended it.
inline constexpr const char* kVideoLost = "penstock-video-lost";

/// What a video output counts on when the source states no rate, in frames a second.
inline constexpr int kAssumedFrameRate = 25;

/// The peninfer that the options ask for, called "infer".
ElementSettings infer_settings(const RunOptions& options);

class RunGraph {
 public:
  static Result<std::unique_ptr<RunGraph>> build(const RunOptions& options);
  /// Takes the pipeline to NULL.
  ~RunGraph();
  RunGraph(const RunGraph&) = delete;
  RunGraph& operator=(const RunGraph&) = delete;

  /// Takes the pipeline to NULL; input() is gone then. False when the input of a camera does not
  /// close: see close_with_input().
  bool close(const Source& source, Clock& clock);

  GstElement* pipeline() const { return pipeline_; }
  GstElement* input() const { return input_; }
  GstElement* infer() const { return infer_; }
  /// Where decoded frames come in: the sink pad of `convert`, else of `infer`.
  GstPad* head() const { return head_; }
  GstPad* infer_sink() const { return infer_sink_; }
  /// Where analysed frames leave: the source pad of the last element behind `infer`, else its own.
  GstPad* analysed_src() const { return analysed_src_; }
  /// After the overlay; null without video output.
  GstPad* drawn() const { return drawn_; }
  /// The elements whose latency is told, in the order in which frames pass them.
  const std::vector<GstElement*>& stages() const { return stages_; }

  /// Completes the drawing branch for video of `shape`, before its caps reach it: the bit rate.
  /// Answers the plan line, empty for none.
  Result<std::string> prepare_video(const VideoShape& shape);

  /// The element that decodes video, "" before there is one.
  std::string decoder_name() const;
  /// How long the source is by its container's own word, in nanoseconds; negative when the
  /// container does not say and for one that is only estimated from its size.
  std::int64_t stated_duration() const;

 private:
  RunGraph() = default;
  /// The last element of the input whose factory is of `types`, which the caller owns; null for
  /// none.
  GstElement* find_in_input(GstElementFactoryListType types) const;
  Result<void> add_input(const RunOptions& options);
  Result<void> add_infer(const RunOptions& options);
  /// RunOptions::behind, behind `infer`.
  Result<void> add_behind(const RunOptions& options);
  Result<void> add_video(const RunOptions& options);
  static GstFlowReturn chain_video(GstPad* pad, GstObject* parent, GstBuffer* buffer);

  GstElement* pipeline_ = nullptr;
  GstElement* input_ = nullptr;
  GstElement* infer_ = nullptr;
  GstElement* analysed_ = nullptr;  ///< The last element of the analysis.
  GstElement* overlay_ = nullptr;
  GstElement* encoder_ = nullptr;
  GstElement* video_ = nullptr;
  GstPad* head_ = nullptr;
  GstPad* infer_sink_ = nullptr;
  GstPad* analysed_src_ = nullptr;
  GstPad* drawn_ = nullptr;
  std::vector<GstElement*> stages_;
  bool has_planned_video_ = false;
  bool video_lost_ = false;  // peninfer's push thread only
};

}  // namespace penstock
