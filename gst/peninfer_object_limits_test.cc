// SPDX-License-Identifier: Apache-2.0
//
// peninfer as a second stage: which objects it looks at and when, what it keeps between, and that
// it holds what every peninfer does.
#include <gmock/gmock.h>
#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include <chrono>
#include <climits>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gst/testing/flush_limit.h"
#include "gst/testing/object_fixture.h"
#include "gst/track_table.h"

namespace penstock::gst {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::Values;

Spot car(int color, int place, std::optional<guint64> track = {}, float confidence = 0.5f) {
  return {color, 16 + 64 * (place % 4), 16 + 64 * (place / 4), 48, "car", confidence, track};
}

// ---- Which objects ----

class ObjectStage : public ObjectFixture {};

TEST_P(ObjectStage, GivenFramesWithoutObjects_WhenPassed_ThenNothingIsInferredOrAdded) {
  play_stage(color_reader());
  const BufferPtr unseen = through(picture({}, 0));
  EXPECT_EQ(gst_buffer_get_analytics_relation_meta(unseen.get()), nullptr);
  EXPECT_EQ(read_analysis(unseen.get()), nullptr);
  const BufferPtr empty = through(frame_of({}, 1));
  EXPECT_EQ(gst_analytics_relation_get_length(gst_buffer_get_analytics_relation_meta(empty.get())),
            0u);
  EXPECT_EQ(stat("frames"), 2u);
  EXPECT_EQ(stat("inferred"), 0u);
  EXPECT_EQ(stat("objects"), 0u);
  EXPECT_EQ(stat("preprocessors"), 0u);
}

TEST_P(ObjectStage, GivenClassesAndASize_WhenSet_ThenOnlySuchObjectsAreLookedAt) {
  play_stage(color_reader(), {"object-classes=car, bus", "object-min-size=30"});
  std::vector<Spot> spots{car(0, 0), car(1, 1), car(2, 2), car(0, 3)};
  spots[1].label = "person";
  spots[2].label = "bus";
  spots[3].side = 29;
  const BufferPtr out = through(frame_of(spots));
  EXPECT_THAT(colors_of(out.get()), ElementsAre("red", "", "blue", ""));
  EXPECT_EQ(stat("objects"), 2u);
}

TEST_P(ObjectStage, GivenMoreObjectsThanTheLimit_WhenLookedAt_ThenTheSurestThenLargestAre) {
  play_stage(color_reader(), {"max-objects=2"});
  std::vector<Spot> spots{car(0, 0, {}, 0.5f), car(1, 1, {}, 0.75f), car(2, 2, {}, 0.5f)};
  spots[2].margin = 4;
  const BufferPtr out = through(frame_of(spots));
  EXPECT_THAT(colors_of(out.get()), ElementsAre("", "green", "blue"));
  EXPECT_EQ(stat("objects"), 2u);
  EXPECT_EQ(stat("objects-left-out"), 1u);
}

TEST_P(ObjectStage, GivenTrackedObjects_WhenSeenAgain_ThenTheyKeepWhatWasSaidUntilTheInterval) {
  play_stage(color_reader(), {"reinfer-interval=3"});
  std::vector<std::vector<std::string>> seen;
  for (int i = 0; i < 5; ++i) {
    // Both turn from red to green behind the first frame; only one has a track.
    const int color = i == 0 ? 0 : 1;
    const BufferPtr out = through(frame_of({car(color, 0, 7), car(color, 1)}, i));
    seen.push_back(colors_of(out.get()));
    const auto classes = related(objects_of(out.get())[0], GST_ANALYTICS_REL_TYPE_CONTAIN,
                                 gst_analytics_cls_mtd_get_mtd_type());
    EXPECT_EQ(classes.size(), 1u) << "stock elements are told, too";
  }
  EXPECT_THAT(seen, ElementsAre(ElementsAre("red", "red"), ElementsAre("red~1", "green"),
                                ElementsAre("red~2", "green"), ElementsAre("green", "green"),
                                ElementsAre("green~1", "green")));
  EXPECT_EQ(stat("objects"), 2u + 5);
  EXPECT_EQ(stat("objects-kept"), 3u);
}

TEST_P(ObjectStage, GivenATrackThatIsLookedAtOnce_WhenAFlushComes_ThenItIsLookedAtAgain) {
  play_stage(color_reader(), {"reinfer-interval=0"});
  for (int i = 0; i < 4; ++i) through(frame_of({car(0, 0, 7)}, i));
  EXPECT_EQ(stat("objects"), 1u);
  gst_harness_push_event(harness_.get(), gst_event_new_flush_start());
  gst_harness_push_event(harness_.get(), gst_event_new_flush_stop(TRUE));
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_harness_push_event(harness_.get(), gst_event_new_segment(&segment));
  EXPECT_THAT(colors_of(through(frame_of({car(1, 0, 7)}, 4)).get()), ElementsAre("green"));
}

TEST_P(ObjectStage, GivenATrackThatGoes_WhenItsNumberComesBackLate_ThenNothingIsKeptOfIt) {
  play_stage(color_reader(), {"reinfer-interval=1000"});
  through(frame_of({car(0, 0, 7), car(0, 1, 8)}, 0));
  for (int i = 1; i <= 29; ++i) through(frame_of({car(0, 1, 8)}, i));
  EXPECT_THAT(colors_of(through(frame_of({car(1, 0, 7), car(1, 1, 8)}, 30)).get()),
              ElementsAre("red~30", "red~30"));
  for (int i = 31; i <= 61; ++i) through(frame_of({car(0, 1, 8)}, i));
  EXPECT_THAT(colors_of(through(frame_of({car(1, 0, 7), car(1, 1, 8)}, 62)).get()),
              ElementsAre("green", "red~62"));
}

TEST(TrackTable, GivenMoreTracksThanTheLimit_WhenSeen_ThenTheLongestAbsentIsForgotten) {
  TrackTable<int> table;
  for (guint64 track = 0; track < 3 * TrackTable<int>::kMaxTracks; ++track) {
    if (track % 100 == 0) table.advance();
    table.see(track) = 1;
    ASSERT_LE(table.size(), TrackTable<int>::kMaxTracks);
  }
  EXPECT_EQ(table.see(3 * TrackTable<int>::kMaxTracks - 1), 1);
}

TEST(TrackTable, GivenAFrameWithTooManyTracks_WhenSeen_ThenTheOneAtHandIsKept) {
  TrackTable<int> table;
  table.advance();
  for (guint64 track = 3 * TrackTable<int>::kMaxTracks; track > 0; --track) {
    table.see(track) = 1;
    ASSERT_LE(table.size(), TrackTable<int>::kMaxTracks);
    ASSERT_EQ(table.see(track), 1);
  }
}

TEST_P(ObjectStage, GivenPredictedObjects_WhenTold_ThenTheyAreNotLookedAtButKeepWhatWasSaid) {
  play_stage(color_reader());
  through(frame_of({car(0, 0, 7)}, 0));
  BufferPtr in = frame_of({car(1, 0, 7)}, 1);
  const auto analysis = std::make_shared<Analysis>();
  analysis->result.objects = {{.label = "car",
                               .x = 16,
                               .y = 16,
                               .width = 48,
                               .height = 48,
                               .track_id = 7,
                               .predicted = true}};
  attach_analysis(in.get(), analysis);
  EXPECT_THAT(colors_of(through(std::move(in)).get()), ElementsAre("red~1"));
}

TEST_P(ObjectStage, GivenRecordsThatNoPictureHas_WhenTheyCome_ThenTheOthersAreLookedAt) {
  play_stage(color_reader());
  BufferPtr in = frame_of({car(2, 0)});
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(in.get());
  const gint boxes[][4] = {{INT_MAX, INT_MAX, INT_MAX, INT_MAX},
                           {INT_MIN, INT_MIN, 1, 1},
                           {0, 0, -5, -5},
                           {0, 0, 0, 0},
                           {400, 10, 20, 20},
                           {-30, -30, 20, 20}};
  for (const auto& box : boxes) {
    GstAnalyticsODMtd object;
    gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string("car"), box[0], box[1], box[2],
                                           box[3], 2.0f, &object);
  }
  const BufferPtr out = through(std::move(in));
  EXPECT_THAT(colors_of(out.get()), ElementsAre("blue", "", "", "", "", "", ""));
  EXPECT_EQ(stat("objects"), 1u);
  EXPECT_TRUE(errors().empty());
}

TEST_P(ObjectStage, GivenContainers_WhenTheirObjectsAreLookedAt_ThenTracksAreEachStreamsOwn) {
  play_stage(color_reader(), {"reinfer-interval=10"});
  send_caps(container_caps({picture_caps(), picture_caps()}));
  for (int i = 0; i < 2; ++i) {
    const BufferPtr out = through(
        container({{"a", picture_caps(), {object(frame_of({car(0, 0, 7)}, i))}},
                   {"b", picture_caps(), {object(frame_of({car(1, 0, 7), car(2, 1)}, i))}}}));
    const std::string age = i == 0 ? "" : "~1";
    EXPECT_THAT(colors_of(frame_of_stream(out.get(), 0)), ElementsAre("red" + age));
    EXPECT_THAT(colors_of(frame_of_stream(out.get(), 1)), ElementsAre("green" + age, "blue"));
  }
}

TEST_P(ObjectStage, GivenADetectorAndATracker_WhenTheirObjectsAreLookedAt_ThenAllThreeAreTold) {
  if (is_sim()) return;  // One device for both elements comes by a pipeline's context.
  const std::string stages =
      str_format("peninfer {} ! pentrack confirm-frames=1 ! peninfer {} roi=objects",
                 finder(model_testing::BoxLayout::kYolov8), color_reader());
  harness_.reset(gst_harness_new_parse(stages.c_str()));
  gst_harness_set_src_caps_str(harness_.get(), picture_caps().c_str());
  // Where the finder's grid is, at half the size and 20 rows below.
  const BufferPtr out = through(picture({{0, 32, 24, 48}, {2, 160, 104, 48}}, 0));
  const auto analysis = share_analysis(out.get());
  ASSERT_NE(analysis, nullptr);
  ASSERT_EQ(analysis->result.objects.size(), 2u);
  for (const Detection& object : analysis->result.objects) {
    const bool red = object.class_id == 0;
    EXPECT_NEAR(object.x, red ? 32 : 160, 1);
    EXPECT_NE(object.track_id, 0);
    ASSERT_EQ(object.attributes.size(), 1u);
    EXPECT_EQ(object.attributes[0].classes.at(0).label, red ? "red" : "blue");
  }
}

INSTANTIATE_TEST_SUITE_P(cpu, ObjectStage, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, ObjectStage, Values("sim"));

// ---- V04 ----

class V04 : public ObjectFixture {};

TEST_P(V04, GivenAFrameThatSomebodyHolds_WhenItsObjectsAreLookedAt_ThenOnlyACopyIsWritten) {
  play_stage(color_reader());
  BufferPtr in = frame_of({car(0, 0)});
  const BufferPtr held(gst_buffer_ref(in.get()));
  const BufferPtr out = through(std::move(in));
  EXPECT_NE(out.get(), held.get());
  EXPECT_EQ(gst_buffer_peek_memory(out.get(), 0), gst_buffer_peek_memory(held.get(), 0));
  EXPECT_EQ(gst_analytics_relation_get_length(gst_buffer_get_analytics_relation_meta(held.get())),
            1u);
  EXPECT_THAT(colors_of(out.get()), ElementsAre("red"));
}

INSTANTIATE_TEST_SUITE_P(cpu, V04, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, V04, Values("sim"));

// ---- V06 ----

class V06 : public ObjectFixture {};

TEST_P(V06, GivenObjectsOnSeveralLanes_WhenLookedAt_ThenTheStreamHasOnePreprocessor) {
  play_stage(color_reader(), {"policy=latency", "batch-size=4"});
  for (int i = 0; i < 3; ++i) {
    through(frame_of({car(0, 0), car(1, 1), car(2, 2), car(0, 3), car(1, 4)}, i));
  }
  EXPECT_EQ(stat("preprocessors"), 1u);
}

INSTANTIATE_TEST_SUITE_P(cpu, V06, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, V06, Values("sim"));

// ---- B01 ----

class B01 : public ObjectFixture {};

TEST_P(B01, GivenTheObjectsOfAFrame_WhenLookedAt_ThenTheyShareRunsAndEachGetsItsOwn) {
  play_stage(color_reader(), {"policy=latency", "batch-size=4"});
  const BufferPtr out =
      through(frame_of({car(0, 0), car(1, 1), car(2, 2), car(1, 3), car(0, 4), car(2, 5)}));
  EXPECT_THAT(colors_of(out.get()), ElementsAre("red", "green", "blue", "green", "red", "blue"));
  EXPECT_EQ(batched(), 6u) << "a batch of four and one of two";
}

INSTANTIATE_TEST_SUITE_P(cpu, B01, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, B01, Values("sim"));

// ---- L03, L04 ----

class L03 : public ObjectFixture {};

TEST_P(L03, GivenManyObjectsInFlight_WhenFlushedAndStopped_ThenItReturnsAtOnceAndNothingLeaves) {
  play_stage(color_reader(), {"policy=latency", "batch-size=2", "queue-depth=4"});
  std::vector<BufferPtr> frames;
  for (int i = 0; i < 3; ++i) frames.push_back(frame_of({car(0, 0), car(1, 1), car(2, 2)}, i));
  BufferPtr next = frame_of({car(1, 0)}, 9);
  hold();
  for (BufferPtr& frame : frames) ASSERT_EQ(push_container(std::move(frame)), GST_FLOW_OK);
  ASSERT_TRUE(eventually([&] { return sim_->jobs_pending() > 0; }));
  const auto begun = steady_clock::now();
  gst_harness_push_event(harness_.get(), gst_event_new_flush_start());
  gst_harness_push_event(harness_.get(), gst_event_new_flush_stop(TRUE));
  EXPECT_LT(steady_clock::now() - begun, kFlushLimit);
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_harness_push_event(harness_.get(), gst_event_new_segment(&segment));
  let_go();
  const BufferPtr out = through(std::move(next));
  EXPECT_EQ(GST_BUFFER_PTS(out.get()), pts(9));
  EXPECT_THAT(colors_of(out.get()), ElementsAre("green"));
  harness_.reset();
  EXPECT_TRUE(errors().empty());
}

INSTANTIATE_TEST_SUITE_P(sim, L03, Values("sim"));

class L04 : public ObjectFixture {};

TEST_P(L04, GivenTheNthDeviceCallFails_WhenObjectsAreLookedAt_ThenExactlyOneErrorIsPosted) {
  bool ran_through = false;
  int failures = 0;
  for (std::uint64_t n = 1; n < 200 && !ran_through; ++n) {
    SCOPED_TRACE(str_format("call {}", n));
    BufferPtr frame = frame_of({car(0, 0), car(1, 1), car(2, 2)});
    play_stage(color_reader(), {"policy=latency", "batch-size=2"});
    sim_->fail_call(sim_->calls() + n);
    push_container(std::move(frame));
    gst_harness_push_event(harness_.get(), gst_event_new_eos());
    std::vector<std::string> said;
    ASSERT_TRUE(eventually([&] {
      for (std::string& text : errors()) said.push_back(std::move(text));
      ran_through = ran_through || has_eos();
      return ran_through || !said.empty();
    }));
    harness_.reset();
    for (std::string& text : errors()) said.push_back(std::move(text));
    EXPECT_EQ(said.size(), ran_through ? 0u : 1u) << ::testing::PrintToString(said);
    failures += !ran_through;
    sim_->fail_call(0);
  }
  EXPECT_TRUE(ran_through);
  EXPECT_GT(failures, 6);
  EXPECT_TRUE(eventually([&] { return sim_->live_storages() == 0; }));
}

INSTANTIATE_TEST_SUITE_P(sim, L04, Values("sim"));

}  // namespace
}  // namespace penstock::gst
