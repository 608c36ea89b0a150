// SPDX-License-Identifier: Apache-2.0
//
// Contract P05 where a frame is looked at in tiles: boxes are in the frame, and told once.
#include "penstock/task/tile_merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "penstock/media/tiles.h"

namespace penstock {
namespace {

constexpr int kWidth = 1000, kHeight = 800;

struct Box {
  float x, y, width, height;
  bool operator==(const Box&) const = default;
};

Detection detection(const Box& box, int class_id = 0, float confidence = 0.5f) {
  Detection object;
  object.class_id = class_id;
  object.confidence = confidence;
  object.x = box.x;
  object.y = box.y;
  object.width = box.width;
  object.height = box.height;
  return object;
}

/// A detector that sees what of each object is in its tile, if it is worth mentioning.
std::vector<TileFindings> see(const TileGrid& grid, const std::vector<Detection>& objects) {
  std::vector<TileFindings> seen;
  for (const RectI& tile : plan_tiles(grid, kWidth, kHeight).value()) {
    TileFindings& findings = seen.emplace_back(TileFindings{tile, {}});
    for (const Detection& object : objects) {
      const float left = std::max(object.x, float(tile.x));
      const float top = std::max(object.y, float(tile.y));
      const float right = std::min(object.x + object.width, float(tile.x + tile.width));
      const float bottom = std::min(object.y + object.height, float(tile.y + tile.height));
      if (right - left < 4 || bottom - top < 4) continue;
      findings.objects.push_back(
          detection({left, top, right - left, bottom - top}, object.class_id, object.confidence));
    }
  }
  return seen;
}

std::vector<Box> boxes_of(const std::vector<Detection>& objects) {
  std::vector<Box> boxes;
  for (const Detection& object : objects) {
    boxes.push_back({object.x, object.y, object.width, object.height});
  }
  return boxes;
}

std::vector<Box> merged(const TileGrid& grid, const std::vector<Detection>& objects) {
  return boxes_of(merge_tiles(see(grid, objects), kWidth, kHeight, {}));
}

TEST(P05, GivenObjectsInEveryPlace_WhenMerged_ThenEachIsOneBoxAndItsOwn) {
  for (const TileGrid& grid : {TileGrid{2, 2, 0}, TileGrid{2, 2, 20}, TileGrid{3, 2, 10},
                               TileGrid{4, 4, 25}, TileGrid{5, 3, 50}}) {
    for (float x = 0; x <= 900; x += 37) {
      for (float y = 0; y <= 700; y += 41) {
        for (const auto& [width, height] : {std::pair{100.0f, 90.0f}, {30.0f, 60.0f}}) {
          const Box box{x, y, width, height};
          ASSERT_EQ(merged(grid, {detection(box)}), std::vector{box})
              << grid.columns << "x" << grid.rows << "/" << grid.overlap << " at " << x << "," << y;
        }
      }
    }
  }
}

TEST(P05, GivenAnObjectOverManyTiles_WhenMerged_ThenItIsOneAsSureAsItsSurestPart) {
  std::vector<TileFindings> seen = see({4, 2, 20}, {detection({50, 300, 900, 150}, 3, 0.5f)});
  seen[1].objects.at(0).confidence = 0.75f;
  const auto objects = merge_tiles(seen, kWidth, kHeight, {});
  ASSERT_EQ(boxes_of(objects), (std::vector{Box{50, 300, 900, 150}}));
  EXPECT_EQ(objects[0].class_id, 3);
  EXPECT_EQ(objects[0].confidence, 0.75f);
}

TEST(P05, GivenPartsThatDoNotBelongTogether_WhenMerged_ThenTheyStayApart) {
  // Two tiles without overlap, border at 500.
  const auto stay = [&](const Detection& left, const Detection& right) {
    const std::vector<TileFindings> seen{{{0, 0, 500, kHeight}, {left}},
                                         {{500, 0, 500, kHeight}, {right}}};
    return merge_tiles(seen, kWidth, kHeight, {}).size() == 2;
  };
  const Detection part = detection({420, 100, 80, 100});
  EXPECT_FALSE(stay(part, detection({500, 100, 80, 100}))) << "these do";
  EXPECT_TRUE(stay(part, detection({500, 100, 80, 100}, 1))) << "another class";
  EXPECT_TRUE(stay(part, detection({500, 170, 80, 100}))) << "another height";
  EXPECT_TRUE(stay(part, detection({530, 100, 80, 100}))) << "not at the border";
  EXPECT_TRUE(stay(detection({380, 100, 80, 100}), detection({500, 100, 80, 100})));
}

TEST(P05, GivenOneObjectSeenTwice_WhenMerged_ThenTheSurerIsTold) {
  const std::vector<TileFindings> seen{
      {{0, 0, 600, kHeight}, {detection({450, 50, 60, 60}, 0, 0.5f)}},
      {{400, 0, 600, kHeight}, {detection({452, 50, 60, 60}, 0, 0.9f)}}};
  EXPECT_EQ(boxes_of(merge_tiles(seen, kWidth, kHeight, {})), (std::vector{Box{452, 50, 60, 60}}));
}

TEST(P05, GivenMoreThanTheLimit_WhenMerged_ThenTheSurestAreToldSurestFirst) {
  std::vector<TileFindings> seen{{{0, 0, kWidth, kHeight}, {}}};
  for (int i = 0; i < 20; ++i) {
    seen[0].objects.push_back(
        detection({float(40 * i), 10, 20, 20}, 0, 0.25f + float(i % 10) / 20));
  }
  const auto objects = merge_tiles(seen, kWidth, kHeight, {.max_objects = 3});
  EXPECT_EQ(boxes_of(objects),
            (std::vector<Box>{{360, 10, 20, 20}, {760, 10, 20, 20}, {320, 10, 20, 20}}));
}

}  // namespace
}  // namespace penstock
