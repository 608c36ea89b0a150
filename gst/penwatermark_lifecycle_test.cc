// SPDX-License-Identifier: Apache-2.0
//
// penwatermark's output slots, failures, flushes, ends, and what it promises upstream.
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gst/testing/element_clock.h"
#include "gst/testing/element_properties.h"
#include "gst/testing/flush_limit.h"
#include "gst/testing/lifecycle_fixture.h"
#include "gst/testing/watermark_fixture.h"

namespace penstock::gst {
namespace {

using ::testing::Values;
using namespace std::chrono_literals;

/// With a clock that stands still.
class Slots : public WatermarkFixture {
 protected:
  void SetUp() override {
    WatermarkFixture::SetUp();
    set_element_clock(element_.get(), clock_);
  }
  std::vector<BufferPtr> take_all() {
    std::vector<BufferPtr> held;
    for (int i = 0; i < 4; ++i) held.push_back(through(make_frame(i)));
    return held;
  }
  /// A fifth frame, pushed from a thread of its own, which is waiting when this returns.
  std::future<GstFlowReturn> push_fifth() {
    auto pushed = std::async(std::launch::async, [this, frame = make_frame(4)]() mutable {
      return push(std::move(frame));
    });
    EXPECT_TRUE(eventually([&] { return clock_.waiters() == 1 || is_over(pushed); }));
    return pushed;
  }
  static bool is_over(const std::future<GstFlowReturn>& pushed) {
    return pushed.wait_for(0s) == std::future_status::ready;
  }
  /// What became of it; what it waits for is let go of where nothing else ends its wait.
  static GstFlowReturn end_of(std::future<GstFlowReturn>& pushed, std::vector<BufferPtr>& held) {
    EXPECT_TRUE(eventually([&] { return is_over(pushed); }));
    held.clear();
    return pushed.get();
  }

  ManualClock clock_;
};

class W02 : public Slots {};

TEST_P(W02, GivenFourFramesHeld_WhenAFifthComes_ThenItWaitsForARelease) {
  play();
  auto held = take_all();
  EXPECT_EQ(stat("slots-held"), 4u);
  auto fifth = push_fifth();
  EXPECT_FALSE(is_over(fifth));
  held.pop_back();
  EXPECT_EQ(end_of(fifth, held), GST_FLOW_OK);
  EXPECT_TRUE(said().empty());
}

TEST_P(W02, GivenPartsAndSharesOfTheMemory_WhenTheBufferIsGone_ThenTheyKeepTheSlot) {
  play();
  std::vector<GstPtr<GstMemory>> shares;
  {
    const BufferPtr out = through(make_frame());
    GstMemory* memory = gst_buffer_peek_memory(out.get(), 0);
    shares.emplace_back(gst_memory_share(memory, 64, 128));
    shares.emplace_back(gst_memory_share(shares.back().get(), 0, 64));
    const BufferPtr part(gst_buffer_copy_region(out.get(), GST_BUFFER_COPY_MEMORY, 0, 256));
    shares.emplace_back(gst_buffer_get_memory(part.get(), 0));
    const BufferPtr shallow(gst_buffer_copy(out.get()));
    shares.emplace_back(gst_buffer_get_memory(shallow.get(), 0));
  }
  while (shares.size() > 1) {
    shares.erase(shares.begin());
    EXPECT_EQ(stat("slots-held"), 1u);
  }
  shares.clear();
  EXPECT_EQ(stat("slots-held"), 0u);
}

TEST_P(W02, GivenFourFramesHeldForASecond_WhenWaiting_ThenAWarningSaysSoOnce) {
  play();
  auto held = take_all();
  auto fifth = push_fifth();
  clock_.advance(1s);
  std::vector<Said> messages;
  EXPECT_TRUE(eventually([&] {
    for (Said& message : said()) messages.push_back(std::move(message));
    return !messages.empty();
  }));
  EXPECT_TRUE(eventually([&] { return clock_.waiters() == 1; }));
  clock_.advance(60s);
  held.clear();
  EXPECT_EQ(end_of(fifth, held), GST_FLOW_OK);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].type, GST_MESSAGE_WARNING);
  for (const char* part : {"drawer", GetParam(), "all 4 output frames"}) {
    EXPECT_NE(messages[0].text.find(part), std::string::npos) << messages[0].text;
  }
  EXPECT_TRUE(said().empty());
}

TEST_P(W02, GivenAFrameThatWaits_WhenFlushed_ThenItEndsAtOnceAndTheStreamGoesOn) {
  play();
  auto held = take_all();
  auto fifth = push_fifth();
  const auto start = std::chrono::steady_clock::now();
  gst_harness_push_event(harness_.get(), gst_event_new_flush_start());
  EXPECT_EQ(end_of(fifth, held), GST_FLOW_FLUSHING);
  gst_harness_push_event(harness_.get(), gst_event_new_flush_stop(TRUE));
  EXPECT_LT(std::chrono::steady_clock::now() - start, kFlushLimit);
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_harness_push_event(harness_.get(), gst_event_new_segment(&segment));
  EXPECT_NE(through(make_frame(5)), nullptr);
  EXPECT_TRUE(said().empty());
}

TEST_P(W02, GivenAFrameThatWaits_WhenStopped_ThenItEnds) {
  play();
  auto held = take_all();
  auto fifth = push_fifth();
  auto stopped = std::async(std::launch::async, [this] {
    return gst_element_set_state(element_.get(), GST_STATE_READY);
  });
  EXPECT_EQ(end_of(fifth, held), GST_FLOW_FLUSHING);
  EXPECT_EQ(stopped.get(), GST_STATE_CHANGE_SUCCESS);
  EXPECT_TRUE(said().empty());
}

TEST_P(W02, GivenFramesThatOutliveTheElement_WhenItIsGone_ThenTheirPixelsAreStillThere) {
  play();
  auto held = take_all();
  harness_.reset();
  gst_element_set_state(element_.get(), GST_STATE_NULL);
  for (const BufferPtr& buffer : held) {
    const auto bytes = pixels(buffer.get());
    EXPECT_EQ(bytes[3], 255);
    EXPECT_EQ(bytes[bytes.size() - 1], 255);
  }
}

INSTANTIATE_TEST_SUITE_P(cpu, W02, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, W02, Values("sim"));

// ---- V05 ----

class V05 : public Slots {};

TEST_P(V05, GivenAFramesDisplay_WhenTheFrameIsGone_ThenTheOutputKeepsItUntilItsLastShare) {
  play();
  const GstPtr<GObject> display(G_OBJECT(g_object_new(G_TYPE_OBJECT, nullptr)));
  const auto keepers = [&] { return g_atomic_int_get(&display.get()->ref_count) - 1; };
  BufferPtr out = through(make_frame(0, "NV12", kDrawnWidth, kDrawnHeight, display.get()));
  ASSERT_NE(out, nullptr);
  EXPECT_GE(keepers(), 1u);
  EXPECT_EQ(display_of(gst_buffer_peek_memory(out.get(), 0)), display.get());
  GstPtr<GstMemory> share(gst_memory_share(gst_buffer_peek_memory(out.get(), 0), 0, 16));
  out.reset();
  EXPECT_GE(keepers(), 1u);
  share.reset();
  EXPECT_EQ(keepers(), 0u);
}

INSTANTIATE_TEST_SUITE_P(sim, V05, Values("sim"));

// ---- L01, L02 ----

class L01 : public WatermarkFixture {};

TEST_P(L01, GivenARunningElement_WhenAPropertyIsSet_ThenItStaysAndThatIsSaid) {
  play();
  for (GParamSpec* spec : own_properties(element_.get())) {
    if ((spec->flags & G_PARAM_WRITABLE) == 0) continue;
    EXPECT_TRUE(spec->flags & GST_PARAM_MUTABLE_READY) << spec->name;
    GValue before = G_VALUE_INIT, after = G_VALUE_INIT;
    g_object_get_property(G_OBJECT(element_.get()), spec->name, &before);
    WarningTrap trap;
    g_object_set_property(G_OBJECT(element_.get()), spec->name, &before);
    const auto texts = trap.take();
    ASSERT_EQ(texts.size(), 1u) << spec->name;
    EXPECT_NE(texts[0].find(std::string("'") + spec->name + "'"), std::string::npos);
    g_object_get_property(G_OBJECT(element_.get()), spec->name, &after);
    EXPECT_EQ(gst_value_compare(&before, &after), GST_VALUE_EQUAL) << spec->name;
    g_value_unset(&before);
    g_value_unset(&after);
  }
}

INSTANTIATE_TEST_SUITE_P(cpu, L01, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, L01, Values("sim"));

class L02 : public WatermarkFixture {
 protected:
  void expect_start_failure(const std::string& property, const std::string& value,
                            const std::string& cause) {
    SCOPED_TRACE(cause);
    set(property, value);
    EXPECT_EQ(gst_element_set_state(element_.get(), GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
    const auto messages = said();
    ASSERT_EQ(messages.size(), 1u);
    for (const std::string& part :
         {std::string("drawer"), std::string("device '"), std::string("starting"), cause}) {
      EXPECT_NE(messages[0].text.find(part), std::string::npos) << messages[0].text;
    }
    gst_element_set_state(element_.get(), GST_STATE_NULL);
  }
};

TEST_P(L02, GivenWhatCantStart_WhenStarted_ThenOneErrorNamesElementDeviceOperationAndCause) {
  expect_start_failure("zones", "door: 0,0 1,1", "zone 'door' has 2 corners");
  expect_start_failure("zones", "door", "property 'zones'");
  set("zones", "");
  expect_start_failure("text-size", "3", "text size 3");
  set("text-size", "0");
  expect_start_failure("device", "cuda:0", "cuda");
  expect_start_failure("device", "toaster", "toaster");
}

TEST_P(L02, GivenABufferTooSmallForItsCaps_WhenDrawn_ThenThatIsTheError) {
  play();
  EXPECT_EQ(push(make_frame(0, "NV12", 64, 32)), GST_FLOW_ERROR);
  const auto messages = said();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_NE(messages[0].text.find("drawing a frame"), std::string::npos) << messages[0].text;
}

INSTANTIATE_TEST_SUITE_P(cpu, L02, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, L02, Values("sim"));

// ---- L03, L04 ----

class L03 : public WatermarkFixture {};

TEST_P(L03, GivenWorkInFlight_WhenFlushed_ThenThatReturnsAndTheFrameIsKeptUntilItsEnd) {
  play();
  BufferPtr frame = make_frame();
  const BufferPtr watched(gst_buffer_ref(frame.get()));
  sim_->hold_jobs(true);
  auto pushed = std::async(std::launch::async, [this, &frame] { return push(std::move(frame)); });
  EXPECT_TRUE(eventually([&] { return sim_->jobs_pending() > 0; }));
  const auto start = std::chrono::steady_clock::now();
  gst_harness_push_event(harness_.get(), gst_event_new_flush_start());
  const bool is_over = eventually([&] { return pushed.wait_for(0s) == std::future_status::ready; });
  if (!is_over) sim_->hold_jobs(false);
  EXPECT_EQ(pushed.get(), GST_FLOW_FLUSHING);
  gst_harness_push_event(harness_.get(), gst_event_new_flush_stop(TRUE));
  EXPECT_LT(std::chrono::steady_clock::now() - start, kFlushLimit);
  EXPECT_GT(GST_MINI_OBJECT_REFCOUNT_VALUE(watched.get()), 1);
  EXPECT_EQ(stat("slots-held"), 1u);
  sim_->hold_jobs(false);
  EXPECT_TRUE(eventually([&] {
    return GST_MINI_OBJECT_REFCOUNT_VALUE(watched.get()) == 1 && stat("slots-held") == 0;
  }));
}

TEST_P(L03, GivenEveryDeviceCall_WhenItFails_ThenThereIsOneErrorAndNothingLeaks) {
  for (std::uint64_t call = 1; call <= 2; ++call) {
    play();
    BufferPtr frame = make_frame();
    const auto live = sim_->live_storages();
    sim_->fail_call(sim_->calls() + call);
    EXPECT_EQ(push(std::move(frame)), GST_FLOW_ERROR) << call;
    EXPECT_EQ(said().size(), 1u) << call;
    sim_->wait_idle();
    EXPECT_EQ(sim_->live_storages(), live - 1) << "of the frame";
    harness_.reset();
    gst_element_set_state(element_.get(), GST_STATE_NULL);
    gst_element_set_bus(element_.get(), bus_.get());
  }
}

INSTANTIATE_TEST_SUITE_P(sim, L03, Values("sim"));

// ---- L05 ----

class L05 : public WatermarkFixture {};

TEST_P(L05, GivenAnAllocationQuery_WhenAnswered_ThenItAsksForWhatIsHeldAndReadsTheVideoMeta) {
  play();
  const CapsPtr fixed(gst_caps_from_string(caps().c_str()));
  const GstPtr<GstQuery> query(gst_query_new_allocation(fixed.get(), TRUE));
  ASSERT_TRUE(gst_pad_peer_query(harness_->srcpad, query.get()));
  EXPECT_TRUE(gst_query_find_allocation_meta(query.get(), GST_VIDEO_META_API_TYPE, nullptr));
  ASSERT_GE(gst_query_get_n_allocation_pools(query.get()), 1u);
  guint minimum = 0;
  GstBufferPool* pool = nullptr;
  gst_query_parse_nth_allocation_pool(query.get(), 0, &pool, nullptr, &minimum, nullptr);
  EXPECT_EQ(pool, nullptr) << "decoders have a better one";
  EXPECT_EQ(minimum, is_sim() ? 5u : 1u);
}

TEST_P(L05, GivenFramesThatWereDrawn_WhenOutputsAreHeld_ThenNoInputIs) {
  play();
  const BufferPtr watched = make_frame();
  const BufferPtr out = through(BufferPtr(gst_buffer_ref(watched.get())));
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(watched.get()), 1);
}

TEST_P(L05, GivenEventsBetweenFrames_WhenTheyPass_ThenTheyKeepTheirPlaceAndEosIsLast) {
  play();
  std::vector<std::string> order;
  gst_pad_add_probe(
      harness_->sinkpad,
      static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
      [](GstPad*, GstPadProbeInfo* info, gpointer data) {
        auto& seen = *static_cast<std::vector<std::string>*>(data);
        const bool is_event = (info->type & GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM) != 0;
        seen.emplace_back(is_event ? GST_EVENT_TYPE_NAME(GST_PAD_PROBE_INFO_EVENT(info)) : "frame");
        return GST_PAD_PROBE_OK;
      },
      &order, nullptr);
  push(make_frame(0));
  gst_harness_push_event(harness_.get(),
                         gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "t", nullptr)));
  push(make_frame(1));
  gst_harness_push_event(harness_.get(), gst_event_new_gap(0, 1));
  push(make_frame(2));
  gst_harness_push_event(harness_.get(), gst_event_new_eos());
  std::erase_if(order, [](const std::string& name) {
    return name == "stream-start" || name == "caps" || name == "segment";
  });
  EXPECT_EQ(order, (std::vector<std::string>{"frame", "tag", "frame", "gap", "frame", "eos"}));
}

INSTANTIATE_TEST_SUITE_P(cpu, L05, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, L05, Values("sim"));

}  // namespace
}  // namespace penstock::gst
