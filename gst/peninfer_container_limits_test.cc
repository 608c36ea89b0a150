// SPDX-License-Identifier: Apache-2.0
//
// What peninfer holds of containers, how their frames share batches, and what becomes of containers
// that are wrong or go wrong.
#include <gmock/gmock.h>
#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gst/testing/container_fixture.h"
#include "gst/testing/flush_limit.h"

namespace penstock::gst {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::Values;

// ---- B01 ----

class B01 : public ContainerFixture {};

TEST_P(B01, GivenAContainerOfABatch_WhenInferred_ThenItsFramesShareARunWithoutWaiting) {
  play_containers({caps(), caps(), caps()}, {"policy=latency", "batch-size=3"});
  for (int i = 1; i <= 3; ++i) {
    through(container_of({"a", "b", "c"}, i));
    EXPECT_EQ(batched(), 3u * static_cast<guint64>(i));
  }
  // Two frames of one stream are two runs.
  through(container({{"a", caps(), {object(make_frame(0)), object(make_frame(pts(1)))}}}));
  EXPECT_EQ(batched(), 9u);
}

INSTANTIATE_TEST_SUITE_P(cpu, B01, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, B01, Values("sim"));

// ---- L02 ----

class L02 : public ContainerFixture {
 protected:
  void expect_error(BufferPtr wrong, const std::vector<std::string>& named) {
    SCOPED_TRACE(named.front());
    play_containers({caps(), caps()}, {"queue-depth=2", "workers=1"});
    EXPECT_EQ(push_container(container_of({"a", "b"}, 0)), GST_FLOW_OK);
    EXPECT_EQ(push_container(std::move(wrong)), GST_FLOW_ERROR);
    EXPECT_EQ(push_container(container_of({"a", "b"}, 2)), GST_FLOW_ERROR);
    const auto said = errors();
    ASSERT_EQ(said.size(), 1u);
    EXPECT_THAT(said[0], HasSubstr("detector: device"));
    for (const std::string& part : named) EXPECT_THAT(said[0], HasSubstr(part));
    EXPECT_EQ(gst_harness_buffers_received(harness_.get()), 1u) << "the good one before it";
    harness_.reset();
  }
};

TEST_P(L02, GivenAContainerThatIsWrong_WhenPushed_ThenOneErrorSaysInWhichStreamAndWhy) {
  expect_error(BufferPtr(gst_buffer_new()), {"no GstAnalyticsBatchMeta"});
  expect_error(container({{"a", caps(), {object(make_frame(0))}},
                          {"small", caps(), {object(make_frame(0, "NV12", 64, 64))}}}),
               {"reading frame 0 of stream 'small'"});
  expect_error(container({{"odd", caps("NV12", 127, 128), {object(make_frame(0))}}}),
               {"stream 'odd'", "width 127"});
  expect_error(container({{"sound", "audio/x-raw,rate=48000", {object(make_frame(0))}}}),
               {"stream 'sound'", "audio/x-raw"});
  expect_error(
      container({{"a", caps(), {}}, {"b", caps(), {}}, {"nameless", "", {object(make_frame(0))}}}),
      {"stream 'nameless'", "without caps"});
  expect_error(container({{"q", caps(), {GST_MINI_OBJECT_CAST(gst_query_new_latency())}}}),
               {"object 0 of stream 'q'", "GstQuery"});
  if (is_sim()) return;
  BufferPtr other(gst_buffer_new_allocate(nullptr, 16, nullptr));
  expect_error(container({{"tiny", caps(), {object(std::move(other))}}}), {"stream 'tiny'"});
}

TEST_P(L02, GivenMoreThanTheLimits_WhenPushed_ThenOneErrorSaysWhichLimit) {
  std::vector<GstMiniObject*> four;
  for (int i = 0; i < 4; ++i) four.push_back(object(make_frame(pts(i))));
  expect_error(container({{"many", caps(), std::move(four)}}),
               {"4 frames of stream 'many'", "at most 3", "queue-depth"});
  expect_error(container(std::vector<ContainerPart>(257, {"s", caps(), {}})),
               {"257 streams", "256"});
  std::vector<GstMiniObject*> starts;
  for (int i = 0; i < 300; ++i) {
    starts.push_back(GST_MINI_OBJECT_CAST(gst_event_new_stream_start(std::to_string(i).c_str())));
  }
  expect_error(container({{"s", caps(), std::move(starts)}}), {"more than 256 streams"});
  GstBufferList* list = gst_buffer_list_new();
  const BufferPtr frame = make_frame(0);
  for (int i = 0; i < 1025; ++i) gst_buffer_list_add(list, gst_buffer_ref(frame.get()));
  expect_error(container({{"s", caps(), {GST_MINI_OBJECT_CAST(list)}}}), {"1024 frames"});
}

INSTANTIATE_TEST_SUITE_P(cpu, L02, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, L02, Values("sim"));

// ---- L03 ----

class L03 : public ContainerFixture {
 protected:
  void play_to_hold_containers(const std::vector<std::string>& properties) {
    play_to_hold(properties);
    send_caps(container_caps({caps(), caps()}));
  }
};

TEST_P(L03, GivenContainersInFlight_WhenEosComes_ThenAllLeaveBeforeItInOrder) {
  play_containers({caps(), caps()}, {"queue-depth=8"});
  std::vector<BufferPtr> containers;
  for (int i = 0; i < 6; ++i) containers.push_back(container_of({"a", "b"}, i));
  hold();
  for (BufferPtr& one : containers) ASSERT_EQ(push_container(std::move(one)), GST_FLOW_OK);
  gst_harness_push_event(harness_.get(), gst_event_new_eos());
  let_go();
  ASSERT_TRUE(await_eos());
  ASSERT_EQ(gst_harness_buffers_received(harness_.get()), 6u);
  for (int i = 0; i < 6; ++i) {
    const BufferPtr out(gst_harness_pull(harness_.get()));
    for (std::size_t stream = 0; stream < 2; ++stream) {
      ASSERT_NE(analysis_of(out.get(), stream), nullptr);
      EXPECT_EQ(analysis_of(out.get(), stream)->result.frame, std::uint64_t(i));
    }
  }
}

TEST_P(L03, GivenRunsOfSeveralStreams_WhenFlushed_ThenItReturnsAtOnceAndOldFramesNeverLeave) {
  play_to_hold_containers({"queue-depth=4", "batch-size=2"});
  std::vector<BufferPtr> containers;
  for (int i = 0; i < 3; ++i) containers.push_back(container_of({"a", "b"}, i));
  BufferPtr next = container_of({"a", "b"}, 100);
  hold();
  for (BufferPtr& one : containers) ASSERT_EQ(push_container(std::move(one)), GST_FLOW_OK);
  if (is_sim()) {
    ASSERT_TRUE(eventually([&] { return sim_->jobs_pending() > 0; }));
  }
  const auto begun = steady_clock::now();
  gst_harness_push_event(harness_.get(), gst_event_new_flush_start());
  gst_harness_push_event(harness_.get(), gst_event_new_flush_stop(TRUE));
  EXPECT_LT(steady_clock::now() - begun, kFlushLimit);
  ASSERT_EQ(gst_harness_buffers_received(harness_.get()), 0u) << "a run ended: little was shown";
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_harness_push_event(harness_.get(), gst_event_new_segment(&segment));
  let_go();
  const BufferPtr out = through(std::move(next));
  for (std::size_t stream = 0; stream < 2; ++stream) {
    ASSERT_NE(analysis_of(out.get(), stream), nullptr);
    EXPECT_EQ(analysis_of(out.get(), stream)->result.pts_ns, std::int64_t(pts(100)));
  }
  EXPECT_TRUE(errors().empty());
}

TEST_P(L03, GivenTeardownAtRandomMoments_WhenRepeated_ThenNothingIsLeftBehind) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(str_format("seed {}", seed));
  std::mt19937 random(seed);
  const auto cycle = [&] {
    play_containers({caps(), caps()}, {"queue-depth=3", "batch-size=2"});
    const int count = static_cast<int>(random() % 6);
    for (int i = 0; i < count; ++i) push_container(container_of({"a", "b"}, i));
    if (random() % 3 == 0) {
      gst_harness_push_event(harness_.get(), gst_event_new_flush_start());
    }
    harness_.reset();
    EXPECT_TRUE(errors().empty());
  };
  cycle();
  g_thread_pool_stop_unused_threads();
  const std::size_t fds = entries("/proc/self/fd");
  const std::uint64_t storages = is_sim() ? sim_->live_storages() : 0;
  for (int i = 0; i < 15; ++i) cycle();
  if (is_sim()) {
    sim_->wait_idle();
    EXPECT_TRUE(eventually([&] { return sim_->live_storages() == storages; }));
  }
  EXPECT_EQ(entries("/proc/self/fd"), fds);
}

INSTANTIATE_TEST_SUITE_P(cpu, L03, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, L03, Values("sim"));

// ---- L04 ----

class L04 : public ContainerFixture {};

TEST_P(L04, GivenTheNthDeviceCallFails_WhenContainersRun_ThenExactlyOneErrorAndACleanTeardown) {
  bool ran_through = false;
  int failures = 0;
  for (std::uint64_t n = 1; n < 200 && !ran_through; ++n) {
    SCOPED_TRACE(str_format("call {}", n));
    std::vector<BufferPtr> containers;
    for (int i = 0; i < 2; ++i) containers.push_back(container_of({"a", "b"}, i));
    play_containers({caps(), caps()}, {"policy=latency", "batch-size=2"});
    sim_->fail_call(sim_->calls() + n);
    for (BufferPtr& one : containers) {
      if (push_container(std::move(one)) != GST_FLOW_OK) break;
    }
    gst_harness_push_event(harness_.get(), gst_event_new_eos());
    std::vector<std::string> said;
    bool ended = false;
    ASSERT_TRUE(eventually([&] {
      for (std::string& text : errors()) said.push_back(std::move(text));
      ended = ended || has_eos();
      return ended || !said.empty();
    }));
    ran_through = ended;
    if (ended) {
      EXPECT_TRUE(said.empty());
      EXPECT_EQ(gst_harness_buffers_received(harness_.get()), 2u);
    } else {
      ++failures;
      EXPECT_LT(gst_harness_buffers_received(harness_.get()), 2u);
    }
    harness_.reset();
    for (std::string& text : errors()) said.push_back(std::move(text));
    EXPECT_EQ(said.size(), ended ? 0u : 1u) << ::testing::PrintToString(said);
    sim_->fail_call(0);
  }
  EXPECT_TRUE(ran_through);
  EXPECT_GT(failures, 6);
  EXPECT_TRUE(eventually([&] { return sim_->live_storages() == 0; }));
}

INSTANTIATE_TEST_SUITE_P(sim, L04, Values("sim"));

// ---- L05 ----

class L05 : public ContainerFixture {
 protected:
  guint promised() {
    const CapsPtr both = container_caps({caps(), caps()});
    const GstPtr<GstQuery> query(gst_query_new_allocation(both.get(), FALSE));
    EXPECT_TRUE(gst_pad_peer_query(harness_->srcpad, query.get()));
    EXPECT_EQ(gst_query_get_n_allocation_pools(query.get()), 1u);
    GstBufferPool* pool = nullptr;
    guint minimum = 0;
    gst_query_parse_nth_allocation_pool(query.get(), 0, &pool, nullptr, &minimum, nullptr);
    EXPECT_EQ(pool, nullptr);
    return minimum;
  }
};

TEST_P(L05, GivenContainers_WhenUpstreamPushesWithoutEnd_ThenNoStreamHasMoreHeldThanPromised) {
  play_to_hold({"queue-depth=3", "policy=latency"});
  send_caps(container_caps({caps(), caps()}));
  const guint promise = promised();
  EXPECT_EQ(promise, 3u + 1 + 1);
  std::vector<BufferPtr> containers;
  for (int i = 0; i < 12; ++i) containers.push_back(container_of({"a", "b"}, i));
  // A container that has two of a stream counts as two.
  containers.insert(containers.begin(),
                    container({{"a", caps(), {object(make_frame(0)), object(make_frame(0))}},
                               {"b", caps(), {object(make_frame(0))}}}));
  hold();
  std::thread upstream([&] {
    for (BufferPtr& one : containers) {
      if (push_container(std::move(one)) != GST_FLOW_OK) return;
    }
  });
  EXPECT_TRUE(eventually([&] { return stat("held") == promise; })) << stat("held");
  EXPECT_EQ(stat("frames"), 2u * 3 + 1) << "a container waits for its place";
  gst_harness_push_event(harness_.get(), gst_event_new_flush_start());
  upstream.join();
  EXPECT_EQ(stat("held-max"), promise);
  let_go();
}

TEST_P(L05, GivenALiveUpstream_WhenAskedForLatency_ThenTheSlowestStreamCounts) {
  std::string slow = caps();
  slow.replace(slow.find("25/1"), 4, "10/1");
  play_containers({caps(), slow}, {"policy=latency", "queue-depth=4"});
  gst_harness_set_live(harness_.get(), TRUE);
  EXPECT_EQ(gst_harness_query_latency(harness_.get()), 200 * GST_MSECOND);
}

INSTANTIATE_TEST_SUITE_P(cpu, L05, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, L05, Values("sim"));

}  // namespace
}  // namespace penstock::gst
