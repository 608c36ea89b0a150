// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/run_record.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

constexpr std::size_t kMaxNotes = 16;
// What a queue, a slow start and a camera's uneven clock explain is less.
constexpr Nanoseconds kBehind = std::chrono::seconds(2);

// Of all threads of the process. A measure of work, not of an interval, so not the Clock's
// business.
Nanoseconds process_cpu_time() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + Nanoseconds(used.tv_nsec);
}

}  // namespace

void RunRecord::fail(Error error, RunPart part) {
  const std::lock_guard lock(mutex_);
  if (error_) return;
  error_ = std::move(error);
  failed_ = part;
}

bool RunRecord::has_failed() const {
  const std::lock_guard lock(mutex_);
  return error_.has_value();
}

RunPart RunRecord::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

bool RunRecord::has_started() const {
  const std::lock_guard lock(mutex_);
  return first_frame_ != TimePoint{};
}

ProgressState RunRecord::progress(std::int64_t duration) const {
  const std::lock_guard lock(mutex_);
  ProgressState state;
  state.frames = summary_.frames;
  if (first_frame_ != TimePoint{}) state.running = clock_.now() - first_frame_;
  if (duration > 0) state.done = double(std::max<std::int64_t>(last_pts_, 0)) / double(duration);
  return state;
}

std::uint64_t RunRecord::frames() const {
  const std::lock_guard lock(mutex_);
  return summary_.frames;
}

VideoShape RunRecord::shape() const {
  const std::lock_guard lock(mutex_);
  return summary_.shape;
}

void RunRecord::set_shape(const VideoShape& shape) {
  const std::lock_guard lock(mutex_);
  summary_.shape = shape;
}

void RunRecord::set_converting() {
  const std::lock_guard lock(mutex_);
  converting_ = true;
}

std::int64_t RunRecord::covered() const {
  const std::lock_guard lock(mutex_);
  return untimed_ ? -1 : covered_;
}

bool RunRecord::accept(std::size_t bytes, std::int64_t pts, std::int64_t duration) {
  const std::lock_guard lock(mutex_);
  if (pts < 0) {
    untimed_ = true;
  } else {
    // A frame without a length is taken to last as long as the one before it.
    if (duration < 0 && accepted_pts_ >= 0) duration = pts - accepted_pts_;
    covered_ = std::max(covered_, pts + std::max<std::int64_t>(duration, 0));
    accepted_pts_ = pts;
  }
  const TimePoint now = clock_.now();
  accepted_.push_back(now);
  if (pts >= 0 && first_timed_pts_ < 0) {
    first_timed_ = now;
    first_timed_pts_ = pts;
  }
  if (converting_) converted_bytes_ += bytes;
  if (first_frame_ != TimePoint{}) return false;
  first_frame_ = now;
  first_frame_cpu_ = process_cpu_time();
  return true;
}

void RunRecord::add(const FrameResult& result, const StageTimes& times) {
  const std::lock_guard lock(mutex_);
  summary_.add(result, times);
  last_pts_ = std::max(last_pts_, result.pts_ns);
  const TimePoint now = clock_.now();
  if (first_timed_pts_ >= 0 && result.pts_ns > first_timed_pts_) {
    behind_ = now - first_timed_ - Nanoseconds(result.pts_ns - first_timed_pts_);
  }
  if (const auto came = leave()) summary_.of(Stage::kElement).record(now - *came);
}

void RunRecord::pass() {
  const std::lock_guard lock(mutex_);
  ++summary_.frames;
  leave();
}

std::optional<TimePoint> RunRecord::leave() {
  if (accepted_.empty()) return std::nullopt;
  const TimePoint came = accepted_.front();
  accepted_.pop_front();
  return came;
}

std::optional<Nanoseconds> RunRecord::behind() const {
  const std::lock_guard lock(mutex_);
  return behind_;
}

void RunRecord::note_behind() {
  const auto by = behind();
  if (!by || *by <= kBehind) return;
  note(str_format(
      "analysis was {:.1f} s behind the source at its end: the model is slower than the stream",
      std::chrono::duration<double>(*by).count()));
}

void RunRecord::note(std::string text) {
  auto& notes = summary_.notes;
  if (notes.size() < kMaxNotes && std::ranges::find(notes, text) == notes.end()) {
    notes.push_back(std::move(text));
  }
}

void RunRecord::stop_clock() {
  const std::lock_guard lock(mutex_);
  if (first_frame_ == TimePoint{}) return;
  summary_.set_up = first_frame_ - started_;
  summary_.running = clock_.now() - first_frame_;
  summary_.cpu = process_cpu_time() - first_frame_cpu_;
}

RunOutcome RunRecord::take() {
  const std::lock_guard lock(mutex_);
  RunOutcome outcome;
  outcome.summary = std::move(summary_);
  outcome.error = std::move(error_);
  outcome.failed = failed_;
  return outcome;
}

}  // namespace penstock
