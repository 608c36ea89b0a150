// SPDX-License-Identifier: Apache-2.0
//
// Contract G04: ids that survive missed detections, per stream, reset at its start.
#include "penstock/track/tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "penstock/base/str_format.h"
#include "penstock/track/testing/crowd.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

Detection person(float x, float y, float confidence = 0.9f, int class_id = 0) {
  Detection object;
  object.class_id = class_id;
  object.label = "person";
  object.confidence = confidence;
  object.x = x;
  object.y = y;
  object.width = 40;
  object.height = 100;
  return object;
}

class G04 : public ::testing::Test {
 protected:
  std::vector<Detection> update(std::vector<Detection> detections) {
    return tracker_->update(std::move(detections), {1280, 720, time_ += std::chrono::seconds(1)});
  }
  std::unique_ptr<Tracker> tracker_ = Tracker::create({}).value();
  Nanoseconds time_{};
};

TEST_F(G04, GivenAWalker_WhenMissedForThirtyFrames_ThenTheIdIsStillTheSame) {
  std::int64_t id = 0;
  for (int frame = 0; frame < 120; ++frame) {
    const bool missed = frame >= 40 && frame < 70;
    std::vector<Detection> seen;
    if (!missed) seen = {person(100 + 4 * float(frame), 200)};
    const auto told = update(seen);
    if (missed) {
      EXPECT_TRUE(told.empty()) << "nothing says that the detector misses objects";
      continue;
    }
    ASSERT_EQ(told.size(), 1u);
    ASSERT_NE(told[0].track_id, 0);
    if (id == 0) id = told[0].track_id;
    EXPECT_EQ(told[0].track_id, id) << frame;
    EXPECT_FALSE(told[0].predicted);
  }
  EXPECT_EQ(tracker_->tracks(), 1u);
  EXPECT_EQ(tracker_->times()[0].first_seen, std::chrono::seconds(1));
  EXPECT_EQ(tracker_->times()[0].last_seen, std::chrono::seconds(120));
}

TEST_F(G04, GivenAWalker_WhenMissedForMore_ThenItIsForgotten) {
  const auto id = update({person(300, 100)})[0].track_id;
  for (int frame = 0; frame < 31; ++frame) update({});
  EXPECT_EQ(tracker_->tracks(), 0u);
  update({person(300, 100)});
  EXPECT_GT(update({person(300, 100)})[0].track_id, id);
}

TEST_F(G04, GivenADetectorThatMisses_WhenItMissesAgain_ThenTheObjectIsToldWhereItMustBe) {
  int gap = 0;
  for (int frame = 0; frame < 200; ++frame) {
    // Gaps of three frames, from which the detector always comes back; at the end a longer one.
    const bool missed = frame >= 190 || (frame > 20 && frame % 10 < 3);
    std::vector<Detection> seen;
    if (!missed) seen = {person(100 + 4 * float(frame), 200)};
    const auto told = update(seen);
    if (!missed) {
      gap = 0;
      continue;
    }
    ++gap;
    if (frame < 50) continue;  // It has to be caught at it first.
    ASSERT_EQ(told.size(), gap <= 3 ? 1u : 0u) << frame;
    if (told.empty()) continue;
    EXPECT_TRUE(told[0].predicted);
    EXPECT_EQ(told[0].label, "person");
    EXPECT_NEAR(told[0].x, 100 + 4 * float(frame), 8);
    EXPECT_EQ(tracker_->times()[0].last_seen, time_ - std::chrono::seconds(gap));
  }
}

TEST_F(G04, GivenObjectsThatComeTrue_WhenAnotherBegins_ThenItGetsItsIdAtOnce) {
  std::vector<Detection> all;
  for (int i = 0; i < 4; ++i) all.push_back(person(100 + 200 * float(i), 100));
  update(all);
  update(all);
  all.push_back(person(1000, 300));
  EXPECT_NE(update(all)[4].track_id, 0);
  // Each frame something else that comes to nothing: from some point on it gets none.
  for (int frame = 0; frame < 20; ++frame) {
    auto seen = all;
    seen.push_back(person(60 * float(frame), 500));
    const auto told = update(seen);
    if (frame > 12) {
      EXPECT_EQ(told[5].track_id, 0) << frame;
    }
  }
}

TEST_F(G04, GivenTwoWhoCross_WhenTracked_ThenEachKeepsItsId) {
  std::int64_t left = 0, right = 0;
  for (int frame = 0; frame < 100; ++frame) {
    const auto told =
        update({person(100 + 6 * float(frame), 200), person(700 - 6 * float(frame), 210)});
    ASSERT_GE(told.size(), 2u);
    if (frame == 0) {
      left = told[0].track_id;
      right = told[1].track_id;
      EXPECT_NE(left, right);
    }
    EXPECT_EQ(told[0].track_id, left) << frame;
    EXPECT_EQ(told[1].track_id, right) << frame;
  }
}

TEST_F(G04, GivenALoneDetection_WhenStreamIsUnderWay_ThenItGetsNoIdUntilItIsSeenAgain) {
  update({});
  EXPECT_EQ(update({person(300, 100)})[0].track_id, 0);
  EXPECT_NE(update({person(300, 100)})[0].track_id, 0);
}

TEST_F(G04, GivenAnUnsureDetection_WhenAnObjectWasThere_ThenItKeepsItsIdButBeginsNone) {
  const auto id = update({person(300, 100)})[0].track_id;
  EXPECT_EQ(update({person(302, 100, 0.2f)})[0].track_id, id);
  EXPECT_EQ(update({person(302, 100), person(800, 100, 0.2f)})[1].track_id, 0);
  EXPECT_EQ(update({person(302, 100), person(800, 100, 0.2f)})[1].track_id, 0);
}

TEST_F(G04, GivenAnotherClassAtTheSamePlace_WhenTracked_ThenItIsAnotherObject) {
  const auto id = update({person(300, 100, 0.9f, 0)})[0].track_id;
  update({person(300, 100, 0.9f, 2)});
  const auto told = update({person(300, 100, 0.9f, 2)});
  EXPECT_NE(told[0].track_id, id);
}

TEST_F(G04, GivenIdsOfAnotherTracker_WhenTracked_ThenTheyAreGone) {
  Detection unsure = person(500, 200, 0.2f);
  unsure.track_id = 1;
  unsure.predicted = true;
  Detection sure = person(100, 200);
  sure.track_id = 77;
  sure.predicted = true;
  for (int frame = 0; frame < 3; ++frame) {
    const auto told = update({sure, unsure});
    ASSERT_EQ(told.size(), 2u);
    EXPECT_NE(told[0].track_id, 77);
    EXPECT_FALSE(told[0].predicted);
    EXPECT_EQ(told[1].track_id, 0) << "it begins no track";
    EXPECT_FALSE(told[1].predicted);
  }
}

TEST_F(G04, GivenAReset_WhenTheNextStreamBegins_ThenNoIdComesBack) {
  const auto id = update({person(300, 100)})[0].track_id;
  tracker_->reset();
  EXPECT_EQ(tracker_->tracks(), 0u);
  EXPECT_GT(update({person(300, 100)})[0].track_id, id);
}

TEST_F(G04, GivenAFirstId_WhenTracksBegin_ThenIdsGoOnFromIt) {
  tracker_ = Tracker::create({.first_id = 42}).value();
  EXPECT_EQ(update({person(300, 100)})[0].track_id, 42);
  EXPECT_EQ(update({person(300, 100), person(700, 100)})[1].track_id, 43);
}

TEST_F(G04, GivenFramesWithoutDetection_WhenPredicted_ThenTheBoxesAreInBetween) {
  std::int64_t id = 0;
  for (int frame = 0; frame < 60; ++frame) {
    const float x = 100 + 5 * float(frame);
    if (frame % 3 == 0) {
      id = update({person(x, 200)})[0].track_id;
      continue;
    }
    const auto told = tracker_->predict({1280, 720});
    if (frame < 12) continue;  // The speed is learnt first.
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].track_id, id);
    EXPECT_TRUE(told[0].predicted);
    EXPECT_NEAR(told[0].x, x, 4);
  }
}

TEST_F(G04, GivenDetectionsThatAreNoBoxes_WhenTracked_ThenTheyAreLeftAlone) {
  Detection nan = person(std::numeric_limits<float>::quiet_NaN(), 0);
  Detection empty = person(5, 5);
  empty.width = 0;
  Detection vast = person(5, 5);
  vast.height = std::numeric_limits<float>::infinity();
  for (int i = 0; i < 3; ++i) {
    const auto told = update({nan, person(300, 100), empty, vast});
    ASSERT_EQ(told.size(), 4u);
    EXPECT_EQ(told[0].track_id, 0);
    EXPECT_NE(told[1].track_id, 0);
    EXPECT_EQ(told[2].track_id, 0);
    EXPECT_EQ(told[3].track_id, 0);
  }
  EXPECT_EQ(tracker_->tracks(), 1u);
}

TEST_F(G04, GivenThousandsOfDetections_WhenTracked_ThenTracksAreBounded) {
  tracker_ = Tracker::create({.max_tracks = 50}).value();
  std::vector<Detection> many;
  for (int row = 0; row < 20; ++row) {
    for (int column = 0; column < 100; ++column) {
      many.push_back(person(float(column) * 50, float(row) * 110));
    }
  }
  const auto told = update(many);
  EXPECT_EQ(told.size(), 2000u);
  EXPECT_EQ(tracker_->tracks(), 50u);
}

TEST(TrackerOptions, GivenOptionsOutOfRange_WhenCreated_ThenTheyAreNamed) {
  const auto refusal = [](const TrackerOptions& options) {
    const auto made = Tracker::create(options);
    return made ? std::string("accepted") : made.error().message();
  };
  EXPECT_EQ(refusal({}), "accepted");
  EXPECT_THAT(refusal({.sure_score = 1.5f}), HasSubstr("sure score 1.5"));
  EXPECT_THAT(refusal({.match_iou = std::nanf("")}), HasSubstr("IoU of a match"));
  EXPECT_THAT(refusal({.sure_score = 0.3f, .unsure_score = 0.4f}), HasSubstr("above the sure"));
  EXPECT_THAT(refusal({.confirm_frames = 0}), HasSubstr("frames to confirm 0"));
  EXPECT_THAT(refusal({.max_missed_frames = -1}), HasSubstr("missed frames -1"));
  EXPECT_THAT(refusal({.max_missed_frames = 2}),
              HasSubstr("3 predicted frames are more than the 2 missed"));
  EXPECT_THAT(refusal({.predicted_frames = 1001}), HasSubstr("predicted frames 1001"));
  EXPECT_THAT(refusal({.max_tracks = 0}), HasSubstr("0 tracks"));
  EXPECT_THAT(refusal({.first_id = 0}), HasSubstr("first id of 0"));
}

/// Least figures on generated crowds, well below what is measured (bench track) and above what
/// overlap alone reaches.
TEST(TrackerOnCrowds, GivenCrossingsMissesAndOcclusions_WhenTracked_ThenIdentitiesHold) {
  struct Case {
    testing::CrowdOptions crowd;
    double mota, idf1;
  };
  const Case cases[] = {{{.objects = 10}, 0.95, 0.95},
                        {{.objects = 20, .crossings = true}, 0.90, 0.80},
                        {{.objects = 10, .missed = 0.3f}, 0.80, 0.85},
                        {{.objects = 10, .occlusion_frames = 30}, 0.90, 0.85},
                        {{.objects = 40, .missed = 0.1f, .false_detections = 0.1f}, 0.80, 0.80}};
  for (const Case& c : cases) {
    SCOPED_TRACE(str_format("{} objects, {} missed", c.crowd.objects, c.crowd.missed));
    const auto crowd = testing::make_crowd(c.crowd);
    const auto tracker = Tracker::create({}).value();
    std::vector<std::vector<Detection>> told;
    for (const auto& frame : crowd) {
      told.push_back(tracker->update(frame.detections, {c.crowd.width, c.crowd.height}));
      std::set<std::int64_t> ids;
      for (const Detection& object : told.back()) {
        if (object.track_id != 0) {
          EXPECT_TRUE(ids.insert(object.track_id).second);
        }
      }
    }
    const auto figures = testing::judge(crowd, told);
    EXPECT_GE(figures.mota, c.mota);
    EXPECT_GE(figures.idf1, c.idf1);
  }
}

}  // namespace
}  // namespace penstock
