// SPDX-License-Identifier: Apache-2.0
//
// RunRecord is what a run's streaming threads and its loop share: the counts so far, and the first
// failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/pipeline/progress.h"
#include "penstock/pipeline/run_job.h"
#include "penstock/pipeline/run_summary.h"

namespace penstock {

class RunRecord {
 public:
  /// The run starts now.
  explicit RunRecord(Clock& clock) : clock_(clock), started_(clock.now()) {}

  // Any thread.

  /// The first failure counts.
  void fail(Error error, RunPart part);
  bool has_failed() const;
  RunPart failed() const;
  /// True once a frame has reached peninfer.
  bool has_started() const;
  /// `duration` of the whole source in nanoseconds, negative when unknown.
  ProgressState progress(std::int64_t duration) const;
  std::uint64_t frames() const;
  VideoShape shape() const;
  /// When the last frame that reached peninfer is no longer shown, in nanoseconds from the source's
  /// start; negative when a frame came without a time.
  std::int64_t covered() const;

  // Streaming threads.

  void set_shape(const VideoShape& shape);
  /// From now on frames come out of a convert stage.
  void set_converting();
  /// A frame of `bytes` reaches peninfer, shown from `pts` for `duration` nanoseconds; either
  /// negative when not known. True for the first of the run.
  bool accept(std::size_t bytes, std::int64_t pts, std::int64_t duration);
  /// A frame has left peninfer and is written.
  void add(const FrameResult& result, const StageTimes& times);
  /// A frame has left peninfer that it did not look at.
  void pass();

  // The loop's thread.

  /// Closes the intervals.
  void stop_clock();
  /// What the loop alone writes, at any time; the rest when nothing streams any more.
  RunSummary& summary() { return summary_; }
  /// How much later the last frame was analysed than it would have been at the source's own pace
  /// from the first on; negative when earlier, nothing when fewer than two frames had a time.
  std::optional<Nanoseconds> behind() const;
  /// Notes that a live source's frames were analysed ever later; once, at the end.
  void note_behind();
  /// For the report, each text once; what is past the sixteenth is dropped.
  void note(std::string text);
  /// The summary and the failure, when nothing streams any more.
  RunOutcome take();
  std::uint64_t converted_bytes() const { return converted_bytes_; }

 private:
  /// With the lock held: the frame has left the element. When it came there.
  std::optional<TimePoint> leave();

  Clock& clock_;
  const TimePoint started_;

  mutable std::mutex mutex_;
  RunSummary summary_;
  std::optional<Error> error_;
  RunPart failed_ = RunPart::kNone;
  std::deque<TimePoint> accepted_;  // bounded by peninfer's queue
  TimePoint first_frame_{};
  Nanoseconds first_frame_cpu_{};
  std::int64_t last_pts_ = -1;
  TimePoint first_timed_{};  // when the first frame with a time reached peninfer
  std::int64_t first_timed_pts_ = -1;
  std::optional<Nanoseconds> behind_;
  std::int64_t accepted_pts_ = -1;
  std::int64_t covered_ = 0;
  bool untimed_ = false;
  bool converting_ = false;
  std::uint64_t converted_bytes_ = 0;
};

}  // namespace penstock
