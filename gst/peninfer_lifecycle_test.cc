// SPDX-License-Identifier: Apache-2.0
//
// Starting, failing (each device call too), draining, flushing, stopping.
#include <gmock/gmock.h>
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gst/penanalysis_meta.h"
#include "gst/testing/flush_limit.h"
#include "gst/testing/lifecycle_fixture.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::Values;

// ---- L02 ----

class L02 : public Lifecycle {
 protected:
  void expect_start_failure(const std::vector<std::string>& properties, const std::string& cause) {
    SCOPED_TRACE(cause);
    const GstPtr<GstElement> element = make_element(properties);
    EXPECT_EQ(gst_element_set_state(element.get(), GST_STATE_READY), GST_STATE_CHANGE_FAILURE);
    const auto said = errors();
    ASSERT_EQ(said.size(), 1u);
    for (const std::string& part :
         {std::string("detector"), std::string("device '"), std::string("opening model"), cause}) {
      EXPECT_NE(said[0].find(part), std::string::npos) << said[0];
    }
    gst_element_set_state(element.get(), GST_STATE_NULL);
  }
};

TEST_P(L02, GivenWhatCantStart_WhenGoingToReady_ThenOneErrorNamesElementDeviceOperationAndCause) {
  expect_start_failure({"model="}, "'model' is not set");
  expect_start_failure({"model=/nonexistent/manifest.json"}, "/nonexistent");
  expect_start_failure({"engine-library=/nonexistent.so"}, "/nonexistent.so");
  expect_start_failure({"provider-library=/nonexistent.so"}, "provider library '/nonexistent.so'");
  expect_start_failure({"labels=one,two,three"}, "'labels' names 3 classes");
  expect_start_failure({"device=cuda:0"}, "cuda");
  expect_start_failure({"device=toaster"}, "toaster");
  expect_start_failure({"threshold=-0.5"}, "threshold");
}

TEST_P(L02, GivenSimWithoutItsContext_WhenGoingToReady_ThenItExistsOnlyInTheTestPlugin) {
  const GstPtr<GstElement> element(
      GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("peninfer", "lonely"))));
  gst_element_set_bus(element.get(), bus_.get());
  g_object_set(element.get(), "model", model_folder().c_str(), "device", "sim", nullptr);
  EXPECT_EQ(gst_element_set_state(element.get(), GST_STATE_READY), GST_STATE_CHANGE_FAILURE);
  const auto said = errors();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("device 'sim' exists only in the test plugin"), std::string::npos);
}

TEST_P(L02, GivenABufferTooSmall_WhenPushed_ThenOneErrorAndNoFurtherOutput) {
  play();
  EXPECT_EQ(gst_harness_push(harness_.get(), make_frame(0, "NV12", 64, 64).release()),
            GST_FLOW_ERROR);
  EXPECT_EQ(push(1), GST_FLOW_ERROR);
  EXPECT_EQ(errors().size(), 1u);
  gst_harness_push_event(harness_.get(), gst_event_new_eos());
  EXPECT_FALSE(has_eos());
  EXPECT_EQ(gst_harness_buffers_received(harness_.get()), 0u);
}

TEST_P(L02, GivenABufferTooSmallBehindGoodFrames_WhenPushed_ThenTheyLeaveBeforeItsError) {
  play_to_hold({"queue-depth=6"});
  std::vector<BufferPtr> frames;
  for (int i = 0; i < 3; ++i) frames.push_back(make_frame(pts(i)));
  BufferPtr small = make_frame(pts(3), "NV12", 64, 64);
  hold();
  for (BufferPtr& frame : frames) {
    ASSERT_EQ(gst_harness_push(harness_.get(), frame.release()), GST_FLOW_OK);
  }
  std::thread upstream(
      [&] { EXPECT_EQ(gst_harness_push(harness_.get(), small.release()), GST_FLOW_ERROR); });
  EXPECT_TRUE(eventually([&] { return stat("frames") == 4; }));
  EXPECT_EQ(gst_harness_buffers_received(harness_.get()), 0u) << "a run ended: little is shown";
  let_go();
  upstream.join();
  EXPECT_EQ(gst_harness_buffers_received(harness_.get()), 3u);
  const auto said = errors();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("reading frame 3"), std::string::npos) << said[0];
}

INSTANTIATE_TEST_SUITE_P(cpu, L02, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, L02, Values("sim"));

// ---- L03 ----

class L03 : public Lifecycle {};

TEST_P(L03, GivenAcceptedFrames_WhenEosComes_ThenAllLeaveBeforeIt) {
  play({"queue-depth=8"});
  std::vector<BufferPtr> frames;
  for (int i = 0; i < 8; ++i) frames.push_back(make_frame(pts(i)));
  BufferPtr late = make_frame(pts(9));  // Before jobs are held: an upload is one.
  if (sim_ != nullptr) sim_->hold_jobs(true);
  for (BufferPtr& frame : frames) {
    ASSERT_EQ(gst_harness_push(harness_.get(), frame.release()), GST_FLOW_OK);
  }
  gst_harness_push_event(harness_.get(), gst_event_new_eos());
  EXPECT_EQ(gst_harness_push(harness_.get(), late.release()), GST_FLOW_EOS);
  if (sim_ != nullptr) {
    EXPECT_FALSE(has_eos()) << "EOS overtook frames";
    sim_->hold_jobs(false);
  }
  ASSERT_TRUE(await_eos());
  EXPECT_EQ(gst_harness_buffers_received(harness_.get()), 8u);
  for (int i = 0; i < 8; ++i) {
    const BufferPtr out(gst_harness_pull(harness_.get()));
    EXPECT_EQ(GST_BUFFER_PTS(out.get()), pts(i));
    EXPECT_NE(read_analysis(out.get()), nullptr);
  }
}

TEST_P(L03, GivenRunsInFlight_WhenFlushed_ThenItReturnsAtOnceAndOldFramesNeverLeave) {
  play_to_hold({"queue-depth=6"});
  std::vector<BufferPtr> frames;
  for (int i = 0; i < 6; ++i) frames.push_back(make_frame(pts(i)));
  BufferPtr next = make_frame(pts(100));
  hold();
  const auto first_run = steady_clock::now();
  for (BufferPtr& frame : frames) gst_harness_push(harness_.get(), frame.release());
  if (sim_ != nullptr) {
    ASSERT_TRUE(eventually([&] { return sim_->jobs_pending() > 0; }));
  }

  const auto begun = steady_clock::now();
  gst_harness_push_event(harness_.get(), gst_event_new_flush_start());
  gst_harness_push_event(harness_.get(), gst_event_new_flush_stop(TRUE));
  const auto flushed = steady_clock::now();
  EXPECT_LT(flushed - begun, kFlushLimit);
  if (sim_ != nullptr) {
    EXPECT_GT(sim_->jobs_pending(), 0u) << "the run ended: nothing was shown";
  }
  const guint before = gst_harness_buffers_received(harness_.get());

  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_harness_push_event(harness_.get(), gst_event_new_segment(&segment));
  let_go();
  ASSERT_EQ(gst_harness_push(harness_.get(), next.release()), GST_FLOW_OK);
  for (guint i = 0; i < before; ++i) gst_buffer_unref(gst_harness_pull(harness_.get()));
  const BufferPtr out(gst_harness_pull(harness_.get()));
  if (sim_ == nullptr) {
    EXPECT_EQ(before, 0u) << "a run ended before the flush: nothing was shown";
    EXPECT_GT(steady_clock::now() - flushed, flushed - first_run) << "the runs were too short";
  }
  EXPECT_EQ(GST_BUFFER_PTS(out.get()), pts(100));
  EXPECT_TRUE(errors().empty());
}

TEST_P(L03, GivenAnUpstreamThatIsBlocked_WhenFlushed_ThenItIsLetGo) {
  play_to_hold({"queue-depth=1", "policy=latency"});
  std::vector<BufferPtr> frames;
  for (int i = 0; i < 10; ++i) frames.push_back(make_frame(pts(i)));
  hold();
  std::atomic<int> pushed{0};
  GstFlowReturn last = GST_FLOW_OK;
  std::thread upstream([&] {
    for (BufferPtr& frame : frames) {
      last = gst_harness_push(harness_.get(), frame.release());
      if (last != GST_FLOW_OK) return;
      ++pushed;
    }
  });
  EXPECT_TRUE(eventually([&] { return stat("held") == 3; }));
  const auto begun = steady_clock::now();
  gst_harness_push_event(harness_.get(), gst_event_new_flush_start());
  upstream.join();
  EXPECT_LT(steady_clock::now() - begun, kFlushLimit);
  EXPECT_EQ(last, GST_FLOW_FLUSHING);
  EXPECT_EQ(pushed, 2);
  EXPECT_TRUE(errors().empty());
}

TEST_P(L03, GivenAnErrorThatWaitsForItsPlace_WhenFlushed_ThenItsPushIsLetGoAndNothingIsPosted) {
  play_to_hold({"queue-depth=6"});
  BufferPtr good = make_frame(pts(0));
  BufferPtr small = make_frame(pts(1), "NV12", 64, 64);
  hold();
  ASSERT_EQ(gst_harness_push(harness_.get(), good.release()), GST_FLOW_OK);
  std::thread upstream(
      [&] { EXPECT_EQ(gst_harness_push(harness_.get(), small.release()), GST_FLOW_FLUSHING); });
  EXPECT_TRUE(eventually([&] { return stat("queue") == 2; }));
  gst_harness_push_event(harness_.get(), gst_event_new_flush_start());
  upstream.join();
  gst_harness_push_event(harness_.get(), gst_event_new_flush_stop(TRUE));
  EXPECT_TRUE(errors().empty());
}

TEST_P(L03, GivenRunsInFlight_WhenStopped_ThenReadyComesAtOnceAndTheRunsKeepTheirFrames) {
  play_to_hold({"queue-depth=6"});
  std::vector<BufferPtr> frames;
  for (int i = 0; i < 6; ++i) frames.push_back(make_frame(pts(i)));
  hold();
  for (BufferPtr& frame : frames) gst_harness_push(harness_.get(), frame.release());
  if (sim_ != nullptr) {
    ASSERT_TRUE(eventually([&] { return sim_->jobs_pending() > 0; }));
  }
  const auto begun = steady_clock::now();
  gst_element_set_state(element_, GST_STATE_READY);
  EXPECT_LT(steady_clock::now() - begun, kFlushLimit);
  if (sim_ != nullptr) {
    EXPECT_GT(sim_->live_storages(), 0u);
    let_go();
  } else {
    EXPECT_EQ(gst_harness_buffers_received(harness_.get()), 0u) << "a run ended: nothing was shown";
  }
  EXPECT_TRUE(errors().empty());
}

TEST_P(L03, GivenTeardownAtRandomMoments_WhenRepeated_ThenNothingIsLeftBehind) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(str_format("seed {}", seed));
  std::mt19937 random(seed);
  const auto cycle = [&] {
    play({"queue-depth=3"});
    const int frames = int(random() % 8);
    for (int i = 0; i < frames; ++i) push(i);
    switch (random() % 4) {
      case 0:
        gst_harness_push_event(harness_.get(), gst_event_new_eos());
        break;
      case 1:
        gst_harness_push_event(harness_.get(), gst_event_new_flush_start());
        break;
      default:
        break;
    }
    harness_.reset();
    EXPECT_TRUE(errors().empty());
  };
  cycle();  // What is made once a process, is made here.
  // GLib keeps idle threads of its pool for a while; they are not ours.
  g_thread_pool_stop_unused_threads();
  const std::size_t fds = entries("/proc/self/fd");
  const std::size_t threads = entries("/proc/self/task");
  const std::uint64_t storages = sim_ != nullptr ? sim_->live_storages() : 0;
  for (int i = 0; i < 25; ++i) cycle();
  EXPECT_TRUE(eventually([&] {
    g_thread_pool_stop_unused_threads();
    return entries("/proc/self/task") <= threads;
  }));
  if (sim_ != nullptr) {
    sim_->wait_idle();
    EXPECT_TRUE(eventually([&] { return sim_->live_storages() == storages; }));
  }
  // The directory iterator itself has one open while it counts, both times.
  EXPECT_EQ(entries("/proc/self/fd"), fds);
}

INSTANTIATE_TEST_SUITE_P(cpu, L03, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, L03, Values("sim"));

// ---- L04 ----

class L04 : public Lifecycle {};

TEST_P(L04, GivenTheNthDeviceCallFails_WhenRun_ThenExactlyOneErrorAndACleanTeardown) {
  constexpr int kFrames = 3;
  bool ran_through = false;
  int failures = 0;
  for (std::uint64_t n = 1; n < 400 && !ran_through; ++n) {
    SCOPED_TRACE(str_format("call {}", n));
    std::vector<BufferPtr> frames;
    for (int i = 0; i < kFrames; ++i) frames.push_back(make_frame(pts(i)));
    const GstPtr<GstElement> element = make_element();
    element_ = element.get();
    sim_->fail_call(sim_->calls() + n);
    if (gst_element_set_state(element_, GST_STATE_READY) == GST_STATE_CHANGE_SUCCESS) {
      harness_.reset(gst_harness_new_with_element(element_, "sink", "src"));
      gst_harness_set_src_caps_str(harness_.get(), caps().c_str());
      for (BufferPtr& frame : frames) {
        if (gst_harness_push(harness_.get(), frame.release()) != GST_FLOW_OK) break;
      }
      gst_harness_push_event(harness_.get(), gst_event_new_eos());
      std::vector<std::string> said;
      bool ended = false;
      ASSERT_TRUE(eventually([&] {
        for (std::string& text : errors()) said.push_back(std::move(text));
        ended = ended || has_eos();
        return ended || !said.empty();
      }));
      const guint received = gst_harness_buffers_received(harness_.get());
      if (ended) {
        EXPECT_TRUE(said.empty());
        EXPECT_EQ(received, guint(kFrames));
        ran_through = true;
      } else {
        // After EOS the pad itself answers GST_FLOW_EOS; nothing is accepted either way.
        EXPECT_THAT(push(9), testing::AnyOf(GST_FLOW_ERROR, GST_FLOW_EOS));
        EXPECT_LT(received, guint(kFrames));
        EXPECT_EQ(gst_harness_buffers_received(harness_.get()), received);
        EXPECT_NE(said[0].find("detector: device 'sim'"), std::string::npos) << said[0];
        for (std::string& text : errors()) said.push_back(std::move(text));
        EXPECT_EQ(said.size(), 1u) << ::testing::PrintToString(said);
      }
      harness_.reset();
    } else {
      EXPECT_EQ(errors().size(), 1u);
      gst_element_set_state(element_, GST_STATE_NULL);
    }
    failures += !ran_through;
    frames.clear();
    sim_->fail_call(0);
    element_ = nullptr;
  }
  EXPECT_TRUE(ran_through);
  EXPECT_GT(failures, 3 * kFrames);
  EXPECT_TRUE(eventually([&] { return sim_->live_storages() == 0; }));
}

TEST_P(L04, GivenARunThatFailsAndCapsThatAreRefused_WhenBothThreadsReport_ThenOneErrorIsPosted) {
  play({"policy=latency"});
  BufferPtr frame = make_frame(pts(0));
  sim_->hold_jobs(true);
  sim_->fail_call(sim_->calls() + 2);  // The first, the input's allocation, passes.
  ASSERT_EQ(gst_harness_push(harness_.get(), frame.release()), GST_FLOW_OK);
  const CapsPtr odd(gst_caps_from_string(caps("NV12", 127, 128).c_str()));
  gst_harness_push_event(harness_.get(), gst_event_new_caps(odd.get()));
  sim_->hold_jobs(false);
  EXPECT_TRUE(eventually([&] { return stat("held") == 0; }));
  harness_.reset();  // Joins the thread that reports.
  const auto said = errors();
  EXPECT_EQ(said.size(), 1u) << ::testing::PrintToString(said);
}

INSTANTIATE_TEST_SUITE_P(sim, L04, Values("sim"));

}  // namespace
}  // namespace penstock::gst
