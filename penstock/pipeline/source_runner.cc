// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/source_runner.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/pipeline/pipeline_source.h"

namespace penstock {
namespace {

/// From the last frame of a session to the first of the next, where no clock tells better.
constexpr std::int64_t kAssumedGap = 40'000'000;

std::string text_of(const GstStructure* structure, const char* name) {
  const gchar* text = gst_structure_get_string(structure, name);
  return text != nullptr ? text : "";
}

std::int64_t number_of(const GstStructure* structure, const char* name) {
  guint64 value = 0;
  return gst_structure_get_uint64(structure, name, &value) ? std::int64_t(value) : -1;
}

void count(PlaceCounts& counts, const std::string& event) {
  if (event == "entered") ++counts.entered;
  if (event == "left") ++counts.left;
  if (event == "crossed-forwards") ++counts.forwards;
  if (event == "crossed-backwards") ++counts.backwards;
}

bool looks_at_objects(const ElementSettings& stage) {
  return std::ranges::contains(stage.properties,
                               std::pair<std::string, std::string>("roi", "objects"));
}

/// A person must act: dialling often would only fill the camera's log.
bool needs_a_person(const Error& error) {
  return error.kind() == ErrorKind::kPermission || error.kind() == ErrorKind::kUnsupported;
}

}  // namespace

Result<std::unique_ptr<SourceRunner>> SourceRunner::create(PipelineSource source,
                                                           const PipelineSpec& spec,
                                                           RunnerSurroundings surroundings,
                                                           const SourceHistory& history) {
  UniqueFd stop_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_fd.is_valid()) {
    return fail(ErrorKind::kExhausted,
                str_format("source '{}': no file descriptor is left (ulimit -n): {}", source.name,
                           std::generic_category().message(errno)));
  }
  return std::unique_ptr<SourceRunner>(new SourceRunner(
      std::move(source), spec, std::move(surroundings), history, std::move(stop_fd)));
}

SourceRunner::SourceRunner(PipelineSource source, const PipelineSpec& spec,
                           RunnerSurroundings surroundings, const SourceHistory& history,
                           UniqueFd stop_fd)
    : source_(std::move(source)),
      spec_(spec),
      around_(std::move(surroundings)),
      stop_fd_(std::move(stop_fd)),
      latency_(std::make_shared<LatencyBook>(*around_.clock)),
      back_off_(around_.random),
      history_(history) {
  status_.name = source_.name;
  status_.address = shown_address(source_);
}

SourceRunner::~SourceRunner() {
  stop();
  join();
}

Result<void> SourceRunner::start() {
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error& error) {
    return fail(ErrorKind::kExhausted,
                str_format("source '{}': no thread is left: {}", source_.name, error.what()));
  }
  return {};
}

void SourceRunner::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  const std::uint64_t one = 1;
  // Fails only when the counter is full: then it is readable anyway.
  static_cast<void>(::write(stop_fd_.get(), &one, sizeof one) == sizeof one);
  changed_.notify_all();
}

void SourceRunner::join() {
  if (thread_.joinable()) thread_.join();
}

SourceStatus SourceRunner::status() const {
  const std::lock_guard lock(mutex_);
  SourceStatus status = status_;
  if (session_frames_ > 0) status.online += session_last_ - session_first_;
  status.stages = latency_->figures();
  return status;
}

SourceHistory SourceRunner::history() const {
  const std::lock_guard lock(mutex_);
  return history_;
}

void SourceRunner::say(const std::string& line) const {
  if (around_.say) around_.say(line);
}

void SourceRunner::work() {
  while (true) {
    const RunOutcome outcome = run_one();
    const auto wait = after(outcome);
    if (!wait) break;
    std::unique_lock lock(mutex_);
    if (around_.clock->wait_until(lock, changed_, around_.clock->now() + *wait,
                                  [this] { return stopping_; })) {
      lock.unlock();
      end(SourceState::kEnded);
      break;
    }
  }
  if (around_.on_end) around_.on_end();
}

RunOutcome SourceRunner::run_one() {
  {
    const std::lock_guard lock(mutex_);
    ++status_.sessions;
    status_.state = SourceState::kConnecting;
    session_frames_ = 0;
    shift_.reset();
  }
  auto options = session_options();
  if (options) return around_.run_session(*options);
  RunOutcome outcome;
  outcome.error = std::move(options).error();
  outcome.failed = RunPart::kSource;
  return outcome;
}

Result<RunOptions> SourceRunner::session_options() {
  auto source = open_source(source_);
  if (!source) return std::unexpected(std::move(source).error());
  auto video = next_video();
  if (!video) return std::unexpected(std::move(video).error());
  RunOptions options = around_.make_options();
  options.source = std::move(*source);
  options.name = source_.name;
  options.latency = latency_;
  options.stop_fd = stop_fd_.get();
  options.clock = around_.clock;
  options.convert = spec_.convert;
  options.count_upstream = false;
  if (source_.reconnect) options.stall_after = spec_.stall_after;
  options.on_plan = [this](const std::string& line) { say(line); };
  options.on_frame = [this](const FrameResult& result) { take_frame(result); };
  options.on_pass = [this] { pass_frame(); };
  options.on_message = [this](const GstStructure* structure) { take_message(structure); };
  const std::lock_guard lock(mutex_);
  options.behind = options.stages;
  if (spec_.track) {
    ElementSettings track{"pentrack", "track"};
    for (const Setting& setting : spec_.tracker) {
      track.properties.emplace_back(setting.name, setting.value);
    }
    // An id is one object's, over all sessions.
    track.properties.emplace_back("first-id", str_format("{}", history_.last_track + 1));
    // Whoever looks at objects wants to know them again.
    const auto at = std::ranges::find_if(options.behind, looks_at_objects);
    options.behind.insert(at, std::move(track));
  }
  if (!source_.zones.empty() || !source_.lines.empty()) {
    options.behind.push_back(
        {"penzone", "zones", {{"zones", source_.zones}, {"lines", source_.lines}}});
  }
  if (!spec_.video.empty()) {
    options.video = std::move(*video);
    auto& told = status_.videos;
    if (told.empty() || told.back() != options.video.string()) {
      told.push_back(options.video.string());
    }
    if (told.size() > SourceStatus::kMaxToldVideos) told.erase(told.begin());
  }
  return options;
}

Result<std::filesystem::path> SourceRunner::next_video() {
  if (spec_.video.empty()) return std::filesystem::path();
  const int number = history().video_number;
  std::filesystem::path path = video_path(spec_, source_, number);
  std::error_code ec;
  // A connection that gave no frame has left its file empty, or none.
  const bool is_own = number == claimed_ && std::filesystem::file_size(path, ec) == 0 && !ec;
  if (number == 1 || is_own) return path;
  auto video = claim_video(spec_, source_, number);
  if (!video) return std::unexpected(std::move(video).error());
  if (!video->taken.empty()) {
    say(str_format("'{}' is there already and stays; the video goes to '{}'",
                   video->taken.front().string(), video->path.string()));
  }
  claimed_ = video->number;
  const std::lock_guard lock(mutex_);
  history_.video_number = video->number;
  return std::move(video->path);
}

std::optional<Nanoseconds> SourceRunner::after(const RunOutcome& outcome) {
  bool stopped = false;
  std::uint64_t frames = 0;
  {
    const std::lock_guard lock(mutex_);
    frames = session_frames_;
    stopped = stopping_;
    status_.drawn += outcome.summary.outside.drawn;
    if (frames > 0) {
      status_.online += session_last_ - session_first_;
      session_frames_ = 0;
      if (!spec_.video.empty()) ++history_.video_number;
      back_off_.lived(session_last_ - session_first_);
    }
    if (outcome.error) status_.error = *outcome.error;
    status_.failed = outcome.failed;
  }
  // A limit that is used up may pass, and somebody may install the decoder that is missing.
  const bool may_pass = outcome.failed == RunPart::kPipeline && outcome.error &&
                        (outcome.error->kind() == ErrorKind::kExhausted ||
                         outcome.error->kind() == ErrorKind::kUnsupported);
  const bool of_source =
      outcome.failed == RunPart::kNone || outcome.failed == RunPart::kSource || may_pass;
  const bool is_camera = source_.reconnect && of_source;
  // A camera that is gone while it is being stopped has not failed.
  if (stopped && (is_camera || !outcome.error)) {
    end(SourceState::kEnded);
    return std::nullopt;
  }
  if (is_camera) return redial(outcome);
  if (outcome.error) {
    say_problem(*outcome.error);
    end(SourceState::kFailed);
    return std::nullopt;
  }
  if (source_.loop && frames > 0) return Nanoseconds::zero();
  end(SourceState::kEnded);
  return std::nullopt;
}

std::optional<Nanoseconds> SourceRunner::redial(const RunOutcome& outcome) {
  // run() ends a session with a video when the picture size changes; nothing is wrong with it.
  const bool resized = outcome.error && outcome.error->kind() == ErrorKind::kUnsupported &&
                       outcome.summary.frames > 0;
  const bool stalled = outcome.error && outcome.error->kind() == ErrorKind::kDeadline;
  {
    const std::lock_guard lock(mutex_);
    status_.state = stalled ? SourceState::kStalled : SourceState::kOffline;
    if (resized && session_last_ - session_first_ >= BackOff::kFirst) return Nanoseconds::zero();
  }
  const bool slow = outcome.error && !resized && needs_a_person(*outcome.error);
  const Nanoseconds wait = slow ? back_off_.slowest() : back_off_.next();
  if (outcome.error) {
    say_problem(*outcome.error);
  } else {
    say_problem(Error(ErrorKind::kIo, str_format("source '{}' ended the stream", status_.address)));
  }
  return wait;
}

void SourceRunner::end(SourceState state) {
  const std::lock_guard lock(mutex_);
  const bool never_came = source_.reconnect && status_.frames == 0;
  status_.state = state == SourceState::kEnded && never_came ? SourceState::kAbsent : state;
}

void SourceRunner::say_problem(const Error& error) {
  const std::string message = error.message();
  if (message == last_said_) return;
  last_said_ = message;
  say(source_.reconnect ? message + "; it is dialled again" : message);
}

void SourceRunner::take_frame(const FrameResult& given) {
  FrameResult result = given;
  result.source = source_.name;
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    result.frame = history_.frames;
    is_first = count_frame();
    result.pts_ns = shifted(given.pts_ns);
    for (const Detection& object : result.objects) {
      history_.last_track = std::max(history_.last_track, object.track_id);
      if (object.predicted) continue;
      ++status_.objects;
      ++status_.labels[object.label];
    }
  }
  if (is_first) say_online();
  if (around_.log != nullptr) around_.log->write(result);
}

void SourceRunner::pass_frame() {
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = count_frame();
  }
  if (is_first) say_online();
}

bool SourceRunner::count_frame() {
  session_last_ = around_.clock->now();
  const bool is_first = session_frames_++ == 0;
  if (is_first) session_first_ = session_last_;
  status_.state = SourceState::kOnline;
  ++status_.frames;
  ++history_.frames;
  return is_first;
}

void SourceRunner::say_online() {
  last_said_.clear();
  say("online");
}

// 36 years.
constexpr std::int64_t kLatestTime = std::int64_t{1} << 60;

std::int64_t SourceRunner::shifted(std::int64_t pts_ns) {
  if (pts_ns < 0) return pts_ns;
  // Sums of these do not overflow, whatever a file says.
  pts_ns = std::min(pts_ns, kLatestTime);
  const TimePoint now = around_.clock->now();
  if (!shift_) {
    shift_ = 0;
    if (!history_.epoch) {
      history_.epoch = now - Nanoseconds(pts_ns);
    } else {
      std::int64_t begin = history_.last_pts + kAssumedGap;
      // A camera's time goes on while nobody sees it.
      const Nanoseconds age = now - *history_.epoch;
      if (source_.reconnect) begin = std::max(begin, std::int64_t(age.count()));
      shift_ = begin - pts_ns;
    }
  }
  history_.last_pts = std::min(std::max(history_.last_pts + 1, pts_ns + *shift_), 2 * kLatestTime);
  return history_.last_pts;
}

void SourceRunner::take_message(const GstStructure* structure) {
  if (!gst_structure_has_name(structure, "penzone")) return;
  PlaceEvent event;
  event.source = source_.name;
  event.event = text_of(structure, "event");
  event.place = text_of(structure, "place");
  event.label = text_of(structure, "label");
  event.track_id = number_of(structure, "track-id");
  event.time_ns = number_of(structure, "running-time");
  event.dwell_ns = number_of(structure, "dwell");
  {
    const std::lock_guard lock(mutex_);
    count(status_.places[event.place], event.event);
    if (event.time_ns >= 0) {
      event.time_ns = std::min(event.time_ns, kLatestTime) + shift_.value_or(0);
    }
  }
  if (around_.log != nullptr) around_.log->write(event);
}

}  // namespace penstock
