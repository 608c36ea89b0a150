// SPDX-License-Identifier: Apache-2.0
//
// SourceRunner keeps one source of a pipeline going, on a thread of its own: one session after the
// other, each a run() of its own, until the source has ended, has failed for good or is told to
// stop. What happens in it reaches no other source.
//
//   auto runner = SourceRunner::create(source, spec, surroundings);
//   (*runner)->start();
//   ...
//   (*runner)->stop();   // accepted frames are finished
//   (*runner)->join();
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"
#include "penstock/pipeline/back_off.h"
#include "penstock/pipeline/frame_log.h"
#include "penstock/pipeline/pipeline_spec.h"
#include "penstock/pipeline/run_job.h"
#include "penstock/pipeline/source_status.h"

namespace penstock {

/// What a source shares with the others. All of it is called from several threads.
struct RunnerSurroundings {
  /// A session's options but for what the source and the PipelineSpec say: model, readers, context.
  std::function<RunOptions()> make_options;
  /// run(), or what a test has in its place.
  std::function<RunOutcome(const RunOptions&)> run_session = run;
  FrameLog* log = nullptr;
  Clock* clock = &Clock::system();
  RandomPart random;  ///< Called with nothing locked; must be safe from every thread.
  /// A line for people about this source.
  std::function<void(const std::string&)> say;
  /// The runner is over, its last act.
  std::function<void()> on_end;
};

/// How far a name has come in what goes on over all its sessions, and over the sources that have it
/// one after the other.
struct SourceHistory {
  std::uint64_t frames = 0;          ///< The next frame's number.
  std::int64_t last_track = 0;       ///< The highest id so far.
  int video_number = 1;              ///< Of the next video.
  std::int64_t last_pts = -1;        ///< Nanoseconds; -1: no frame had a time.
  std::optional<TimePoint> epoch{};  ///< When its time 0 was.
};

class SourceRunner {
 public:
  /// `spec` must outlive it. `history` is what an earlier runner of the same name left. kExhausted
  /// without a descriptor for stopping.
  static Result<std::unique_ptr<SourceRunner>> create(PipelineSource source,
                                                      const PipelineSpec& spec,
                                                      RunnerSurroundings surroundings,
                                                      const SourceHistory& history = {});
  /// Stops and joins.
  ~SourceRunner();
  SourceRunner(const SourceRunner&) = delete;
  SourceRunner& operator=(const SourceRunner&) = delete;

  /// kExhausted: no thread is left.
  Result<void> start();
  /// Returns at once; any thread, any time.
  void stop();
  void join();

  const std::string& name() const { return source_.name; }
  const PipelineSource& source() const { return source_; }
  /// Any thread.
  SourceStatus status() const;
  /// Complete after join(). Any thread.
  SourceHistory history() const;

 private:
  SourceRunner(PipelineSource source, const PipelineSpec& spec, RunnerSurroundings surroundings,
               const SourceHistory& history, UniqueFd stop_fd);

  void work();
  RunOutcome run_one();
  Result<RunOptions> session_options();
  /// Where the next session's goes; empty for none.
  Result<std::filesystem::path> next_video();
  /// How long to wait for the next session; nothing when there is none.
  std::optional<Nanoseconds> after(const RunOutcome& outcome);
  std::optional<Nanoseconds> redial(const RunOutcome& outcome);
  void end(SourceState state);
  /// With what happened, when it is news.
  void say_problem(const Error& error);
  void take_frame(const FrameResult& result);
  void pass_frame();
  /// With the lock held: a frame has come. True for the first of the session.
  bool count_frame();
  void say_online();
  void take_message(const GstStructure* structure);
  /// With the lock held.
  std::int64_t shifted(std::int64_t pts_ns);
  void say(const std::string& line) const;

  const PipelineSource source_;
  const PipelineSpec& spec_;
  const RunnerSurroundings around_;
  const UniqueFd stop_fd_;
  const std::shared_ptr<LatencyBook> latency_;  ///< Of all its sessions.
  BackOff back_off_;                            // its own thread's
  std::string last_said_;                       // its own thread's
  int claimed_ = 0;  // its own thread's: the number of the video that was claimed last

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  SourceStatus status_;
  bool stopping_ = false;
  std::uint64_t session_frames_ = 0;
  TimePoint session_first_{};
  TimePoint session_last_{};
  SourceHistory history_;
  std::optional<std::int64_t> shift_;  ///< Of this session, once a frame had a time.

  std::thread thread_;  // last: uses all of the above
};

}  // namespace penstock
