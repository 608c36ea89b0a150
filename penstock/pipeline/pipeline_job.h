// SPDX-License-Identifier: Apache-2.0
//
// PipelineJob analyses several sources with one model, each on its own (SourceRunner): a source's
// failure ends that source. Sources may be added and removed while it runs.
//
//   PipelineOptions options{.spec = spec, .make_options = ..., .random = ...};
//   PipelineJob job(std::move(options));
//   PipelineOutcome outcome = job.execute();     // blocks until all sources are over
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/base/file_ops.h"
#include "penstock/base/unique_fd.h"
#include "penstock/pipeline/control_commands.h"
#include "penstock/pipeline/control_server.h"
#include "penstock/pipeline/frame_log.h"
#include "penstock/pipeline/output_file.h"
#include "penstock/pipeline/outside_copies.h"
#include "penstock/pipeline/pipeline_spec.h"
#include "penstock/pipeline/run_job.h"
#include "penstock/pipeline/shared_model.h"
#include "penstock/pipeline/source_runner.h"
#include "penstock/pipeline/source_status.h"
#include "penstock/pipeline/upstream_copies.h"

namespace penstock {

struct PipelineOptions {
  PipelineSpec spec;  ///< Without problems.
  /// A session's options but for what the spec says: model, readers. Any thread.
  std::function<RunOptions()> make_options;
  /// What add() asks of a source's zones and lines beside what penzone takes; none: nothing. Any
  /// thread.
  std::function<Result<void>(const PipelineSource&)> check_places = {};
  RandomPart random;  ///< Any thread.
  /// Lines for people ("plan: ...", "door: online"). One at a time, from several threads.
  std::function<void(const std::string&)> say;
  int stop_fd = -1;  ///< Becomes readable when the run is to end; -1: never.
  FileOps* files = &FileOps::system();
  Clock* clock = &Clock::system();
};

struct PipelineOutcome {
  std::vector<SourceStatus> sources;  ///< Those that were removed, too, the last kMaxPast of them.
  std::vector<CopyLedger::Row> ledger;
  OutsideCopies outside;         ///< Of all sources.
  std::uint64_t frames() const;  ///< Analysed, of all sources.
  /// What failed for all, or else the first source that failed and was not removed, in the order of
  /// the spec and then of adding.
  std::optional<Error> error;
  RunPart failed = RunPart::kNone;
  bool stopped = false;  ///< By stop_fd.
};

class PipelineJob final : public ControlTarget {
 public:
  static constexpr std::size_t kMaxPast = 256;
  /// Names that a run can have had: what goes on under each is kept.
  static constexpr std::size_t kMaxNames = 4096;

  explicit PipelineJob(PipelineOptions options);
  ~PipelineJob() override;
  PipelineJob(const PipelineJob&) = delete;
  PipelineJob& operator=(const PipelineJob&) = delete;

  /// Once. gst_init() and the registration of the elements come before.
  PipelineOutcome execute();

  // While it executes, from any thread.

  /// Under a name that was removed, numbers, times, ids and videos go on where they were.
  /// kInvalidArgument for a name that is taken, kExhausted for one source or one name too many,
  /// kCancelled when the run is ending; what check_source() says.
  Result<void> add(const PipelineSource& source) override;
  /// Returns at once; the source finishes what it has accepted. kNotFound.
  Result<void> remove(const std::string& name) override;
  /// In the order in which they were added.
  std::vector<SourceStatus> statuses() const override;

 private:
  bool open();
  /// Neither it nor its video may be in the way of what the run reads and writes.
  Result<void> check_files(const PipelineSource& source) const;
  RunnerSurroundings surroundings(const std::string& name);
  Result<void> start(const PipelineSource& source);
  /// What the YAML's checks would say of a source that comes later.
  Result<void> check_fits(const PipelineSource& source) const;
  void loop();
  /// Takes away what is over and was removed; true when every source is over.
  bool reap();
  void tell_stats();
  void say(const std::string& line);
  void wake() const;
  void fail(Error error, RunPart part);
  PipelineOutcome finish();
  void count_outside();
  Result<void> write_report();

  struct Entry {
    std::unique_ptr<SourceRunner> runner;
    bool removed = false;
  };

  PipelineOptions options_;
  std::unique_ptr<SharedModel> model_;  // outlives the runners
  std::unique_ptr<FrameLog> log_;
  std::unique_ptr<UpstreamCopies> upstream_;
  OutputFile report_;
  UniqueFd wake_fd_;
  PipelineOutcome outcome_;  // the loop's
  std::mutex say_mutex_;
  std::unique_ptr<ControlServer> control_;

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  std::deque<SourceStatus> past_;
  std::map<std::string, SourceHistory, std::less<>> histories_;  ///< Of those that were removed.
  bool ending_ = true;
};

}  // namespace penstock
