// SPDX-License-Identifier: Apache-2.0
//
// RunSummary is what a run saw and what it cost, for the closing table and report.html. Its size
// does not grow with the length of the run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/observe/copy_ledger.h"
#include "penstock/observe/latency.h"
#include "penstock/observe/latency_book.h"
#include "penstock/pipeline/outside_copies.h"
#include "penstock/pipeline/video_caps.h"
#include "penstock/records/records.h"

namespace penstock {

/// What of a frame's result the summary is about; told by the model's task.
enum class Subject {
  kObjects,  ///< Detections of any kind, counted by label.
  kClasses,  ///< Of the whole picture: frames counted by their first class.
  kAreas,    ///< Parts of the picture, summed by class.
  kNumbers,  ///< Embeddings and tensors: nothing to count.
  kTexts     ///< Lines of text: frames in which one was read are counted.
};
Subject subject_of(std::string_view task);

/// Sums by label (objects, frames or parts of a picture) over the run in at most kMaxSpans equal
/// spans of frames: when they are used up, neighbours merge and the span doubles.
class CountSeries {
 public:
  static constexpr std::size_t kMaxSpans = 256;

  struct Span {
    std::uint64_t frames = 0;
    std::map<std::string, double, std::less<>> sums;
  };

  /// Objects, first class or areas by label.
  void add(const FrameResult& frame);
  void add(const std::map<std::string, double, std::less<>>& sums);
  const std::vector<Span>& spans() const { return spans_; }
  std::uint64_t frames_per_span() const { return frames_per_span_; }

 private:
  Span& next();

  std::vector<Span> spans_;
  std::uint64_t frames_per_span_ = 1;
};

/// What was counted in a zone over the run.
struct ZoneSum {
  ZoneCount last;               ///< With the last frame.
  std::uint64_t most = 0;       ///< Inside at a time.
  std::uint64_t in_frames = 0;  ///< Inside, summed over the frames.
};

/// kElement is from peninfer's sink pad to its source pad; the others lie within it.
enum class Stage { kQueue, kPreprocess, kInfer, kDecode, kElement };
inline constexpr std::array kStages{Stage::kQueue, Stage::kPreprocess, Stage::kInfer,
                                    Stage::kDecode, Stage::kElement};
std::string_view to_string(Stage stage);

/// A frame of the run with what was found; the picture is a copy made outside the analytic path.
struct ReportPicture {
  FrameResult result;
  std::string jpeg;
};

struct RunSummary {
  std::string source;
  std::string model;
  std::string task = "detection";  ///< Of the model; says which numbers are shown.
  std::string licence;
  std::string device;
  std::string policy;
  float threshold = 0;
  VideoShape shape;
  std::uint64_t frames = 0;  ///< Those that passed without inference, too.
  std::uint64_t objects = 0;
  /// Objects, frames by first class, or parts of the picture summed over the frames, by label.
  std::map<std::string, double, std::less<>> sums;
  /// Ids told so far by source; pentrack counts them from 1 without gaps, so the highest is enough.
  std::map<std::string, std::int64_t, std::less<>> highest_track;
  std::vector<ZoneSum> zones;      ///< In the counter's order; empty where nobody counted.
  std::vector<LineCount> lines;    ///< With the last frame.
  CountSeries zone_counts;         ///< Objects inside, by zone.
  std::uint64_t unclassified = 0;  ///< Frames without any class; kClasses only.
  std::uint64_t texts = 0;         ///< Frames in which a text was read; kTexts only.
  std::size_t numbers = 0;         ///< Values in a frame's embedding and tensors, the last frame's.
  Nanoseconds set_up{};            ///< From the start to the first frame at peninfer.
  Nanoseconds running{};           ///< From then on to the end of the stream.
  Nanoseconds cpu{};               ///< CPU time of the whole process in `running`.
  /// One a stage, in the order of kStages.
  std::vector<LatencyHistogram> latency = std::vector<LatencyHistogram>(kStages.size());
  /// Of elements by stream, in the order of the pipeline.
  std::vector<LatencyFigures> stages;
  CountSeries counts;
  std::vector<CopyLedger::Row> ledger;
  OutsideCopies outside;
  std::vector<ReportPicture> pictures;
  std::vector<std::string> notes;  ///< Warnings of the run, at most 16.

  double frames_per_second() const;
  /// Distinct tracks of all sources; 0 without --track.
  std::uint64_t tracks() const;
  /// Labels with their sums, largest first.
  std::vector<std::pair<std::string, double>> largest() const;
  LatencyHistogram& of(Stage stage) { return latency[std::size_t(stage)]; }
  const LatencyHistogram& of(Stage stage) const { return latency[std::size_t(stage)]; }
  void add(const FrameResult& frame, const StageTimes& times);
};

/// The closing table, plain text with a final newline.
std::string to_table(const RunSummary& summary);

/// Rows of a table for people: each stage's name once, with its streams' times in ms; those of a
/// sole stream without its name. Empty for none.
std::string stage_rows(const std::vector<LatencyFigures>& stages);

}  // namespace penstock
