// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/pipeline_job.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "penstock/base/deadline.h"
#include "penstock/base/str_format.h"
#include "penstock/pipeline/pipeline_files.h"
#include "penstock/pipeline/pipeline_report.h"
#include "penstock/pipeline/pipeline_source.h"
#include "penstock/pipeline/run_report.h"

namespace penstock {

namespace {

Result<void> check_apart(std::span<const PipelineFile> files, std::size_t begin) {
  auto conflicts = find_conflicts(files, begin);
  if (conflicts.empty()) return {};
  return fail(ErrorKind::kInvalidArgument, std::move(conflicts.front().what));
}

}  // namespace

PipelineJob::PipelineJob(PipelineOptions options)
    : options_(std::move(options)), wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

PipelineJob::~PipelineJob() = default;

void PipelineJob::wake() const {
  const std::uint64_t one = 1;
  // Fails only when the counter is full: then it is readable anyway.
  static_cast<void>(::write(wake_fd_.get(), &one, sizeof one) == sizeof one);
}

void PipelineJob::say(const std::string& line) {
  const std::lock_guard lock(say_mutex_);
  if (options_.say) options_.say(line);
}

void PipelineJob::fail(Error error, RunPart part) {
  if (outcome_.error) return;
  outcome_.error = std::move(error);
  outcome_.failed = part;
}

PipelineOutcome PipelineJob::execute() {
  if (open()) loop();
  return finish();
}

bool PipelineJob::open() {
  if (!wake_fd_.is_valid()) {
    fail(Error(ErrorKind::kExhausted, "no file descriptor is left (ulimit -n)"),
         RunPart::kPipeline);
    return false;
  }
  const PipelineSpec& spec = options_.spec;
  std::vector<PipelineFile> files = files_of(spec, options_.make_options());
  for (const PipelineSource& source : spec.sources) {
    for (PipelineFile& file : files_of(spec, source)) files.push_back(std::move(file));
  }
  if (auto apart = check_apart(files, 0); !apart) {
    fail(std::move(apart).error(), RunPart::kOutputCreate);
    return false;
  }
  if (!spec.control.empty()) {
    // First: where another run has it, no file of that run may be touched.
    auto control = ControlServer::open(
        spec.control, [this](std::string_view line) { return answer_control(line, *this); },
        *options_.clock);
    if (!control) {
      fail(std::move(control).error(), RunPart::kPipeline);
      return false;
    }
    control_ = std::move(*control);
  }
  if (options_.make_options().count_upstream) upstream_ = std::make_unique<UpstreamCopies>();
  auto log = FrameLog::open(spec.json, spec.events, *options_.files, *options_.clock);
  if (!log) {
    fail(std::move(log).error(), RunPart::kOutputCreate);
    return false;
  }
  log_ = std::move(*log);
  if (!spec.report.empty()) {
    auto report = OutputFile::open(spec.report, *options_.files);
    if (!report) {
      fail(std::move(report).error(), RunPart::kOutputCreate);
      return false;
    }
    report_ = std::move(*report);
  }
  log_->on_failure = [this] { wake(); };
  auto model = SharedModel::open(options_.make_options());
  if (!model) {
    fail(std::move(model).error(), RunPart::kModel);
    return false;
  }
  model_ = std::move(*model);
  {
    const std::lock_guard lock(mutex_);
    ending_ = false;
  }
  for (const PipelineSource& source : spec.sources) {
    if (auto started = start(source); !started) {
      fail(std::move(started).error(), RunPart::kPipeline);
      return false;
    }
  }
  if (control_ == nullptr) return true;
  if (auto started = control_->start(); !started) {
    fail(std::move(started).error(), RunPart::kPipeline);
    return false;
  }
  return true;
}

Result<void> PipelineJob::check_files(const PipelineSource& source) const {
  const PipelineSpec& spec = options_.spec;
  std::vector<PipelineFile> files = files_of(spec, options_.make_options());
  const auto append = [&files](std::vector<PipelineFile> more) {
    for (PipelineFile& file : more) files.push_back(std::move(file));
  };
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    const PipelineSource& other = entry.runner->source();
    const SourceStatus status = entry.runner->status();
    // A video that is finished may be read as any other file.
    std::filesystem::path video = status.is_over() ? "" : video_path(spec, other, 1);
    if (!status.is_over() && !status.videos.empty()) video = status.videos.back();
    append(files_of(other, video));
  }
  const std::size_t begin = files.size();
  // Under a name that was there, the video has a number, and a name that is free.
  const auto history = histories_.find(source.name);
  const bool is_first = history == histories_.end() || history->second.video_number == 1;
  append(is_first ? files_of(spec, source) : files_of(source, ""));
  return check_apart(files, begin);
}

RunnerSurroundings PipelineJob::surroundings(const std::string& name) {
  RunnerSurroundings around;
  around.make_options = [this] {
    RunOptions options = options_.make_options();
    options.files = options_.files;
    options.on_built = [this](GstElement* pipeline) { model_->share(pipeline); };
    return options;
  };
  around.log = log_.get();
  around.clock = options_.clock;
  around.random = options_.random;
  around.say = [this, name](const std::string& line) { say(str_format("{}: {}", name, line)); };
  around.on_end = [this] { wake(); };
  return around;
}

Result<void> PipelineJob::start(const PipelineSource& source) {
  const std::lock_guard lock(mutex_);
  if (ending_) return penstock::fail(ErrorKind::kCancelled, "the run is ending");
  if (std::ranges::any_of(entries_, [&source](const Entry& entry) {
        return entry.runner->name() == source.name;
      })) {
    return penstock::fail(ErrorKind::kInvalidArgument,
                          str_format("there is a source '{}' already", source.name));
  }
  if (entries_.size() >= kMaxPipelineSources) {
    return penstock::fail(ErrorKind::kExhausted,
                          str_format("there are {} sources, which is all", entries_.size()));
  }
  const auto history = histories_.find(source.name);
  if (history == histories_.end() && histories_.size() + entries_.size() >= kMaxNames) {
    return penstock::fail(ErrorKind::kExhausted,
                          str_format("this run has had {} names of sources, which is all; one that "
                                     "was removed can be used again",
                                     kMaxNames));
  }
  auto runner =
      SourceRunner::create(source, options_.spec, surroundings(source.name),
                           history != histories_.end() ? history->second : SourceHistory{});
  if (!runner) return std::unexpected(std::move(runner).error());
  PENSTOCK_TRY((*runner)->start());
  entries_.push_back({std::move(*runner)});
  return {};
}

Result<void> PipelineJob::add(const PipelineSource& source) {
  PENSTOCK_TRY(check_source(source));
  PENSTOCK_TRY(check_files(source));
  PENSTOCK_TRY(check_fits(source));
  return start(source);
}

Result<void> PipelineJob::check_fits(const PipelineSource& source) const {
  const PipelineSpec& spec = options_.spec;
  if (source.loop && !spec.video.empty()) {
    return penstock::fail(ErrorKind::kInvalidArgument, "loop would write video files for ever");
  }
  if (source.zones.empty() && source.lines.empty()) return {};
  if (!spec.track) {
    return penstock::fail(ErrorKind::kInvalidArgument,
                          "zones and lines need tracks, which the run has not");
  }
  PENSTOCK_TRY(
      try_element({"penzone", "zones", {{"zones", source.zones}, {"lines", source.lines}}}));
  return options_.check_places ? options_.check_places(source) : Result<void>();
}

Result<void> PipelineJob::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.runner->name() != name) continue;
    entry.removed = true;
    entry.runner->stop();
    wake();
    return {};
  }
  return penstock::fail(ErrorKind::kNotFound, str_format("there is no source '{}'", name));
}

std::vector<SourceStatus> PipelineJob::statuses() const {
  const std::lock_guard lock(mutex_);
  std::vector<SourceStatus> statuses;
  for (const Entry& entry : entries_) statuses.push_back(entry.runner->status());
  return statuses;
}

bool PipelineJob::reap() {
  const std::lock_guard lock(mutex_);
  bool all_over = true;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const SourceStatus status = entry->runner->status();
    if (!status.is_over()) all_over = false;
    if (!status.is_over() || !entry->removed) {
      ++entry;
      continue;
    }
    entry->runner->join();
    histories_[status.name] = entry->runner->history();
    past_.push_back(status);
    if (past_.size() > kMaxPast) past_.pop_front();
    entry = entries_.erase(entry);
  }
  return all_over;
}

void PipelineJob::tell_stats() {
  for (const SourceStatus& status : statuses()) say(to_stats_line(status));
}

void PipelineJob::loop() {
  const Nanoseconds interval = options_.spec.stats_interval;
  Deadline next_stats = interval > Nanoseconds::zero() ? Deadline::after(*options_.clock, interval)
                                                       : Deadline::never();
  while (true) {
    if (reap() && !options_.spec.stay_open) return;
    if (log_->has_failed()) return;
    std::array<pollfd, 2> fds{{{wake_fd_.get(), POLLIN, 0}, {options_.stop_fd, POLLIN, 0}}};
    ::poll(fds.data(), options_.stop_fd >= 0 ? 2 : 1, 500);
    std::uint64_t count = 0;
    // Empty after a time-out.
    static_cast<void>(::read(wake_fd_.get(), &count, sizeof count) == sizeof count);
    if ((fds[1].revents & POLLIN) != 0) {
      outcome_.stopped = true;
      return;
    }
    if (!next_stats.passed(*options_.clock)) continue;
    tell_stats();
    next_stats = Deadline::after(*options_.clock, interval);
  }
}

Result<void> PipelineJob::write_report() {
  const std::filesystem::path& path = options_.spec.report;
  const std::string model = options_.make_options().model_name;
  const std::string text =
      is_json_report(path) ? to_json(outcome_, model) : to_html(outcome_, model);
  auto written = options_.files->write_all(report_.fd(), std::as_bytes(std::span(text)));
  auto kept = report_.check_kept(text.size());
  report_.close();
  if (written) return kept;
  return std::unexpected(
      std::move(written).error().context(str_format("writing '{}'", path.string())));
}

namespace {

/// What the models' devices touched, one row for what is alike.
std::vector<CopyLedger::Row> read_ledgers(const SharedModel& model, const RunOptions& options) {
  std::vector<CopyLedger::Row> sums;
  for (GstElement* infer : model.infers()) {
    for (CopyLedger::Row& row : options.read_ledger(infer)) {
      const auto same = std::ranges::find_if(sums, [&row](const CopyLedger::Row& sum) {
        return sum.copy_class == row.copy_class && sum.site == row.site;
      });
      if (same == sums.end()) {
        sums.push_back(std::move(row));
      } else {
        same->count += row.count;
        same->bytes += row.bytes;
      }
    }
  }
  return sums;
}

}  // namespace

std::uint64_t PipelineOutcome::frames() const {
  std::uint64_t sum = 0;
  for (const SourceStatus& source : sources) sum += source.frames;
  return sum;
}

void PipelineJob::count_outside() {
  OutsideCopies& outside = outcome_.outside;
  outside.decoder = "all decoders";
  for (const SourceStatus& source : outcome_.sources) outside.drawn += source.drawn;
  if (upstream_ == nullptr) return;
  // Where a decoder that is not counted had a part, nothing is said of any.
  outside.upstream_known = upstream_->is_known() && upstream_->decoded() >= outcome_.frames();
  outside.upstream = upstream_->copied();
}

PipelineOutcome PipelineJob::finish() {
  control_.reset();
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (const Entry& entry : entries_) entry.runner->stop();
  }
  // Nothing is added or taken away any more.
  for (const Entry& entry : entries_) entry.runner->join();
  outcome_.sources.assign(past_.begin(), past_.end());
  std::optional<SourceStatus> failed;
  for (const Entry& entry : entries_) {
    SourceStatus status = entry.runner->status();
    // Who removes a source has done with it, however it ended.
    const bool counts = !entry.removed && status.state == SourceState::kFailed && status.error;
    if (counts && !failed) failed = status;
    outcome_.sources.push_back(std::move(status));
  }
  entries_.clear();
  if (log_ != nullptr) {
    if (auto closed = log_->close(); !closed) {
      fail(std::move(closed).error(), RunPart::kOutputWrite);
    }
  }
  if (model_ != nullptr) {
    const RunOptions options = options_.make_options();
    if (options.read_ledger) outcome_.ledger = read_ledgers(*model_, options);
    model_.reset();
  }
  count_outside();
  if (failed && failed->error) fail(*failed->error, failed->failed);
  if (report_.is_open()) {
    if (auto written = write_report(); !written) {
      fail(std::move(written).error(), RunPart::kOutputWrite);
    }
  }
  return std::move(outcome_);
}

}  // namespace penstock
