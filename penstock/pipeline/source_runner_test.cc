// SPDX-License-Identifier: Apache-2.0
//
// The life of a source over its sessions, with sessions that the test makes up and a clock that
// stands still. No GStreamer pipeline is built.
#include "penstock/pipeline/source_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// One session as the test wants it.
struct Scene {
  int frames = 0;
  Nanoseconds apart = milliseconds(100);  ///< By the clock and the frames' times.
  std::optional<Error> error = {};
  RunPart failed = RunPart::kSource;
  std::int64_t track_id = 0;
};

class SourceRunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    // What a run that was killed left would take the names of this one's videos.
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    json_ = folder_ / "frames.jsonl";
    log_ = FrameLog::open(json_, {}, FileOps::system(), clock_).value();
    camera_.name = "door";
    camera_.kind = PipelineSourceKind::kRtsp;
    camera_.address = "rtsp://user:sesame@camera/1";
    camera_.reconnect = true;
    clip_.name = "clip";
    clip_.address = (folder_ / "clip.mp4").string();
    std::ofstream(clip_.address) << "x";
  }

  /// Starts `source` on these sessions; what comes after the last is a stop.
  void start(const PipelineSource& source, std::deque<Scene> scenes,
             const SourceHistory& history = {}) {
    scenes_ = std::move(scenes);
    ended_ = false;
    RunnerSurroundings around;
    around.make_options = [this] {
      RunOptions options;
      options.stages = stages_;
      return options;
    };
    around.run_session = [this](const RunOptions& options) { return play(options); };
    around.log = log_.get();
    around.clock = &clock_;
    around.random = [] { return 0.5; };
    around.say = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      said_.push_back(line);
    };
    around.on_end = [this] {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    };
    runner_ = SourceRunner::create(source, spec_, std::move(around), history).value();
    EXPECT_TRUE(runner_->start());
  }

  RunOutcome play(const RunOptions& options) {
    RunOutcome outcome;
    Scene scene;
    {
      const std::lock_guard lock(mutex_);
      starts_.push_back(clock_.now());
      changed_.notify_all();
      videos_.push_back(options.video.string());
      behind_.clear();
      for (const ElementSettings& element : options.behind) {
        behind_.push_back(element.name);
        for (const auto& [name, value] : element.properties) {
          if (name == "first-id") first_ids_.push_back(value);
        }
      }
      if (scenes_.empty()) {
        scene.error = Error(ErrorKind::kInternal, "the play is over");
        scene.failed = RunPart::kPipeline;
      } else {
        scene = scenes_.front();
        scenes_.pop_front();
      }
    }
    auto* const stage = options.latency->stage("infer");
    for (int n = 0; n < scene.frames; ++n) {
      if (n > 0) clock_.advance(scene.apart);
      options.latency->arrive(stage, {.pts_ns = n}, options.name);
      options.latency->leave(stage, {.pts_ns = n});
      FrameResult frame;
      frame.pts_ns = n * scene.apart.count();
      if (scene.track_id > 0) {
        frame.objects.push_back({});
        frame.objects.back().label = "person";
        frame.objects.back().track_id = scene.track_id;
      }
      options.on_frame(frame);
    }
    outcome.summary.frames = std::uint64_t(scene.frames);
    if (scene.error) {
      outcome.error = scene.error;
      outcome.failed = scene.failed;
    }
    return outcome;
  }

  /// Until the runner waits after its `count`-th session.
  void await_wait_after(std::size_t count) {
    {
      std::unique_lock lock(mutex_);
      ASSERT_TRUE(changed_.wait_for(lock, seconds(60), [&] { return starts_.size() >= count; }));
    }
    clock_.await_waiters(1);
  }
  void await_end() {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, seconds(60), [this] { return ended_; }));
  }
  std::vector<std::string> lines() {
    EXPECT_TRUE(log_->close().has_value());
    std::vector<std::string> lines;
    std::ifstream file(json_);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  ManualClock clock_;
  PipelineSpec spec_;
  PipelineSource camera_, clip_;
  std::filesystem::path folder_, json_;
  std::unique_ptr<FrameLog> log_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Scene> scenes_;
  std::vector<TimePoint> starts_;
  std::vector<std::string> said_, videos_, first_ids_;
  std::vector<std::string> behind_;  ///< Names of the last session's elements.
  std::vector<ElementSettings> stages_;
  bool ended_ = false;
  std::unique_ptr<SourceRunner> runner_;
};

Error refused() { return Error(ErrorKind::kNotFound, "nobody answers"); }

TEST_F(SourceRunnerTest, GivenAFile_WhenItEnds_ThenTheSourceHasEnded) {
  start(clip_, {{.frames = 3}});
  await_end();
  const SourceStatus status = runner_->status();
  EXPECT_EQ(status.state, SourceState::kEnded);
  EXPECT_EQ(status.frames, 3u);
  EXPECT_EQ(status.sessions, 1u);
  EXPECT_EQ(status.online, milliseconds(200));
}

TEST_F(SourceRunnerTest, GivenAFile_WhenItIsDamaged_ThenTheSourceHasFailedAndIsNotBegunAgain) {
  start(clip_, {{.frames = 1, .error = Error(ErrorKind::kCorrupt, "is cut short")}});
  await_end();
  const SourceStatus status = runner_->status();
  EXPECT_EQ(status.state, SourceState::kFailed);
  EXPECT_EQ(status.failed, RunPart::kSource);
  ASSERT_TRUE(status.error.has_value());
  EXPECT_EQ(status.error->message(), "is cut short");
  EXPECT_EQ(status.sessions, 1u);
}

TEST_F(SourceRunnerTest, GivenALoop_WhenTheFileEnds_ThenItIsBegunAgainAndNumbersAndTimesGoOn) {
  clip_.loop = true;
  // A loop without a frame would spin: the third ends it.
  start(clip_, {{.frames = 2}, {.frames = 2}, {.frames = 0}});
  await_end();
  EXPECT_EQ(runner_->status().sessions, 3u);
  const auto written = lines();
  ASSERT_EQ(written.size(), 4u);
  // 0 and 100 ms; then 40 ms later, and again 100 ms apart.
  const std::vector<long long> times{0, 100'000'000, 140'000'000, 240'000'000};
  for (std::size_t n = 0; n < 4; ++n) {
    EXPECT_EQ(written[n].find(
                  str_format("{{\"source\":\"clip\",\"frame\":{},\"pts_ns\":{},", n, times[n])),
              0u)
        << written[n];
  }
}

TEST_F(SourceRunnerTest, GivenACameraThatRefuses_WhenDialled_ThenWaitsDoubleAndItIsSaidOnce) {
  start(camera_, {{.error = refused()}, {.error = refused()}, {.error = refused()}, {.frames = 1}});
  std::size_t sessions = 0;
  for (const auto wait : {seconds(1), seconds(2), seconds(4)}) {
    await_wait_after(++sessions);
    EXPECT_EQ(runner_->status().state, SourceState::kOffline);
    clock_.advance(wait - Nanoseconds(1));
    EXPECT_EQ(clock_.waiters(), 1);
    clock_.advance(Nanoseconds(1));
  }
  await_wait_after(4);
  const std::vector<std::string> said = [this] {
    const std::lock_guard lock(mutex_);
    return said_;
  }();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0], "nobody answers; it is dialled again");
  EXPECT_EQ(said[1], "online");
  EXPECT_NE(said[2].find("ended the stream"), std::string::npos);
  const std::lock_guard lock(mutex_);
  ASSERT_EQ(starts_.size(), 4u);
  EXPECT_EQ(starts_[1] - starts_[0], seconds(1));
  EXPECT_EQ(starts_[2] - starts_[1], seconds(2));
  EXPECT_EQ(starts_[3] - starts_[2], seconds(4));
}

TEST_F(SourceRunnerTest, GivenACameraThatNeverCame_WhenStopped_ThenItIsAbsentAndHasNoLatency) {
  start(camera_, {{.error = refused()}});
  await_wait_after(1);
  runner_->stop();
  await_end();
  const SourceStatus status = runner_->status();
  EXPECT_EQ(status.state, SourceState::kAbsent);
  EXPECT_TRUE(status.is_over());
  const std::string table = to_table({status});
  EXPECT_NE(table.find(" absent "), std::string::npos) << table;
  EXPECT_NE(table.find(" 1  -\n"), std::string::npos) << table;
}

TEST_F(SourceRunnerTest, GivenAWrongPassword_WhenRefused_ThenItIsRetriedAtTheSlowestRate) {
  const Error wrong(ErrorKind::kPermission, "the camera refuses the password");
  start(camera_, {{.error = wrong}, {.error = wrong}});
  await_wait_after(1);
  clock_.advance(seconds(59));
  EXPECT_EQ(clock_.waiters(), 1);
  EXPECT_EQ(runner_->status().sessions, 1u);
  clock_.advance(seconds(1));
  await_wait_after(2);
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(said_.size(), 1u);
}

TEST_F(SourceRunnerTest, GivenAStall_WhenDialledAgain_ThenTheStateTellsAndTheTimeGoesOn) {
  const Error silent(ErrorKind::kDeadline, "no frame came for 10 s");
  start(camera_, {{.frames = 31, .error = silent}, {.frames = 1}});
  await_wait_after(1);
  EXPECT_EQ(runner_->status().state, SourceState::kStalled);
  clock_.advance(seconds(1));
  await_wait_after(2);
  runner_->stop();
  await_end();
  EXPECT_EQ(runner_->status().state, SourceState::kEnded);
  const auto written = lines();
  ASSERT_EQ(written.size(), 32u);
  // 3 s of frames, a wait of 1 s: the camera's clock went on.
  EXPECT_NE(written[31].find("\"frame\":31,\"pts_ns\":4000000000,"), std::string::npos)
      << written[31];
}

TEST_F(SourceRunnerTest, GivenTracks_WhenDialledAgain_ThenIdsGoOn) {
  spec_.track = true;
  start(camera_, {{.frames = 1, .track_id = 41}, {.frames = 1, .track_id = 42}});
  await_wait_after(1);
  clock_.advance(seconds(2));
  await_wait_after(2);
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(first_ids_, (std::vector<std::string>{"1", "42"}));
}

TEST_F(SourceRunnerTest, GivenAVideo_WhenTheSizeChanges_ThenTheNextFileHasANumberAndThereIsNoWait) {
  spec_.video = (folder_ / "{source}.mp4").string();
  const Error resized(ErrorKind::kUnsupported, "the picture size changes");
  start(camera_, {{.frames = 20, .error = resized}, {.error = refused()}});
  await_wait_after(2);
  const std::lock_guard lock(mutex_);
  ASSERT_EQ(starts_.size(), 2u);
  EXPECT_EQ(starts_[1] - starts_[0], milliseconds(1900));
  EXPECT_EQ(videos_, (std::vector<std::string>{(folder_ / "door.mp4").string(),
                                               (folder_ / "door.2.mp4").string()}));
}

TEST_F(SourceRunnerTest, GivenANameThatIsTaken_WhenTheNextVideoIsBegun_ThenItStaysAndIsSaid) {
  spec_.video = (folder_ / "{source}.mp4").string();
  std::ofstream(folder_ / "door.2.mp4") << "somebody's";
  const Error resized(ErrorKind::kUnsupported, "the picture size changes");
  start(camera_, {{.frames = 20, .error = resized},
                  {.error = refused()},
                  {.frames = 20, .error = resized},
                  {.error = refused()}});
  await_wait_after(2);
  clock_.advance(seconds(2));
  await_wait_after(4);
  const std::lock_guard lock(mutex_);
  const std::string third = (folder_ / "door.3.mp4").string();
  EXPECT_EQ(videos_, (std::vector<std::string>{(folder_ / "door.mp4").string(), third,
                                               // Nothing came, and the name is its own already.
                                               third, (folder_ / "door.4.mp4").string()}));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "door.2.mp4"), 10u);
  EXPECT_EQ(std::ranges::count(said_, "'" + (folder_ / "door.2.mp4").string() +
                                          "' is there already and stays; the video goes to '" +
                                          third + "'"),
            1);
}

TEST_F(SourceRunnerTest, GivenAnOutputThatFails_WhenACameraRuns_ThenItHasFailedForGood) {
  start(camera_, {{.frames = 1,
                   .error = Error(ErrorKind::kExhausted, "the disk is full"),
                   .failed = RunPart::kOutputWrite}});
  await_end();
  EXPECT_EQ(runner_->status().state, SourceState::kFailed);
  EXPECT_EQ(runner_->status().failed, RunPart::kOutputWrite);
}

TEST_F(SourceRunnerTest, GivenAPassword_WhenToldOf_ThenItIsNowhere) {
  start(camera_, {{}});
  await_wait_after(1);
  EXPECT_EQ(runner_->status().address, "rtsp://user:***@camera/1");
  const std::lock_guard lock(mutex_);
  for (const std::string& line : said_) EXPECT_EQ(line.find("sesame"), std::string::npos) << line;
}

TEST_F(SourceRunnerTest, GivenANameThatWasThere_WhenASourceHasItAgain_ThenAllGoesOn) {
  spec_.track = true;
  spec_.video = (folder_ / "{source}.mp4").string();
  start(clip_, {{.frames = 3, .track_id = 7}});
  await_end();
  runner_->join();
  const SourceHistory history = runner_->history();
  start(clip_, {{.frames = 2, .track_id = 8}}, history);
  await_end();
  runner_->join();
  EXPECT_EQ(runner_->status().frames, 2u) << "its own";
  EXPECT_EQ(first_ids_, (std::vector<std::string>{"1", "8"}));
  EXPECT_EQ(videos_, (std::vector<std::string>{(folder_ / "clip.mp4").string(),
                                               (folder_ / "clip.2.mp4").string()}));
  const auto all = lines();
  ASSERT_EQ(all.size(), 5u);
  const std::vector<std::string> starts{
      "\"frame\":0,\"pts_ns\":0,", "\"frame\":1,\"pts_ns\":100000000,",
      "\"frame\":2,\"pts_ns\":200000000,",
      // 40 ms are taken for a frame where no camera's clock tells.
      "\"frame\":3,\"pts_ns\":240000000,", "\"frame\":4,\"pts_ns\":340000000,"};
  for (std::size_t n = 0; n < starts.size(); ++n) {
    EXPECT_NE(all[n].find(starts[n]), std::string::npos) << all[n];
  }
}

TEST_F(SourceRunnerTest, GivenStages_WhenTracked_ThenWhoLooksAtObjectsComesBehindTheTracker) {
  stages_ = {{"peninfer", "whole", {{"roi", "full-frame"}}},
             {"peninfer", "objects", {{"roi", "objects"}}},
             {"peninfer", "tiles", {{"roi", "tiles"}}}};
  spec_.track = true;
  clip_.zones = "z: 0,0 1,0 1,1";
  start(clip_, {{.frames = 1}});
  await_end();
  EXPECT_EQ(behind_, (std::vector<std::string>{"whole", "track", "objects", "tiles", "zones"}));
}

TEST_F(SourceRunnerTest, GivenStagesWithoutObjects_WhenTracked_ThenTheTrackerComesLast) {
  stages_ = {{"peninfer", "whole", {{"roi", "full-frame"}}}};
  spec_.track = true;
  start(clip_, {{.frames = 1}});
  await_end();
  EXPECT_EQ(behind_, (std::vector<std::string>{"whole", "track"}));
}

TEST_F(SourceRunnerTest, GivenTwoSessions_WhenAsked_ThenTheLatencyIsThatOfBoth) {
  start(camera_, {{.frames = 3}, {.frames = 4}});
  await_wait_after(1);
  clock_.advance(seconds(2));
  await_wait_after(2);
  const SourceStatus status = runner_->status();
  ASSERT_EQ(status.stages.size(), 1u);
  EXPECT_EQ(status.stages[0].stage, "infer");
  EXPECT_EQ(status.stages[0].stream, "door");
  EXPECT_EQ(status.stages[0].frames, 7u);
  EXPECT_EQ(status.latency().frames, 7u);
}

}  // namespace
}  // namespace penstock
