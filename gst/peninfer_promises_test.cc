// SPDX-License-Identifier: Apache-2.0
//
// Each device call that fails, what is held, latency, and the place of events.
#include <gmock/gmock.h>
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "gst/penanalysis_meta.h"
#include "gst/testing/lifecycle_fixture.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

using ::testing::Values;

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

INSTANTIATE_TEST_SUITE_P(sim, L04, Values("sim"));

// ---- L05 ----

class L05 : public Lifecycle {
 protected:
  guint promised() {
    const CapsPtr fixed(gst_caps_from_string(caps(formats().front()).c_str()));
    const GstPtr<GstQuery> query(gst_query_new_allocation(fixed.get(), TRUE));
    EXPECT_TRUE(gst_pad_peer_query(harness_->srcpad, query.get()));
    EXPECT_GE(gst_query_get_n_allocation_pools(query.get()), 1u);
    guint minimum = 0;
    gst_query_parse_nth_allocation_pool(query.get(), 0, nullptr, nullptr, &minimum, nullptr);
    return minimum;
  }
};

TEST_P(L05, GivenTheAllocationPromise_WhenUpstreamPushesWithoutEnd_ThenNeverMoreAreAlive) {
  play({"queue-depth=3", "policy=latency"});
  const guint promise = promised();
  EXPECT_EQ(promise, 3u + 1 + 1);  // Queue, one worker, one that waits for its place.

  // Counted on the buffers themselves, from the push on.
  struct Alive {
    std::atomic<int> now{0};
    std::atomic<int> most{0};
  } alive;
  gst_harness_set_drop_buffers(harness_.get(), TRUE);
  std::vector<BufferPtr> frames;
  for (int i = 0; i < 60; ++i) {
    frames.push_back(make_frame(pts(i)));
    gst_mini_object_weak_ref(
        GST_MINI_OBJECT_CAST(frames.back().get()),
        [](gpointer counter, GstMiniObject*) { --static_cast<Alive*>(counter)->now; }, &alive);
  }
  if (sim_ != nullptr) sim_->hold_jobs(true);
  std::thread upstream([&] {
    for (BufferPtr& frame : frames) {
      alive.most = std::max(alive.most.load(), ++alive.now);
      EXPECT_EQ(gst_harness_push(harness_.get(), frame.release()), GST_FLOW_OK);
    }
    gst_harness_push_event(harness_.get(), gst_event_new_eos());
  });
  if (sim_ != nullptr) {
    EXPECT_TRUE(eventually([&] { return stat("held") == promise; }));
    EXPECT_EQ(alive.now, int(promise));
    sim_->hold_jobs(false);
  }
  upstream.join();
  ASSERT_TRUE(await_eos());
  // The one more is in downstream's hands, not in the element's.
  EXPECT_LE(alive.most, int(promise) + 1);
  EXPECT_LE(stat("held-max"), promise);
  EXPECT_TRUE(eventually([&] { return alive.now == 0; }));
}

TEST_P(L05, GivenALiveUpstream_WhenAskedForLatency_ThenRunsAndHeldFramesAreTold) {
  play({"queue-depth=4", "policy=latency"});
  gst_harness_set_live(harness_.get(), TRUE);
  gst_harness_set_upstream_latency(harness_.get(), 10 * GST_MSECOND);
  // One worker: a run of up to one frame duration, and one to wait for it.
  EXPECT_EQ(gst_harness_query_latency(harness_.get()), (10 + 2 * 40) * GST_MSECOND);
}

TEST_P(L05, GivenEventsBetweenFrames_WhenTheyPass_ThenEveryOneKeepsItsPlace) {
  play();
  std::vector<std::string> seen;
  gst_pad_add_probe(
      harness_->sinkpad,
      static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
      [](GstPad*, GstPadProbeInfo* info, gpointer data) {
        auto& log = *static_cast<std::vector<std::string>*>(data);
        if (GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_BUFFER) {
          log.push_back(str_format(
              "frame {}", GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info)) / (40 * GST_MSECOND)));
        } else {
          log.push_back(GST_EVENT_TYPE_NAME(GST_PAD_PROBE_INFO_EVENT(info)));
        }
        return GST_PAD_PROBE_OK;
      },
      &seen, nullptr);
  push(0);
  gst_harness_push_event(harness_.get(), gst_event_new_tag(gst_tag_list_new_empty()));
  push(1);
  gst_harness_push_event(harness_.get(), gst_event_new_gap(pts(2), 40 * GST_MSECOND));
  const CapsPtr larger(gst_caps_from_string(caps("NV12", 256, 192).c_str()));
  gst_harness_push_event(harness_.get(), gst_event_new_caps(larger.get()));
  gst_harness_push(harness_.get(), make_frame(pts(3), "NV12", 256, 192).release());
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  segment.start = pts(4);
  gst_harness_push_event(harness_.get(), gst_event_new_segment(&segment));
  gst_harness_push(harness_.get(), make_frame(pts(4), "NV12", 256, 192).release());
  gst_harness_push_event(harness_.get(), gst_event_new_eos());
  ASSERT_TRUE(await_eos());
  // The harness's own first events passed before or after the probe was set.
  seen.erase(seen.begin(), std::find(seen.begin(), seen.end(), "frame 0"));
  EXPECT_EQ(seen, (std::vector<std::string>{"frame 0", "tag", "frame 1", "gap", "caps", "frame 3",
                                            "segment", "frame 4", "eos"}));
  EXPECT_TRUE(errors().empty());
}

INSTANTIATE_TEST_SUITE_P(cpu, L05, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, L05, Values("sim"));

}  // namespace
}  // namespace penstock::gst
