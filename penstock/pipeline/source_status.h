// SPDX-License-Identifier: Apache-2.0
//
// SourceStatus is what is known of one source of a pipeline at a moment: for the closing table, the
// lines that say how it goes, and `penstock ctl`. Its size does not grow with the time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/observe/latency_book.h"
#include "penstock/pipeline/run_job.h"

namespace penstock {

enum class SourceState {
  kConnecting,  ///< A session has begun; no frame of it is analysed yet.
  kOnline,      ///< Frames come.
  kStalled,     ///< It fell silent; to be dialled again.
  kOffline,     ///< It can't be had, or ended; to be dialled again.
  kEnded,       ///< For good: the file's end, removed, or the run's end.
  kAbsent,      ///< For good: a camera of which no frame ever came until the end.
  kFailed,      ///< For good, with an error.
};
std::string_view to_string(SourceState state);

/// What penzone told of one zone or line.
struct PlaceCounts {
  std::uint64_t entered = 0, left = 0;
  std::uint64_t forwards = 0, backwards = 0;
};

struct SourceStatus {
  std::string name;
  std::string address;  ///< Without a password.
  SourceState state = SourceState::kConnecting;
  std::uint64_t sessions = 0;  ///< Begun.
  std::uint64_t frames = 0;    ///< Analysed.
  std::uint64_t objects = 0;   ///< Detected; what a tracker supposes does not count.
  std::uint64_t drawn = 0;     ///< Frames copied to be drawn on, for its video output.
  Nanoseconds online{};        ///< From the first to the last frame of each session.
  std::map<std::string, std::uint64_t, std::less<>> labels;
  std::map<std::string, PlaceCounts, std::less<>> places;
  /// Of the elements that its frames pass, over all sessions, in the order of the pipeline.
  std::vector<LatencyFigures> stages;
  std::vector<std::string> videos;  ///< Files begun, the last kMaxToldVideos.
  std::optional<Error> error;       ///< The last one.
  RunPart failed = RunPart::kNone;  ///< kFailed: of what.

  static constexpr std::size_t kMaxToldVideos = 16;

  bool is_over() const {
    return state == SourceState::kEnded || state == SourceState::kAbsent ||
           state == SourceState::kFailed;
  }
  double frames_per_second() const;
  /// In peninfer; zero before the first frame.
  LatencyFigures latency() const;
};

/// The latency of all of them, each stage's sources together, to be compared.
std::vector<LatencyFigures> by_stage(const std::vector<SourceStatus>& sources);

/// The closing table of a pipeline, with a final newline.
std::string to_table(const std::vector<SourceStatus>& sources);

/// "stats: door online, 250 frames, 25.0 a second, 31 objects".
std::string to_stats_line(const SourceStatus& source);

}  // namespace penstock
