// SPDX-License-Identifier: Apache-2.0
//
// When a source is silent: told by hand, and in a run whose analysis a test holds up. The analysis
// is an element of the test's in peninfer's place, the clock stands still until it is moved.
#include "penstock/pipeline/silence.h"

#include <gst/base/gstbasetransform.h>
#include <gst/gst.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "penstock/base/unique_fd.h"
#include "penstock/pipeline/run_job.h"

namespace penstock {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TimePoint at(int ms) { return TimePoint(milliseconds(ms)); }

TEST(Silence, GivenFrames_WhenNoneComes_ThenItGrowsFromTheFirstLookWithoutANewOne) {
  Silence silence;
  EXPECT_EQ(silence.look(at(100), 1, false), Nanoseconds(0));
  EXPECT_EQ(silence.look(at(300), 2, false), Nanoseconds(0));
  EXPECT_EQ(silence.look(at(500), 2, false), milliseconds(200));
  EXPECT_EQ(silence.look(at(1300), 2, false), milliseconds(1000));
  EXPECT_EQ(silence.look(at(1500), 3, false), Nanoseconds(0));
}

TEST(Silence, GivenAFrameThatIsNotTakenForLong_WhenItIs_ThenTheSourceWasNotSilent) {
  Silence silence;
  silence.look(at(0), 1, false);
  EXPECT_EQ(silence.look(at(9000), 2, true), Nanoseconds(0));
  EXPECT_EQ(silence.look(at(18000), 2, true), Nanoseconds(0));
  EXPECT_EQ(silence.look(at(18200), 2, false), milliseconds(200));
  // Nobody looked while one was held up; the next look finds it gone.
  EXPECT_EQ(silence.look(at(40000), 3, false), Nanoseconds(0));
}

/// What the test tells the analysis, and what it knows of it.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++entered_;
    changed_.wait(lock, [this] { return open_; });
  }
  void set_open(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  int entered() const {
    const std::lock_guard lock(mutex_);
    return entered_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int entered_ = 0;
};
Gate* gate = nullptr;

struct HeldInfer {
  GstBaseTransform parent;
};
struct HeldInferClass {
  GstBaseTransformClass parent;
};
G_DEFINE_TYPE(HeldInfer, held_infer, GST_TYPE_BASE_TRANSFORM)

void held_infer_init(HeldInfer*) {}

void held_infer_class_init(HeldInferClass* klass) {
  auto* object_class = G_OBJECT_CLASS(klass);
  object_class->set_property = [](GObject* self, guint, const GValue* value, GParamSpec* spec) {
    g_object_set_data_full(self, spec->name, g_value_dup_string(value), g_free);
  };
  object_class->get_property = [](GObject* self, guint, GValue* value, GParamSpec* spec) {
    g_value_set_string(value, static_cast<const char*>(g_object_get_data(self, spec->name)));
  };
  guint id = 0;
  for (const char* name : {"model", "device", "policy"}) {
    g_object_class_install_property(
        object_class, ++id, g_param_spec_string(name, name, name, nullptr, G_PARAM_READWRITE));
  }
  auto* element_class = GST_ELEMENT_CLASS(klass);
  for (const auto& [name, direction] :
       {std::pair{"sink", GST_PAD_SINK}, std::pair{"src", GST_PAD_SRC}}) {
    gst_element_class_add_pad_template(
        element_class, gst_pad_template_new(name, direction, GST_PAD_ALWAYS, GST_CAPS_ANY));
  }
  gst_element_class_set_static_metadata(element_class, "held", "Filter", "held", "tests");
  GST_BASE_TRANSFORM_CLASS(klass)->transform_ip = [](GstBaseTransform*, GstBuffer*) {
    gate->pass();
    return GST_FLOW_OK;
  };
}

/// Counts how often it is asked, which is how far a loop that asks it has come.
class AskedClock final : public Clock {
 public:
  TimePoint now() const override {
    ++asked_;
    return clock_.now();
  }
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv, TimePoint until,
                  const std::function<bool()>& ready) override {
    return clock_.wait_until(lock, cv, until, ready);
  }
  void advance(Nanoseconds by) { clock_.advance(by); }
  int asked() const { return asked_; }

 private:
  ManualClock clock_;
  mutable std::atomic<int> asked_{0};
};

class SilentRun : public testing::Test {
 protected:
  void SetUp() override {
    gst_init(nullptr, nullptr);
    gate = &gate_;
    ASSERT_TRUE(gst_element_register(nullptr, "peninfer", GST_RANK_NONE, held_infer_get_type()));
    clock_.advance(seconds(100));
    stop_fd_.reset(::eventfd(0, EFD_CLOEXEC));
    options_.source.kind = SourceKind::kElement;
    options_.source.text = "test";
    options_.stall_after = seconds(5);
    options_.count_upstream = false;
    options_.clock = &clock_;
    options_.stop_fd = stop_fd_.get();
    options_.read_frame = [this](GstBuffer*) { return FrameReading{&result_, &times_}; };
  }
  void TearDown() override {
    gate_.set_open(true);
    stop();
    if (run_.joinable()) run_.join();
  }
  void start() {
    run_ = std::thread([this] {
      outcome_ = run(options_);
      over_ = true;
    });
  }
  void stop() {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(stop_fd_.get(), &one, sizeof one), ssize_t(sizeof one));
  }
  bool await_entered(int count) {
    const auto limit = std::chrono::steady_clock::now() + seconds(60);
    while (!over_ && gate_.entered() < count && std::chrono::steady_clock::now() < limit) {
      std::this_thread::yield();
    }
    return gate_.entered() >= count;
  }
  /// What ended the run.
  std::string why() const {
    return over_ && outcome_.error ? outcome_.error->message() : std::string("it runs");
  }
  /// The loop has gone round a few times, or the run is over. False: it hangs in its end.
  bool await_rounds() {
    const int before = clock_.asked();
    const auto limit = std::chrono::steady_clock::now() + seconds(20);
    while (!over_ && clock_.asked() < before + 4) {
      if (std::chrono::steady_clock::now() > limit) return false;
      std::this_thread::yield();
    }
    return true;
  }

  Gate gate_;
  AskedClock clock_;
  UniqueFd stop_fd_;
  FrameResult result_;
  StageTimes times_;
  RunOptions options_;
  RunOutcome outcome_;
  std::atomic<bool> over_{false};
  std::thread run_;
};

GstElement* make_camera() {
  return gst_parse_bin_from_description(
      "videotestsrc is-live=true ! "
      "capsfilter caps=video/x-raw,format=I420,width=64,height=64,framerate=25/1",
      TRUE, nullptr);
}

TEST_F(SilentRun, GivenALiveSource_WhenItsFramesAreHeldUpForLong_ThenItIsNotTakenForDead) {
  options_.source.make_element = make_camera;
  start();
  ASSERT_TRUE(await_entered(2)) << why();
  gate_.set_open(false);
  const int before = gate_.entered();
  ASSERT_TRUE(await_entered(before + 1)) << why();
  for (int n = 0; n < 3; ++n) {
    ASSERT_TRUE(await_rounds());
    clock_.advance(seconds(60));
  }
  ASSERT_TRUE(await_rounds());
  EXPECT_FALSE(over_) << "back-pressure is not silence";
  gate_.set_open(true);
  EXPECT_TRUE(await_entered(before + 4)) << "and it goes on";
  stop();
  run_.join();
  EXPECT_FALSE(outcome_.error.has_value()) << outcome_.error->message();
  EXPECT_TRUE(outcome_.stopped);
}

constexpr int kFramesOfThree = 3;

/// A live source of three frames that says nothing afterwards, not even that it is over.
GstElement* make_three_frames() {
  GstElement* bin = gst_parse_bin_from_description(
      "appsrc name=three is-live=true format=time "
      "caps=video/x-raw,format=I420,width=64,height=64,framerate=25/1",
      TRUE, nullptr);
  GstElement* source = gst_bin_get_by_name(GST_BIN(bin), "three");
  const auto push = [](GstElement* element, guint, gpointer) {
    const int pushed = GPOINTER_TO_INT(g_object_get_data(G_OBJECT(element), "pushed"));
    if (pushed == kFramesOfThree) return;
    g_object_set_data(G_OBJECT(element), "pushed", GINT_TO_POINTER(pushed + 1));
    GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 64 * 64 * 3 / 2, nullptr);
    gst_buffer_memset(buffer, 0, 128, 64 * 64 * 3 / 2);
    GST_BUFFER_PTS(buffer) = GstClockTime(pushed) * 40 * GST_MSECOND;
    GstFlowReturn flow = GST_FLOW_OK;
    g_signal_emit_by_name(element, "push-buffer", buffer, &flow);
    gst_buffer_unref(buffer);
  };
  g_signal_connect(source, "need-data", G_CALLBACK(+push), nullptr);
  gst_object_unref(source);
  return bin;
}

TEST_F(SilentRun, GivenALiveSource_WhenItSaysNothingAnyMore_ThenTheRunEnds) {
  options_.source.make_element = make_three_frames;
  start();
  ASSERT_TRUE(await_entered(kFramesOfThree)) << why();
  // 100 s are far beyond the limit; the first steps may come before the loop has seen the frames.
  for (int second = 0; second < 100 && !over_; ++second) {
    clock_.advance(seconds(1));
    ASSERT_TRUE(await_rounds());
  }
  stop();
  run_.join();
  ASSERT_TRUE(outcome_.error.has_value());
  EXPECT_EQ(outcome_.error->kind(), ErrorKind::kDeadline);
  EXPECT_NE(outcome_.error->message().find("no frame came for 5 s"), std::string::npos)
      << outcome_.error->message();
  EXPECT_EQ(outcome_.failed, RunPart::kSource);
  EXPECT_EQ(outcome_.summary.frames, std::uint64_t{kFramesOfThree});
}

}  // namespace
}  // namespace penstock
