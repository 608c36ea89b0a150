// SPDX-License-Identifier: Apache-2.0
#include "penstock/track/zones.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace penstock {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// Whose foot stands at (x, y) of a picture of 100 x 100.
Detection at(float x, float y, std::int64_t id, const char* label = "person") {
  Detection object;
  object.label = label;
  object.x = x - 5;
  object.y = y - 20;
  object.width = 10;
  object.height = 20;
  object.track_id = id;
  return object;
}

const std::vector<ZonePoint> kSquare{{0.2f, 0.2f}, {0.6f, 0.2f}, {0.6f, 0.6f}, {0.2f, 0.6f}};

class Zones : public ::testing::Test {
 protected:
  void make(const ZoneOptions& options) { counter_ = ZoneCounter::create(options).value(); }
  ZoneFrame update(const std::vector<Detection>& objects, Nanoseconds time) {
    return counter_->update(objects, time, 100, 100);
  }
  std::unique_ptr<ZoneCounter> counter_;
};

TEST_F(Zones, GivenAVisit_WhenCounted_ThenEntryDwellAndExitAreTold) {
  make({.zones = {{.name = "door", .corners = kSquare}}, .lines = {}});
  EXPECT_EQ(update({at(10, 40, 7)}, 0s).zones[0].inside, 0u);
  const ZoneFrame in = update({at(30, 40, 7)}, 1s);
  EXPECT_EQ(in.zones[0].inside, 1u);
  EXPECT_EQ(in.zones[0].entered, 1u);
  ASSERT_EQ(in.events.size(), 1u);
  EXPECT_EQ(in.events[0].kind, ZoneEventKind::kEntered);
  EXPECT_EQ(in.events[0].track_id, 7);
  EXPECT_EQ(update({at(40, 40, 7)}, 4s).zones[0].longest_dwell, 3s);
  const ZoneFrame out = update({at(80, 40, 7)}, 6s);
  EXPECT_EQ(out.zones[0].inside, 0u);
  EXPECT_EQ(out.zones[0].left, 1u);
  EXPECT_EQ(out.zones[0].total_dwell, 5s);
  ASSERT_EQ(out.events.size(), 1u);
  EXPECT_EQ(out.events[0].dwell, 5s);
}

TEST_F(Zones,
       GivenAnObjectInsideAtItsFirstFrameAndOneThatTrembles_WhenCounted_ThenEachEntryCounts) {
  make({.zones = {{.name = "door", .corners = kSquare}}, .lines = {}});
  EXPECT_EQ(update({at(30, 40, 7)}, 0s).zones[0].entered, 1u);
  update({at(19, 40, 7)}, 1s);
  const ZoneFrame again = update({at(21, 40, 7)}, 2s);
  EXPECT_EQ(again.zones[0].entered, 2u);
  EXPECT_EQ(again.zones[0].left, 1u);
}

TEST_F(Zones, GivenAnObjectThatVanishes_WhenForgotten_ThenItLeftWhereItWasLast) {
  make({.zones = {{.name = "door", .corners = kSquare}}, .lines = {}, .forget_after = 2s});
  update({at(30, 40, 7)}, 0s);
  update({at(30, 40, 7)}, 1s);
  EXPECT_EQ(update({}, 2s).zones[0].left, 0u);
  const ZoneFrame gone = update({}, 3s);
  EXPECT_EQ(gone.zones[0].left, 1u);
  EXPECT_EQ(gone.zones[0].total_dwell, 1s);
}

TEST_F(Zones, GivenLabels_WhenCounted_ThenOnlyThoseCountAndByClass) {
  make({.zones = {{.name = "road", .corners = kSquare, .labels = {"car", "bus"}}}, .lines = {}});
  const ZoneFrame frame =
      update({at(30, 40, 1), at(40, 40, 2, "car"), at(50, 40, 3, "bus"), at(30, 50, 4, "car")}, 0s);
  EXPECT_EQ(frame.zones[0].inside, 3u);
  ASSERT_EQ(frame.zones[0].inside_labels.size(), 2u);
  EXPECT_EQ(frame.zones[0].inside_labels[0].label, "bus");
  EXPECT_EQ(frame.zones[0].inside_labels[1].count, 2u);
}

TEST_F(Zones, GivenAHollowPolygon_WhenCounted_ThenItsBayIsOutside) {
  make({.zones = {{.name = "u",
                   .corners = {{0.1f, 0.1f},
                               {0.3f, 0.1f},
                               {0.3f, 0.7f},
                               {0.7f, 0.7f},
                               {0.7f, 0.1f},
                               {0.9f, 0.1f},
                               {0.9f, 0.9f},
                               {0.1f, 0.9f}}}},
        .lines = {}});
  EXPECT_EQ(update({at(20, 50, 0)}, 0s).zones[0].inside, 1u);
  EXPECT_EQ(update({at(50, 50, 0)}, 0s).zones[0].inside, 0u);
  EXPECT_EQ(update({at(50, 80, 0)}, 0s).zones[0].inside, 1u);
  EXPECT_EQ(update({at(50, 80, 0)}, 0s).zones[0].entered, 0u);  // Without an id nobody enters.
}

TEST_F(Zones, GivenALine_WhenCrossedBothWays_ThenEachWayIsCountedOnce) {
  // Upwards; its right is the picture's right.
  make({.zones = {}, .lines = {{.name = "gate", .from = {0.5f, 0.9f}, .to = {0.5f, 0.1f}}}});
  update({at(40, 50, 1), at(60, 50, 2)}, 0s);
  const ZoneFrame frame = update({at(60, 50, 1), at(40, 50, 2)}, 1s);
  EXPECT_EQ(frame.lines[0].forwards, 1u);
  EXPECT_EQ(frame.lines[0].backwards, 1u);
  ASSERT_EQ(frame.events.size(), 2u);
  EXPECT_EQ(frame.events[0].kind, ZoneEventKind::kCrossedForwards);
  // A stop on the line is one crossing, and one beside its ends is none.
  update({at(40, 50, 3), at(40, 95, 4)}, 2s);
  update({at(50, 50, 3), at(60, 99, 4)}, 3s);
  EXPECT_EQ(update({at(60, 50, 3)}, 4s).lines[0].forwards, 2u);
}

TEST_F(Zones, GivenMoreObjectsThanAreRemembered_WhenCounted_ThenTheRestIsOnlyInside) {
  make({.zones = {{.name = "door", .corners = kSquare}}, .lines = {}, .max_objects = 2});
  const ZoneFrame frame = update({at(30, 40, 1), at(30, 40, 2), at(30, 40, 3)}, 0s);
  EXPECT_EQ(frame.zones[0].inside, 3u);
  EXPECT_EQ(frame.zones[0].entered, 2u);
}

TEST_F(Zones, GivenFramesWithoutTimes_WhenAllRememberedAreGone_ThenTheyMakeRoom) {
  make({.zones = {{.name = "door", .corners = kSquare}}, .lines = {}, .max_objects = 2});
  update({at(30, 40, 1), at(30, 40, 2)}, 0s);
  EXPECT_EQ(update({at(30, 40, 3)}, 0s).zones[0].entered, 2u) << "both were there a frame ago";
  const ZoneFrame frame = update({at(30, 40, 3)}, 0s);
  EXPECT_EQ(frame.zones[0].entered, 3u);
  EXPECT_EQ(frame.zones[0].left, 1u);
}

TEST_F(Zones, GivenNoPatience_WhenAnObjectStays_ThenItStays) {
  make({.zones = {{.name = "door", .corners = kSquare}}, .lines = {}, .forget_after = 0s});
  update({at(30, 40, 1)}, 0s);
  EXPECT_EQ(update({at(30, 40, 1)}, 1s).zones[0].longest_dwell, 1s);
  EXPECT_EQ(update({}, 2s).zones[0].left, 1u);
}

TEST_F(Zones, GivenAnObjectAtTheLowerBorder_WhenTheZoneReachesIt_ThenItIsInside) {
  make({.zones = {{.name = "all", .corners = {{0, 0}, {1, 0}, {1, 1}, {0, 1}}}}, .lines = {}});
  EXPECT_EQ(update({at(50, 100, 1)}, 0s).zones[0].inside, 1u);
  EXPECT_EQ(update({at(100, 100, 1)}, 1s).zones[0].inside, 1u);
}

TEST_F(Zones, GivenALabelThatChanges_WhenNoLongerWanted_ThenTheObjectLeft) {
  make({.zones = {{.name = "door", .corners = kSquare, .labels = {"person"}}}, .lines = {}});
  update({at(30, 40, 1)}, 0s);
  const ZoneFrame frame = update({at(30, 40, 1, "dog")}, 1s);
  EXPECT_EQ(frame.zones[0].inside, 0u);
  EXPECT_EQ(frame.zones[0].left, 1u);
}

TEST_F(Zones, GivenAReset_WhenTheStreamBeginsAnew_ThenCountsStayAndObjectsGo) {
  make({.zones = {{.name = "door", .corners = kSquare}}, .lines = {}});
  update({at(30, 40, 1)}, 5s);
  counter_->reset();
  const ZoneFrame frame = update({at(30, 40, 1)}, 6s);
  EXPECT_EQ(frame.zones[0].entered, 2u);
  EXPECT_EQ(frame.zones[0].longest_dwell, 0s);
}

TEST(ZoneOptions, GivenPlacesThatAreNone_WhenCreated_ThenTheyAreNamed) {
  const auto refusal = [](const ZoneOptions& options) {
    const auto made = ZoneCounter::create(options);
    return made ? std::string("accepted") : made.error().message();
  };
  EXPECT_EQ(refusal({.zones = {{.name = "a", .corners = kSquare}}, .lines = {}}), "accepted");
  EXPECT_THAT(refusal({.zones = {{.name = "a", .corners = {{0, 0}, {1, 1}}}}, .lines = {}}),
              HasSubstr("zone 'a' has 2 corners"));
  EXPECT_THAT(
      refusal({.zones = {{.name = "a", .corners = {{0, 0}, {1, 1}, {1, 0}, {0, 1}}}}, .lines = {}}),
      HasSubstr("crosses itself: the edges from corners 1 and 3"));
  EXPECT_THAT(
      refusal({.zones = {{.name = "a", .corners = {{0, 0}, {0.5f, 0.5f}, {1, 1}}}}, .lines = {}}),
      HasSubstr("no area"));
  EXPECT_THAT(
      refusal({.zones = {{.name = "a", .corners = {{0, 0}, {1.5f, 0}, {1, 1}}}}, .lines = {}}),
      HasSubstr("corner 2 at 1.5,0, outside the picture: X and Y are parts of the picture, 0..1"));
  EXPECT_THAT(refusal({.zones = {{.name = "a", .corners = {{0, 0}, {std::nanf(""), 0}, {1, 1}}}},
                       .lines = {}}),
              HasSubstr("corner 2 at nan,0, outside"));
  EXPECT_THAT(
      refusal({.zones = {}, .lines = {{.name = "l", .from = {0.5f, 0.5f}, .to = {0.5f, 0.5f}}}}),
      HasSubstr("line 'l'"));
  EXPECT_THAT(refusal({.zones = {{.name = "a", .corners = kSquare}},
                       .lines = {{.name = "a", .from = {0, 0}, .to = {1, 1}}}}),
              HasSubstr("given twice: 'a'"));
}

}  // namespace
}  // namespace penstock
