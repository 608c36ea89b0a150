// SPDX-License-Identifier: Apache-2.0
//
// The judge against figures reckoned by hand, and the crowds against what was asked for.
#include "penstock/track/testing/crowd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace penstock::testing {
namespace {

TrueObject truth(std::int64_t id, float x) {
  return {.id = id, .x = x, .y = 0, .width = 100, .height = 100};
}

Detection told(std::int64_t id, float x) {
  return {.confidence = 1, .x = x, .y = 0, .width = 100, .height = 100, .track_id = id};
}

TEST(Judge, GivenAMissAWrongBoxAndASwitch_WhenJudged_ThenEachCountsOnce) {
  const CrowdFrame both{.visible = {truth(1, 0), truth(2, 500)}, .detections = {}};
  const std::vector<CrowdFrame> crowd(4, both);
  const auto figures = judge(crowd, {{told(1, 0), told(2, 500)},
                                     {told(2, 510), told(1, 10), told(0, 900)},
                                     {told(3, 0), told(2, 500), told(9, 900)},
                                     {told(3, 0)}});
  // Of 8 objects 7 were found, of 8 boxes 7 are right, and 1 changed its id.
  EXPECT_DOUBLE_EQ(figures.mota, 1 - 3.0 / 8);
  EXPECT_EQ(figures.switches, 1u);
  // 2 frames of object 1 under one id, 3 of object 2.
  EXPECT_DOUBLE_EQ(figures.idf1, 2 * 5.0 / 16);
}

TEST(Judge, GivenIdsThatSwap_WhenJudged_ThenTheyGoWhereMostFramesFit) {
  const CrowdFrame one{.visible = {truth(1, 0)}, .detections = {}};
  const CrowdFrame both{.visible = {truth(1, 0), truth(2, 500)}, .detections = {}};
  const auto figures = judge({one, one, one, both, both}, {{told(1, 0)},
                                                           {told(1, 0)},
                                                           {told(1, 0)},
                                                           {told(2, 0), told(1, 500)},
                                                           {told(2, 0), told(1, 500)}});
  // Id 1 fits object 1 in 3 frames; but given to object 2 in 2, it leaves object 1 to id 2 for 2.
  EXPECT_DOUBLE_EQ(figures.idf1, 2 * 4.0 / 14);
}

TEST(MakeCrowd, GivenRates_WhenMade_ThenDetectionsKeepToThem) {
  const auto frames = make_crowd({.frames = 2000,
                                  .objects = 20,
                                  .crossings = true,
                                  .occlusion_frames = 30,
                                  .missed = 0.3f,
                                  .false_detections = 0.1f});
  std::size_t visible = 0, detections = 0;
  std::map<std::int64_t, int> last_seen;
  int longest = 0;
  for (int frame = 0; frame < int(frames.size()); ++frame) {
    visible += frames[std::size_t(frame)].visible.size();
    detections += frames[std::size_t(frame)].detections.size();
    for (const TrueObject& object : frames[std::size_t(frame)].visible) {
      const auto [at, is_new] = last_seen.try_emplace(object.id, frame);
      if (!is_new) longest = std::max(longest, frame - at->second - 1);
      at->second = frame;
    }
  }
  EXPECT_NEAR(double(detections) / double(visible), 0.7 * 1.1, 0.02);
  EXPECT_LT(double(visible), 2000 * 20 * 0.97) << "somebody hides";
  EXPECT_GT(longest, 20);
  EXPECT_LE(longest, 30);
}

}  // namespace
}  // namespace penstock::testing
