// SPDX-License-Identifier: Apache-2.0
//
// pentrack on generated metadata streams, read back with the stock API of GstAnalytics.
#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gst/gst_ptr.h"
#include "gst/penanalysis_meta.h"
#include "gst/testing/element_properties.h"
#include "gst/testing/infer_fixture.h"

namespace penstock::gst {
namespace {

constexpr GstClockTime kFrame = 40 * GST_MSECOND;

struct Seen {
  int x, y;
  const char* label = "person";
};

/// A frame that nobody looked for objects in.
BufferPtr plain_frame(int number) {
  BufferPtr buffer(gst_buffer_new_allocate(nullptr, 64, nullptr));
  GST_BUFFER_PTS(buffer.get()) = guint64(number) * kFrame;
  GST_BUFFER_DURATION(buffer.get()) = kFrame;
  return buffer;
}

BufferPtr analysed_frame(int number, const std::vector<Seen>& seen) {
  BufferPtr buffer = plain_frame(number);
  GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(buffer.get());
  for (const Seen& object : seen) {
    GstAnalyticsODMtd added;
    EXPECT_TRUE(gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string(object.label),
                                                       object.x, object.y, 40, 100, 0.9f, &added));
  }
  return buffer;
}

struct Told {
  int x = 0;
  std::string label;
  guint64 id = 0;
  GstClockTime first_seen = 0, last_seen = 0;
  gboolean lost = FALSE;
};

std::vector<Told> read(GstBuffer* buffer) {
  std::vector<Told> objects;
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  if (meta == nullptr) return objects;
  gpointer state = nullptr;
  GstAnalyticsMtd record;
  while (gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_od_mtd_get_mtd_type(),
                                             &record)) {
    Told& object = objects.emplace_back();
    gint y = 0, width = 0, height = 0;
    gst_analytics_od_mtd_get_location(&record, &object.x, &y, &width, &height, nullptr);
    object.label = g_quark_to_string(gst_analytics_od_mtd_get_obj_type(&record));
    gpointer tracks = nullptr;
    GstAnalyticsTrackingMtd track;
    if (!gst_analytics_relation_meta_get_direct_related(
            meta, record.id, GST_ANALYTICS_REL_TYPE_RELATE_TO,
            gst_analytics_tracking_mtd_get_mtd_type(), &tracks, &track)) {
      continue;
    }
    EXPECT_TRUE(gst_analytics_tracking_mtd_get_info(&track, &object.id, &object.first_seen,
                                                    &object.last_seen, &object.lost));
  }
  return objects;
}

/// One pentrack of one stream.
class TrackHarness {
 public:
  TrackHarness() : harness_(gst_harness_new("pentrack")) {
    gst_harness_set_src_caps_str(get(),
                                 "video/x-raw,format=NV12,width=1280,height=720,framerate=25/1");
  }
  GstHarness* get() const { return harness_.get(); }
  BufferPtr push(BufferPtr buffer) {
    return BufferPtr(gst_harness_push_and_pull(get(), buffer.release()));
  }
  std::vector<Told> track(int number, const std::vector<Seen>& seen) {
    const BufferPtr buffer = push(analysed_frame(number, seen));
    return buffer == nullptr ? std::vector<Told>{} : read(buffer.get());
  }

 private:
  HarnessPtr harness_;
};

TEST(G04, GivenAWalker_WhenDetectionsLackForThirtyFrames_ThenTheIdIsStillTheSame) {
  TrackHarness harness;
  guint64 id = 0;
  for (int frame = 0; frame < 100; ++frame) {
    SCOPED_TRACE(frame);
    if (frame >= 40 && frame < 70) {
      harness.track(frame, {});
      continue;
    }
    const auto told = harness.track(frame, {{100 + 4 * frame, 200}});
    ASSERT_EQ(told.size(), 1u);
    ASSERT_NE(told[0].id, 0u);
    if (id == 0) id = told[0].id;
    EXPECT_EQ(told[0].id, id);
    EXPECT_EQ(told[0].first_seen, 0u);
    EXPECT_EQ(told[0].last_seen, guint64(frame) * kFrame);
    EXPECT_FALSE(told[0].lost);
  }
}

TEST(G04, GivenAnotherStreamStart_WhenItsObjectsComeAtTheSamePlace_ThenTheyAreOthers) {
  TrackHarness harness;
  const auto first = harness.track(0, {{300, 100}});
  harness.track(1, {{300, 100}});
  ASSERT_TRUE(gst_harness_push_event(harness.get(), gst_event_new_stream_start("another")));
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  ASSERT_TRUE(gst_harness_push_event(harness.get(), gst_event_new_segment(&segment)));
  const auto second = harness.track(2, {{300, 100}});
  ASSERT_EQ(first.size(), 1u);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_GT(second[0].id, first[0].id);
  EXPECT_LT(second[0].id, guint64{1} << 63);
  EXPECT_EQ(second[0].first_seen, 2 * kFrame);
}

TEST(G04, GivenAFlush_WhenFramesComeAgain_ThenNoTrackOfBeforeIsContinued) {
  TrackHarness harness;
  const auto first = harness.track(0, {{300, 100}});
  ASSERT_TRUE(gst_harness_push_event(harness.get(), gst_event_new_flush_start()));
  ASSERT_TRUE(gst_harness_push_event(harness.get(), gst_event_new_flush_stop(TRUE)));
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  ASSERT_TRUE(gst_harness_push_event(harness.get(), gst_event_new_segment(&segment)));
  const auto second = harness.track(2, {{300, 100}});
  ASSERT_EQ(second.size(), 1u);
  EXPECT_GT(second[0].id, first[0].id);
}

TEST(G04, GivenTwoStreams_WhenTracked_ThenNeitherKnowsTheOthersObjects) {
  TrackHarness one, other;
  const auto first = one.track(0, {{300, 100}});
  EXPECT_TRUE(other.track(0, {}).empty());
  EXPECT_TRUE(read(other.push(plain_frame(1)).get()).empty());
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(other.track(2, {{700, 100}}).size(), 1u);
  EXPECT_EQ(one.track(1, {{300, 100}})[0].id, first[0].id);
}

TEST(G04, GivenFramesThatNobodyLookedAt_WhenTracked_ThenObjectsAreWhereTheyMustBe) {
  TrackHarness harness;
  guint64 id = 0;
  for (int frame = 0; frame < 60; ++frame) {
    SCOPED_TRACE(frame);
    const int x = 100 + 5 * frame;
    if (frame % 3 == 0) {
      id = harness.track(frame, {{x, 200}})[0].id;
      continue;
    }
    const auto told = read(harness.push(plain_frame(frame)).get());
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].id, id);
    EXPECT_EQ(told[0].label, "person");
    EXPECT_EQ(told[0].last_seen, guint64(frame - frame % 3) * kFrame);
    if (frame >= 12) {
      EXPECT_NEAR(told[0].x, x, 4) << "the speed is known by now";
    }
  }
}

TEST(G01, GivenRecordsOfOthers_WhenTracked_ThenTheyAreUntouchedAndTracksAreRelated) {
  TrackHarness harness;
  BufferPtr buffer = analysed_frame(0, {{100, 100, "cat"}, {500, 300, "dog"}});
  GstAnalyticsClsMtd added;
  ASSERT_TRUE(gst_analytics_relation_meta_add_one_cls_mtd(
      gst_buffer_get_analytics_relation_meta(buffer.get()), 0.5f, g_quark_from_string("indoors"),
      &added));
  buffer = harness.push(std::move(buffer));
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer.get());
  EXPECT_EQ(gst_analytics_relation_get_length(meta), 5u);
  const auto told = read(buffer.get());
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].label, "cat");
  EXPECT_EQ(told[0].x, 100);
  EXPECT_EQ(told[1].label, "dog");
  EXPECT_NE(told[0].id, 0u);
  EXPECT_NE(told[1].id, 0u);
  EXPECT_NE(told[0].id, told[1].id);
}

TEST(G01, GivenAFrameThatNobodyLookedAt_WhenThereIsNothingToTell_ThenItGetsNoMetadata) {
  TrackHarness harness;
  const BufferPtr buffer = harness.push(plain_frame(0));
  EXPECT_EQ(gst_buffer_get_analytics_relation_meta(buffer.get()), nullptr);
}

std::shared_ptr<Analysis> analysis_of(const std::vector<float>& places) {
  auto analysis = std::make_shared<Analysis>();
  analysis->result.frame = 7;
  for (const float x : places) {
    analysis->result.objects.push_back({.class_id = 3,
                                        .label = "person",
                                        .confidence = 0.9f,
                                        .x = x,
                                        .y = 100.25f,
                                        .width = 40,
                                        .height = 100});
  }
  return analysis;
}

TEST(G02, GivenAnAnalysis_WhenTracked_ThenItsCopyHasTheIdsAndTheOriginalNone) {
  TrackHarness harness;
  const auto original = analysis_of({100.5f, 500.5f});
  BufferPtr buffer = analysed_frame(0, {{101, 100}, {501, 100}});
  attach_analysis(buffer.get(), original);
  buffer = harness.push(std::move(buffer));
  const Analysis* tracked = read_analysis(buffer.get());
  ASSERT_NE(tracked, nullptr);
  const auto told = read(buffer.get());
  ASSERT_EQ(tracked->result.objects.size(), 2u);
  EXPECT_EQ(tracked->result.frame, 7u);
  EXPECT_EQ(gst_buffer_get_n_meta(buffer.get(), g_type_from_name("PenAnalysisMetaAPI")), 1u);
  for (std::size_t i = 0; i < 2; ++i) {
    const Detection& object = tracked->result.objects[i];
    EXPECT_EQ(guint64(object.track_id), told[i].id);
    EXPECT_EQ(object.class_id, 3);
    EXPECT_FLOAT_EQ(object.x, original->result.objects[i].x);
    EXPECT_FALSE(object.predicted);
    EXPECT_EQ(original->result.objects[i].track_id, 0);
  }
}

TEST(G02, GivenAFrameThatNobodyLookedAt_WhenTheObjectsHadAnAnalysis_ThenThePredictedHaveOneToo) {
  TrackHarness harness;
  auto original = analysis_of({100.5f});
  original->result.source = "door";
  original->result.generation = 4;
  BufferPtr buffer = analysed_frame(0, {{101, 100}});
  attach_analysis(buffer.get(), original);
  buffer = harness.push(std::move(buffer));
  const auto told = read(buffer.get());
  ASSERT_EQ(told.size(), 1u);
  EXPECT_FALSE(read_analysis(buffer.get())->predicted);
  for (int frame = 1; frame < 3; ++frame) {
    buffer = harness.push(plain_frame(frame));
    const Analysis* predicted = read_analysis(buffer.get());
    ASSERT_NE(predicted, nullptr);
    EXPECT_TRUE(predicted->predicted);
    EXPECT_EQ(predicted->result.source, "door");
    EXPECT_EQ(predicted->result.generation, 4u);
    EXPECT_EQ(predicted->result.frame, 7u + guint64(frame));
    EXPECT_EQ(predicted->result.pts_ns, frame * 40'000'000);
    EXPECT_EQ(predicted->result.width, 1280);
    EXPECT_EQ(predicted->result.height, 720);
    ASSERT_EQ(predicted->result.objects.size(), 1u);
    const Detection& object = predicted->result.objects[0];
    EXPECT_TRUE(object.predicted);
    EXPECT_EQ(object.class_id, 3);
    EXPECT_EQ(object.label, "person");
    EXPECT_EQ(guint64(object.track_id), told[0].id);
    EXPECT_FLOAT_EQ(object.x, 100.5f) << "it stood still as far as anybody knows";
  }
  // Objects that somebody else told of have no numbers of a model's classes.
  for (int frame = 3; frame < 6; ++frame) harness.track(frame, {{101, 100}});
  buffer = harness.push(plain_frame(6));
  EXPECT_GE(read(buffer.get()).size(), 1u);
  EXPECT_EQ(read_analysis(buffer.get()), nullptr);
}

TEST(G02, GivenAnAnalysisOfOtherObjects_WhenTracked_ThenItIsLeftAlone) {
  TrackHarness harness;
  const auto original = analysis_of({100.5f});
  BufferPtr buffer = analysed_frame(0, {{101, 100}, {501, 100}});
  attach_analysis(buffer.get(), original);
  buffer = harness.push(std::move(buffer));
  EXPECT_EQ(read_analysis(buffer.get()), original.get());
  EXPECT_EQ(read(buffer.get()).size(), 2u);
}

TEST(G02, GivenRecordsThatSomebodyChanged_WhenTracked_ThenTheyCountAndNotTheAnalysis) {
  const std::vector<Seen> changes[] = {
      {{300, 100}, {501, 100}}, {{101, 100, "dog"}, {501, 100}}, {{501, 100}, {101, 100}}};
  for (const auto& changed : changes) {
    TrackHarness harness;
    const auto original = analysis_of({100.5f, 500.5f});
    BufferPtr buffer = analysed_frame(0, changed);
    attach_analysis(buffer.get(), original);
    buffer = harness.push(std::move(buffer));
    EXPECT_EQ(read_analysis(buffer.get()), original.get()) << "left alone";
    const auto told = read(buffer.get());
    ASSERT_EQ(told.size(), 2u);
    // Where they are now: a detection there, without any analysis, is the same object's.
    const auto next = harness.track(1, changed);
    ASSERT_EQ(next.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(told[i].x, changed[i].x);
      EXPECT_EQ(next[i].id, told[i].id);
    }
  }
}

TEST(Pentrack, GivenABufferThatSomebodyElseHolds_WhenTracked_ThenACopyWithTheSameMemoryGetsTracks) {
  TrackHarness harness;
  const BufferPtr held = analysed_frame(0, {{100, 100}});
  const BufferPtr tracked = harness.push(BufferPtr(gst_buffer_ref(held.get())));
  EXPECT_EQ(read(held.get())[0].id, 0u);
  EXPECT_NE(read(tracked.get())[0].id, 0u);
  EXPECT_EQ(gst_buffer_peek_memory(tracked.get(), 0), gst_buffer_peek_memory(held.get(), 0));
  EXPECT_EQ(GST_BUFFER_PTS(tracked.get()), GST_BUFFER_PTS(held.get()));
}

TEST(Pentrack, GivenAnAllocationQuery_WhenAsked_ThenDownstreamAnswersAndNothingIsHeld) {
  TrackHarness harness;
  harness.track(0, {});
  gst_harness_add_propose_allocation_meta(harness.get(), GST_VIDEO_META_API_TYPE, nullptr);
  const CapsPtr caps(gst_pad_get_current_caps(harness.get()->srcpad));
  const GstPtr<GstQuery> query(gst_query_new_allocation(caps.get(), FALSE));
  ASSERT_TRUE(gst_pad_peer_query(harness.get()->srcpad, query.get()));
  EXPECT_TRUE(gst_query_find_allocation_meta(query.get(), GST_VIDEO_META_API_TYPE, nullptr));
  EXPECT_EQ(gst_harness_query_latency(harness.get()), 0u);
}

TEST(L01, GivenPentracksProperties_WhenListed_ThenTheyAreTheDocumentedOnes) {
  const GstPtr<GstElement> element(
      GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("pentrack", nullptr))));
  const std::set<std::string> expected{"sure-score",       "unsure-score",   "match-iou",
                                       "unsure-match-iou", "confirm-frames", "max-missed-frames",
                                       "predicted-frames", "max-tracks",     "first-id"};
  std::set<std::string> found;
  for (GParamSpec* property : own_properties(element.get())) {
    found.insert(property->name);
    EXPECT_TRUE(property->flags & GST_PARAM_MUTABLE_READY) << property->name;
    EXPECT_GT(std::strlen(g_param_spec_get_blurb(property)), 10u);
  }
  EXPECT_EQ(found, expected);
}

TEST(L01, GivenARunningPentrack_WhenAPropertyIsSet_ThenItStaysAndAWarningSaysSo) {
  TrackHarness harness;
  WarningTrap trap;
  g_object_set(harness.get()->element, "max-tracks", 7u, nullptr);
  const auto said = trap.take();
  guint value = 0;
  g_object_get(harness.get()->element, "max-tracks", &value, nullptr);
  EXPECT_EQ(value, 512u);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("'max-tracks'"), std::string::npos) << said[0];
}

TEST(L01, GivenPropertiesThatContradict_WhenStarted_ThenOneErrorNamesThem) {
  const GstPtr<GstElement> element(
      GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("pentrack", "tracker"))));
  const GstPtr<GstBus> bus(gst_bus_new());
  gst_element_set_bus(element.get(), bus.get());
  g_object_set(element.get(), "sure-score", 0.2, "unsure-score", 0.4, nullptr);
  EXPECT_EQ(gst_element_set_state(element.get(), GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
  const auto said = take_errors(bus.get());
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("tracker: device 'cpu'"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("unsure score"), std::string::npos) << said[0];
  gst_element_set_state(element.get(), GST_STATE_NULL);
  gst_bus_set_flushing(bus.get(), TRUE);
}

}  // namespace
}  // namespace penstock::gst
