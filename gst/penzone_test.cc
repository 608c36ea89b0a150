// SPDX-License-Identifier: Apache-2.0
//
// penzone on generated metadata streams of tracked objects.
#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gst/gst_ptr.h"
#include "gst/penanalysis_meta.h"
#include "gst/testing/element_properties.h"
#include "gst/testing/infer_fixture.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

/// Whose foot stands at (x, y).
struct Stands {
  int x, y;
  guint64 id;
  const char* label = "person";
};

BufferPtr frame_at(GstClockTime pts, const std::vector<Stands>& objects) {
  BufferPtr buffer(gst_buffer_new_allocate(nullptr, 64, nullptr));
  GST_BUFFER_PTS(buffer.get()) = pts;
  GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(buffer.get());
  for (const Stands& object : objects) {
    GstAnalyticsODMtd box;
    GstAnalyticsTrackingMtd track;
    EXPECT_TRUE(gst_analytics_relation_meta_add_od_mtd(
        meta, g_quark_from_string(object.label), object.x - 5, object.y - 20, 10, 20, 0.9f, &box));
    EXPECT_TRUE(gst_analytics_relation_meta_add_tracking_mtd(meta, object.id, 0, &track));
    EXPECT_TRUE(gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO,
                                                         box.id, track.id));
  }
  return buffer;
}

constexpr const char* kDoor = "door: 0.2,0.2 0.6,0.2 0.6,0.6 0.2,0.6";

class PenzoneTest : public ::testing::Test {
 protected:
  void SetUp() override {
    element_.reset(GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("penzone", "zones"))));
    bus_.reset(gst_bus_new());
    gst_element_set_bus(element_.get(), bus_.get());
  }
  void TearDown() override {
    harness_.reset();
    gst_element_set_state(element_.get(), GST_STATE_NULL);
    gst_bus_set_flushing(bus_.get(), TRUE);
  }
  /// Starts it with the properties it has; frames are of 100 x 100 pixels.
  void play() {
    harness_.reset(gst_harness_new_with_element(element_.get(), "sink", "src"));
    gst_harness_set_src_caps_str(harness_.get(),
                                 "video/x-raw,format=NV12,width=100,height=100,framerate=1/1");
  }
  BufferPtr push(BufferPtr buffer) {
    return BufferPtr(gst_harness_push_and_pull(harness_.get(), buffer.release()));
  }
  /// "event place id" of the messages so far.
  std::vector<std::string> events() {
    std::vector<std::string> texts;
    while (GstMessage* raw = gst_bus_pop(bus_.get())) {
      const GstPtr<GstMessage> message(raw);
      if (GST_MESSAGE_TYPE(raw) != GST_MESSAGE_ELEMENT) continue;
      const GstStructure* event = gst_message_get_structure(raw);
      guint64 id = 99, dwell = 0;
      EXPECT_TRUE(gst_structure_get_uint64(event, "track-id", &id));
      std::string text = std::string(gst_structure_get_string(event, "event")) + " " +
                         gst_structure_get_string(event, "place") + " " + std::to_string(id);
      if (gst_structure_get_uint64(event, "dwell", &dwell)) {
        text += " " + std::to_string(dwell / GST_SECOND) + " s";
      }
      texts.push_back(text);
    }
    return texts;
  }
  guint64 stat(const char* list, guint index, const char* field) {
    GstStructure* raw = nullptr;
    g_object_get(element_.get(), "stats", &raw, nullptr);
    const GstPtr<GstStructure> stats(raw);
    const GValue* entries = gst_structure_get_value(raw, list);
    guint64 value = 12345;
    EXPECT_TRUE(gst_structure_get_uint64(
        gst_value_get_structure(gst_value_list_get_value(entries, index)), field, &value));
    return value;
  }
  /// What begins a stream, then its segment.
  void begin(GstEvent* event) {
    EXPECT_TRUE(gst_harness_push_event(harness_.get(), event));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    EXPECT_TRUE(gst_harness_push_event(harness_.get(), gst_event_new_segment(&segment)));
  }

  GstPtr<GstElement> element_;
  GstPtr<GstBus> bus_;
  HarnessPtr harness_;
};

using Texts = std::vector<std::string>;

TEST_F(PenzoneTest, GivenAVisit_WhenFramesPass_ThenEventsAreToldAndSumsKept) {
  g_object_set(element_.get(), "zones", kDoor, "lines", "gate: 0.5,0.9 0.5,0.1", nullptr);
  play();
  push(frame_at(0, {{10, 40, 0}}));
  EXPECT_EQ(events(), Texts{});
  push(frame_at(GST_SECOND, {{30, 40, 0}}));
  EXPECT_EQ(events(), Texts{"entered door 0"});
  EXPECT_EQ(stat("zones", 0, "inside"), 1u);
  push(frame_at(4 * GST_SECOND, {{55, 40, 0}}));
  EXPECT_EQ(events(), Texts{"crossed-forwards gate 0"});
  EXPECT_EQ(stat("zones", 0, "longest-dwell"), 3 * GST_SECOND);
  push(frame_at(6 * GST_SECOND, {{80, 40, 0}}));
  EXPECT_EQ(events(), Texts{"left door 0 5 s"});
  EXPECT_EQ(stat("zones", 0, "inside"), 0u);
  EXPECT_EQ(stat("zones", 0, "entered"), 1u);
  EXPECT_EQ(stat("zones", 0, "left"), 1u);
  EXPECT_EQ(stat("zones", 0, "total-dwell"), 5 * GST_SECOND);
  EXPECT_EQ(stat("lines", 0, "forwards"), 1u);
}

TEST_F(PenzoneTest, GivenFramesThatNobodyLookedAt_WhenTheyPass_ThenNobodyHasLeft) {
  g_object_set(element_.get(), "zones", kDoor, "forget-after", guint64{1}, nullptr);
  play();
  push(frame_at(0, {{30, 40, 3}}));
  BufferPtr plain(gst_buffer_new_allocate(nullptr, 64, nullptr));
  GST_BUFFER_PTS(plain.get()) = 5 * GST_SECOND;
  push(std::move(plain));
  EXPECT_EQ(events(), Texts{"entered door 3"});
  EXPECT_EQ(stat("zones", 0, "inside"), 1u);
}

TEST_F(PenzoneTest, GivenAnotherStreamOrAFlush_WhenItsObjectsHaveTheSameIds_ThenTheyAreOthers) {
  g_object_set(element_.get(), "zones", kDoor, nullptr);
  play();
  push(frame_at(9 * GST_SECOND, {{30, 40, 3}}));
  begin(gst_event_new_stream_start("another"));
  push(frame_at(0, {{30, 40, 3}}));
  EXPECT_EQ(stat("zones", 0, "entered"), 2u);
  EXPECT_EQ(stat("zones", 0, "longest-dwell"), 0u) << "times begin anew, too";
  ASSERT_TRUE(gst_harness_push_event(harness_.get(), gst_event_new_flush_start()));
  begin(gst_event_new_flush_stop(TRUE));
  push(frame_at(GST_SECOND, {{30, 40, 3}}));
  EXPECT_EQ(stat("zones", 0, "entered"), 3u);
}

TEST_F(PenzoneTest, GivenARunningElement_WhenAPropertyOfReadyIsSet_ThenItStaysAndThatIsSaid) {
  g_object_set(element_.get(), "zones", kDoor, nullptr);
  play();
  push(frame_at(0, {}));
  WarningTrap trap;
  g_object_set(element_.get(), "zones", "other: 0,0 1,0 1,1", nullptr);
  const auto said = trap.take();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("'zones'"), std::string::npos) << said[0];
  gchar* zones = nullptr;
  g_object_get(element_.get(), "zones", &zones, nullptr);
  EXPECT_STREQ(zones, kDoor);
  g_free(zones);
}

TEST_F(PenzoneTest, GivenASharedFrame_WhenItPasses_ThenItIsTheSameBuffer) {
  g_object_set(element_.get(), "zones", kDoor, "post-messages", FALSE, nullptr);
  play();
  const BufferPtr held = frame_at(0, {{30, 40, 3}});
  const BufferPtr passed = push(BufferPtr(gst_buffer_ref(held.get())));
  EXPECT_EQ(passed.get(), held.get());
  EXPECT_EQ(events(), Texts{});
  EXPECT_EQ(stat("zones", 0, "entered"), 1u);
}

/// Of the analysis on a frame: "zone inside entered left" and "line forwards backwards".
Texts counts_on(GstBuffer* buffer) {
  Texts texts;
  const Analysis* analysis = read_analysis(buffer);
  if (analysis == nullptr) return texts;
  for (const ZoneCount& zone : analysis->result.zones) {
    texts.push_back(str_format("{} {} {} {}", zone.name, zone.inside, zone.entered, zone.left));
  }
  for (const LineCount& line : analysis->result.lines) {
    texts.push_back(str_format("{} {} {}", line.name, line.forwards, line.backwards));
  }
  return texts;
}

BufferPtr analysed_at(GstClockTime pts, const std::vector<Stands>& objects) {
  BufferPtr buffer = frame_at(pts, objects);
  auto analysis = std::make_shared<Analysis>();
  analysis->result.objects.resize(objects.size());
  attach_analysis(buffer.get(), std::move(analysis));
  return buffer;
}

TEST_F(PenzoneTest, GivenAnalysedFrames_WhenTheyPass_ThenEachSaysWhatWasCountedUpToIt) {
  g_object_set(element_.get(), "zones", kDoor, "lines", "gate: 0.5,0.9 0.5,0.1", nullptr);
  play();
  EXPECT_EQ(counts_on(push(analysed_at(0, {{30, 40, 0}, {40, 40, 1}})).get()),
            (Texts{"door 2 2 0", "gate 0 0"}));
  EXPECT_EQ(counts_on(push(analysed_at(GST_SECOND, {{55, 40, 0}, {40, 40, 1}})).get()),
            (Texts{"door 2 2 0", "gate 1 0"}));
  EXPECT_EQ(counts_on(push(analysed_at(2 * GST_SECOND, {{80, 40, 0}, {40, 40, 1}})).get()),
            (Texts{"door 1 2 1", "gate 1 0"}));
}

TEST_F(PenzoneTest, GivenAFrameThatAnotherHoldsToo_WhenItGetsCounts_ThenTheOthersIsAsItWas) {
  g_object_set(element_.get(), "zones", kDoor, nullptr);
  play();
  const BufferPtr held = analysed_at(0, {{30, 40, 3}});
  const BufferPtr passed = push(BufferPtr(gst_buffer_ref(held.get())));
  ASSERT_NE(passed, nullptr);
  EXPECT_EQ(counts_on(passed.get()), Texts{"door 1 1 0"});
  EXPECT_EQ(counts_on(held.get()), Texts{});
  EXPECT_EQ(gst_buffer_peek_memory(passed.get(), 0), gst_buffer_peek_memory(held.get(), 0));
  EXPECT_EQ(GST_BUFFER_PTS(passed.get()), 0u);
}

TEST_F(PenzoneTest, GivenTwoCounters_WhenAFramePassesBoth_ThenItHasBothsCounts) {
  g_object_set(element_.get(), "zones", kDoor, nullptr);
  play();
  BufferPtr frame = analysed_at(0, {{30, 40, 3}});
  auto counted = std::make_shared<Analysis>(*read_analysis(frame.get()));
  counted->result.zones = {{.name = "before", .inside = 7}};
  replace_analysis(frame.get(), std::move(counted));
  EXPECT_EQ(counts_on(push(std::move(frame)).get()), (Texts{"before 7 0 0", "door 1 1 0"}));
}

TEST_F(PenzoneTest, GivenPlacesThatAreNone_WhenStarted_ThenOneErrorNamesThem) {
  for (const auto& [property, text, named] :
       {std::tuple{"zones", "door 0,0", "property 'zones'"},
        {"zones", "door: 0,0 1,1", "zone 'door' has 2 corners"},
        {"lines", "gate: 0,0", "line 'gate' has 1 ends"}}) {
    g_object_set(element_.get(), "zones", "", "lines", "", property, text, nullptr);
    EXPECT_EQ(gst_element_set_state(element_.get(), GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
    const auto said = take_errors(bus_.get());
    ASSERT_EQ(said.size(), 1u);
    EXPECT_NE(said[0].find("zones: device 'cpu'"), std::string::npos) << said[0];
    EXPECT_NE(said[0].find(named), std::string::npos) << said[0];
    gst_element_set_state(element_.get(), GST_STATE_NULL);
  }
}

}  // namespace
}  // namespace penstock::gst
