// SPDX-License-Identifier: Apache-2.0
//
// penaggregate's pads: what goes on, what is said, and what threads wait for.
#include "gst/penaggregate.h"

#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "gst/gst_ptr.h"
#include "gst/testing/element_properties.h"
#include "gst/testing/flush_limit.h"
#include "gst/testing/infer_fixture.h"
#include "gst/testing/lifecycle_fixture.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

/// penaggregate alone, its pads fed by the test.
class AggregateHarness : public ::testing::Test {
 protected:
  void make(const std::vector<std::string>& properties = {}) {
    element_.reset(
        GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("penaggregate", "join"))));
    bus_.reset(gst_bus_new());
    gst_element_set_bus(element_.get(), bus_.get());
    for (const std::string& property : properties) {
      const auto equals = property.find('=');
      gst_util_set_object_arg(G_OBJECT(element_.get()), property.substr(0, equals).c_str(),
                              property.substr(equals + 1).c_str());
    }
    // A harness plays at once, so both pads have to be there.
    GstPad* branch_pad = gst_element_request_pad_simple(element_.get(), "sink_1");
    first_.reset(gst_harness_new_with_element(element_.get(), "sink_0", "src"));
    branch_.reset(gst_harness_new_with_element(element_.get(), nullptr, nullptr));
    gst_harness_add_element_sink_pad(branch_.get(), branch_pad);
    gst_object_unref(branch_pad);
  }
  void TearDown() override {
    branch_.reset();
    first_.reset();
    if (bus_ != nullptr) gst_bus_set_flushing(bus_.get(), TRUE);
  }
  static std::string caps(int width, int height, const char* rate = "25/1") {
    return str_format("video/x-raw,format=NV12,width={},height={},framerate={}", width, height,
                      rate);
  }
  static void begin(const HarnessPtr& harness, int width, int height, const char* rate = "25/1") {
    EXPECT_TRUE(gst_harness_push_event(harness.get(), gst_event_new_stream_start("door")));
    gst_harness_set_src_caps_str(harness.get(), caps(width, height, rate).c_str());
  }
  void begin() {
    begin(first_, 192, 96);
    begin(branch_, 64, 32);
  }
  static GstClockTime pts(int frame) { return guint64(frame) * 40 * GST_MSECOND; }
  static BufferPtr frame(int number) {
    BufferPtr buffer(gst_buffer_new_allocate(nullptr, 64, nullptr));
    GST_BUFFER_PTS(buffer.get()) = pts(number);
    return buffer;
  }
  static BufferPtr with_box(BufferPtr buffer, int x) {
    GstAnalyticsODMtd added;
    EXPECT_TRUE(gst_analytics_relation_meta_add_od_mtd(
        gst_buffer_add_analytics_relation_meta(buffer.get()), g_quark_from_string("cat"), x, 2, 3,
        4, 0.5f, &added));
    return buffer;
  }
  static GstFlowReturn push(const HarnessPtr& harness, BufferPtr buffer) {
    return gst_harness_push(harness.get(), buffer.release());
  }
  BufferPtr pull() { return BufferPtr(gst_harness_pull(first_.get())); }
  static int box_x(GstBuffer* buffer, guint id = 0) {
    GstAnalyticsMtd record;
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    gint x = -1, y = 0, w = 0, h = 0;
    if (meta != nullptr && gst_analytics_relation_meta_get_od_mtd(meta, id, &record)) {
      gst_analytics_od_mtd_get_location(&record, &x, &y, &w, &h, nullptr);
    }
    return x;
  }
  guint64 stat(const char* name) {
    GstStructure* stats = nullptr;
    g_object_get(element_.get(), "stats", &stats, nullptr);
    const GstPtr<GstStructure> owned(stats);
    guint64 value = 0;
    guint small = 0;
    if (gst_structure_get_uint64(stats, name, &value)) return value;
    EXPECT_TRUE(gst_structure_get_uint(stats, name, &small)) << name;
    return small;
  }
  /// The one error, once it is there.
  std::string error() {
    std::vector<std::string> all;
    EXPECT_TRUE(eventually([&] {
      for (std::string& text : take_errors(bus_.get())) all.push_back(std::move(text));
      return !all.empty();
    }));
    return all.empty() ? "" : all.front();
  }

  GstPtr<GstElement> element_;
  GstPtr<GstBus> bus_;
  HarnessPtr first_, branch_;
};
using G03_Element = AggregateHarness;
using L01_Aggregate = AggregateHarness;
using L02_Aggregate = AggregateHarness;
using L03_Aggregate = AggregateHarness;
using L05_Aggregate = AggregateHarness;

TEST_F(G03_Element, GivenABranchOfAThird_WhenJoined_ThenThePrimarysBufferGoesOnWithItsBoxes) {
  make();
  begin();
  BufferPtr own = with_box(frame(0), 5);
  GstBuffer* const lent = own.get();
  GstMemory* const memory = gst_buffer_peek_memory(lent, 0);
  EXPECT_EQ(push(first_, std::move(own)), GST_FLOW_OK);
  EXPECT_EQ(push(branch_, with_box(frame(0), 10)), GST_FLOW_OK);
  const BufferPtr out = pull();
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(out.get(), lent) << "nobody else holds it";
  EXPECT_EQ(gst_buffer_peek_memory(out.get(), 0), memory);
  EXPECT_EQ(GST_BUFFER_PTS(out.get()), pts(0));
  EXPECT_EQ(box_x(out.get(), 0), 5);
  EXPECT_EQ(box_x(out.get(), 1), 30);
  EXPECT_EQ(stat("joined"), 1u);
}

TEST_F(G03_Element, GivenAFrameThatOthersHold_WhenJoined_ThenACopySharesItsMemory) {
  make();
  begin();
  const BufferPtr held = frame(0);
  push(first_, BufferPtr(gst_buffer_ref(held.get())));
  push(branch_, with_box(frame(0), 10));
  BufferPtr out = pull();
  ASSERT_NE(out, nullptr);
  EXPECT_NE(out.get(), held.get());
  EXPECT_EQ(gst_buffer_peek_memory(out.get(), 0), gst_buffer_peek_memory(held.get(), 0));
  EXPECT_EQ(gst_buffer_get_analytics_relation_meta(held.get()), nullptr);
  EXPECT_EQ(box_x(out.get()), 30);
  // One buffer on both ways, as behind a tee without a stage: nothing to copy for.
  const BufferPtr both = frame(1);
  push(first_, BufferPtr(gst_buffer_ref(both.get())));
  push(branch_, BufferPtr(gst_buffer_ref(both.get())));
  out = pull();
  EXPECT_EQ(out.get(), both.get());
}

TEST_F(L02_Aggregate, GivenABranchOfAnotherTime_WhenJoined_ThenOneErrorNamesElementPadAndBoth) {
  make();
  begin();
  push(first_, frame(1));
  push(branch_, frame(0));
  EXPECT_EQ(error(),
            "join: device 'cpu': joining branches: pad 'sink_1': its frame with PTS 0 was left out "
            "by pad 'sink_0', which has PTS 40000000");
  EXPECT_TRUE(eventually([&] { return push(first_, frame(2)) == GST_FLOW_ERROR; }));
  EXPECT_EQ(push(branch_, frame(2)), GST_FLOW_ERROR);
  EXPECT_TRUE(take_errors(bus_.get()).empty());
}

TEST_F(L02_Aggregate, GivenTooManyRecords_WhenJoined_ThenTheLimitIsNamed) {
  make({"max-records=1"});
  begin();
  push(first_, with_box(frame(0), 1));
  push(branch_, with_box(frame(0), 1));
  EXPECT_EQ(error(),
            "join: device 'cpu': joining branches: pad 'sink_1': its 1 records beside the 1 that "
            "are there are more than 1 (max-records)");
}

TEST_F(L02_Aggregate, GivenNoPrimaryPad_WhenStarted_ThenItIsAnErrorAndNotAHang) {
  const GstPtr<GstElement> element(
      GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("penaggregate", "join"))));
  const GstPtr<GstBus> bus(gst_bus_new());
  gst_element_set_bus(element.get(), bus.get());
  GstPad* pad = gst_element_request_pad_simple(element.get(), "sink_1");
  EXPECT_EQ(gst_element_request_pad_simple(element.get(), "sink_x"), nullptr);
  EXPECT_EQ(gst_element_set_state(element.get(), GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
  const auto errors = take_errors(bus.get());
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0],
            "join: device 'cpu': starting: no pad 'sink_0' was requested, whose frames go on");
  gst_element_set_state(element.get(), GST_STATE_NULL);
  gst_element_release_request_pad(element.get(), pad);
  gst_object_unref(pad);
  gst_bus_set_flushing(bus.get(), TRUE);
}

TEST_F(G03_Element, GivenAPadThatComesAndGoes_WhenPlaying_ThenFramesGoOnWithAndWithoutIt) {
  make();
  begin();
  for (int round = 0; round < 3; ++round) {
    const int number = 3 * round;
    push(first_, frame(number));
    push(branch_, with_box(frame(number), 1));
    EXPECT_EQ(box_x(pull().get()), 3);
    HarnessPtr other(gst_harness_new_with_element(element_.get(), "sink_7", nullptr));
    begin(other, 96, 48);
    push(other, with_box(frame(number + 1), 7));
    push(branch_, with_box(frame(number + 1), 1));
    push(first_, frame(number + 1));
    const BufferPtr both = pull();
    EXPECT_EQ(box_x(both.get(), 0), 3);
    EXPECT_EQ(box_x(both.get(), 1), 14);
    other.reset();  // Releases the pad.
    push(branch_, frame(number + 2));
    push(first_, frame(number + 2));
    EXPECT_EQ(box_x(pull().get()), -1);
  }
  EXPECT_EQ(stat("frames"), 9u);
  EXPECT_EQ(stat("missing"), 0u);
  EXPECT_TRUE(take_errors(bus_.get()).empty());
}

TEST_F(L03_Aggregate, GivenOneBranchsEnd_WhenMissingPasses_ThenThePrimaryGoesOnToItsOwn) {
  make({"missing=pass"});
  begin();
  EXPECT_TRUE(gst_harness_push_event(branch_.get(), gst_event_new_eos()));
  push(first_, frame(0));
  push(first_, frame(1));
  EXPECT_TRUE(gst_harness_push_event(first_.get(), gst_event_new_eos()));
  EXPECT_NE(pull(), nullptr);
  EXPECT_NE(pull(), nullptr);
  EXPECT_TRUE(eventually([&] {
    const EventPtr event(gst_harness_try_pull_event(first_.get()));
    return event != nullptr && GST_EVENT_TYPE(event.get()) == GST_EVENT_EOS;
  }));
  EXPECT_EQ(stat("missing"), 2u);
}

TEST_F(L03_Aggregate, GivenAFrameThatWaits_WhenFlushed_ThenItIsDroppedAtOnceAndTheNextIsJoined) {
  make();
  begin();
  push(first_, frame(50));
  const auto start = std::chrono::steady_clock::now();
  for (const HarnessPtr* harness : {&first_, &branch_}) {
    EXPECT_TRUE(gst_harness_push_event(harness->get(), gst_event_new_flush_start()));
  }
  EXPECT_EQ(push(first_, frame(51)), GST_FLOW_FLUSHING);
  for (const HarnessPtr* harness : {&first_, &branch_}) {
    EXPECT_TRUE(gst_harness_push_event(harness->get(), gst_event_new_flush_stop(TRUE)));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, kFlushLimit);
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  for (const HarnessPtr* harness : {&first_, &branch_}) {
    EXPECT_TRUE(gst_harness_push_event(harness->get(), gst_event_new_segment(&segment)));
  }
  push(first_, frame(0));
  push(branch_, with_box(frame(0), 2));
  const BufferPtr out = pull();
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(GST_BUFFER_PTS(out.get()), pts(0));
  EXPECT_EQ(box_x(out.get()), 6);
}

TEST_F(L03_Aggregate, GivenFullQueues_WhenStopped_ThenWhoWaitsIsLetGo) {
  make({"queue-depth=1"});
  begin();
  push(first_, frame(0));
  auto second = std::async(std::launch::async, [&] { return push(first_, frame(1)); });
  EXPECT_EQ(gst_element_set_state(element_.get(), GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
  EXPECT_EQ(second.get(), GST_FLOW_FLUSHING);
  EXPECT_EQ(gst_element_set_state(element_.get(), GST_STATE_PLAYING), GST_STATE_CHANGE_SUCCESS);
}

TEST_F(L05_Aggregate, GivenLiveBranches_WhenAsked_ThenTheSlowestIsTheLatency) {
  make();
  begin();
  gst_harness_set_upstream_latency(first_.get(), 20 * GST_MSECOND);
  gst_harness_set_upstream_latency(branch_.get(), 90 * GST_MSECOND);
  EXPECT_EQ(gst_harness_query_latency(first_.get()), 90 * GST_MSECOND);
}

TEST_F(L05_Aggregate, GivenALiveSourceWithoutAFrameRate_WhenAsked_ThenItsMaximumIsPassedOn) {
  for (const auto& [rate, maximum] :
       {std::pair{"25/1", (70 + 3 * 40) * GST_MSECOND}, {"0/1", 70 * GST_MSECOND}}) {
    make({"queue-depth=3"});
    gst_pad_add_probe(
        first_->srcpad, GST_PAD_PROBE_TYPE_QUERY_BOTH,
        [](GstPad*, GstPadProbeInfo* info, gpointer) {
          GstQuery* query = GST_PAD_PROBE_INFO_QUERY(info);
          if (GST_QUERY_TYPE(query) != GST_QUERY_LATENCY) return GST_PAD_PROBE_OK;
          gst_query_set_latency(query, TRUE, 70 * GST_MSECOND, 70 * GST_MSECOND);
          return GST_PAD_PROBE_HANDLED;
        },
        nullptr, nullptr);
    begin(first_, 192, 96, rate);
    begin(branch_, 64, 32, rate);
    const GstPtr<GstPad> pad(gst_element_get_static_pad(element_.get(), "src"));
    const GstPtr<GstQuery> query(gst_query_new_latency());
    ASSERT_TRUE(gst_pad_query(pad.get(), query.get()));
    GstClockTime minimum = 0, most = 0;
    gst_query_parse_latency(query.get(), nullptr, &minimum, &most);
    EXPECT_EQ(minimum, 70 * GST_MSECOND) << rate;
    EXPECT_EQ(most, maximum) << rate;
    TearDown();
  }
}

TEST_F(L05_Aggregate, GivenMissingPasses_WhenAsked_ThenTheWaitBehindThePrimaryIsTheLatency) {
  make({"missing=pass", "max-wait=150000000"});
  begin();
  gst_harness_set_upstream_latency(first_.get(), 20 * GST_MSECOND);
  gst_harness_set_upstream_latency(branch_.get(), 90 * GST_MSECOND);
  EXPECT_EQ(gst_harness_query_latency(first_.get()), 170 * GST_MSECOND);
}

TEST_F(L05_Aggregate, GivenADecoder_WhenItAsksForMemory_ThenTheFramesThatMayBeHeldAreInTheReply) {
  make({"queue-depth=5"});
  begin();
  const CapsPtr asked(gst_caps_from_string(caps(192, 96).c_str()));
  for (const HarnessPtr* harness : {&first_, &branch_}) {
    const GstPtr<GstQuery> query(gst_query_new_allocation(asked.get(), TRUE));
    ASSERT_TRUE(gst_pad_peer_query((*harness)->srcpad, query.get()));
    ASSERT_EQ(gst_query_get_n_allocation_pools(query.get()), 1u);
    guint minimum = 0;
    gst_query_parse_nth_allocation_pool(query.get(), 0, nullptr, nullptr, &minimum, nullptr);
    EXPECT_GE(minimum, 7u);
  }
}

TEST_F(L05_Aggregate, GivenEventsOfThePrimary_WhenJoined_ThenTheyKeepTheirPlaceAndBranchsStay) {
  make();
  begin();
  while (const EventPtr before{gst_harness_try_pull_event(first_.get())}) {
  }
  push(first_, frame(0));
  for (const HarnessPtr* harness : {&first_, &branch_}) {
    EXPECT_TRUE(gst_harness_push_event(
        harness->get(), gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "t", nullptr))));
  }
  EXPECT_TRUE(gst_harness_push_event(first_.get(), gst_event_new_gap(pts(1), 1)));
  push(branch_, frame(0));
  EXPECT_NE(pull(), nullptr);
  std::vector<std::string> names;
  EXPECT_TRUE(eventually([&] {
    const EventPtr event(gst_harness_try_pull_event(first_.get()));
    if (event != nullptr) names.emplace_back(GST_EVENT_TYPE_NAME(event.get()));
    return !names.empty() && names.back() == "gap";
  }));
  std::erase_if(names, [](const std::string& name) { return name != "tag" && name != "gap"; });
  EXPECT_EQ(names, (std::vector<std::string>{"tag", "gap"}));
}

TEST_F(L05_Aggregate, GivenNobodyBehindIt_WhenLinkedAgain_ThenFramesGoOnAndNoneIsMissed) {
  make();
  begin();
  push(first_, frame(0));
  push(branch_, frame(0));
  EXPECT_NE(pull(), nullptr);
  const GstPtr<GstPad> src(gst_element_get_static_pad(element_.get(), "src"));
  const GstPtr<GstPad> peer(gst_pad_get_peer(src.get()));
  ASSERT_TRUE(gst_pad_unlink(src.get(), peer.get()));
  push(first_, frame(1));
  push(branch_, frame(1));
  int number = 2;
  EXPECT_TRUE(eventually([&] { return stat("waiting") == 0; }));
  EXPECT_TRUE(eventually([&] { return push(first_, frame(number++)) == GST_FLOW_NOT_LINKED; }));
  ASSERT_EQ(gst_pad_link(src.get(), peer.get()), GST_PAD_LINK_OK);
  push(branch_, with_box(frame(3), 1));
  push(branch_, with_box(frame(4), 2));
  push(first_, frame(4));
  const BufferPtr out = pull();
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(GST_BUFFER_PTS(out.get()), pts(4));
  EXPECT_EQ(box_x(out.get()), 6);
  EXPECT_TRUE(take_errors(bus_.get()).empty());
}

TEST_F(L01_Aggregate, GivenItPlays_WhenAPropertyIsSet_ThenItStaysAndAWarningSaysSo) {
  make();
  int walked = 0;
  for (const GParamSpec* property : own_properties(element_.get())) {
    if (!(property->flags & G_PARAM_WRITABLE)) continue;
    EXPECT_TRUE(property->flags & GST_PARAM_MUTABLE_READY) << property->name;
    EXPECT_FALSE(property->flags & (GST_PARAM_MUTABLE_PAUSED | GST_PARAM_MUTABLE_PLAYING));
    GValue before = G_VALUE_INIT, after = G_VALUE_INIT;
    g_value_init(&before, property->value_type);
    g_value_init(&after, property->value_type);
    g_object_get_property(G_OBJECT(element_.get()), property->name, &before);
    WarningTrap warnings;
    gst_util_set_object_arg(G_OBJECT(element_.get()), property->name,
                            G_IS_PARAM_SPEC_ENUM(property) ? "pass" : "7");
    EXPECT_EQ(warnings.take().size(), 1u) << property->name;
    g_object_get_property(G_OBJECT(element_.get()), property->name, &after);
    EXPECT_EQ(g_param_values_cmp(const_cast<GParamSpec*>(property), &before, &after), 0)
        << property->name;
    g_value_unset(&before);
    g_value_unset(&after);
    ++walked;
  }
  EXPECT_EQ(walked, 4);
}

}  // namespace
}  // namespace penstock::gst
