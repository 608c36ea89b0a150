// SPDX-License-Identifier: Apache-2.0
//
// Contract P02 for text detection: maps drawn by hand, boxes computed by hand. The model's input is
// 64 x 32 unless a test says otherwise.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "penstock/task/test_extras.h"
#include "penstock/task/text_regions.h"

namespace penstock {
namespace {

using testing::Extras;
using ::testing::HasSubstr;
using testing::Output;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

struct Map {
  int width = 64, height = 32;
  std::vector<float> values = std::vector<float>(static_cast<std::size_t>(width * height), 0.0f);

  float& at(int x, int y) { return values[static_cast<std::size_t>(y * width + x)]; }
  Map& fill(int x, int y, int w, int h, float value) {
    for (int row = y; row < y + h; ++row) {
      for (int column = x; column < x + w; ++column) at(column, row) = value;
    }
    return *this;
  }
  std::vector<Output> outputs() const { return {{{1, 1, height, width}, values}}; }
};

class P02 : public Extras {
 protected:
  static Manifest text_model(const std::vector<Output>& outputs, float unclip_ratio = 0) {
    Manifest made = manifest("db-text", "oriented-detection", outputs, 1);
    made.unclip_ratio = unclip_ratio;
    return made;
  }
  Result<Decoded> find(const Map& map, float unclip_ratio = 0, float threshold = 0.5f) {
    const auto outputs = map.outputs();
    Manifest made = text_model(outputs, unclip_ratio);
    if (map.width > 64) {
      made.preprocess.width = map.width;
      made.preprocess.height = map.height;
    }
    return decode(made, outputs, {.threshold = threshold, .iou_threshold = 0.3f});
  }
};
INSTANTIATE_TEST_SUITE_P(cpu, P02, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P02, ::testing::Values("sim"));

void expect_turned(const Result<Decoded>& got, const std::vector<RotatedRecord>& wanted) {
  ASSERT_TRUE(got) << got.error().message();
  ASSERT_EQ(got->rotated.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_NEAR(got->rotated[i].center_x, wanted[i].center_x, 1e-4);
    EXPECT_NEAR(got->rotated[i].center_y, wanted[i].center_y, 1e-4);
    EXPECT_NEAR(got->rotated[i].width, wanted[i].width, 1e-4);
    EXPECT_NEAR(got->rotated[i].height, wanted[i].height, 1e-4);
    EXPECT_NEAR(got->rotated[i].angle, wanted[i].angle, 1e-6);
  }
}

TEST_P(P02, GivenAnUprightText_WhenFound_ThenTheBoxGrowsByAreaTimesRatioOverPerimeter) {
  Map map;
  map.fill(8, 6, 12, 4, 0.75f);
  const auto exact = find(map);
  expect_boxes(exact, {{8, 6, 20, 10, 0.75f, 0}});
  expect_turned(exact, {{14, 8, 12, 4, 0}});
  // 48 x 1.5 / 32 = 2.25 on each side.
  const auto got = find(map, 1.5f);
  expect_boxes(got, {{5.75f, 3.75f, 22.25f, 12.25f, 0.75f, 0}});
  expect_turned(got, {{14, 8, 16.5f, 8.5f, 0}});
}

TEST_P(P02, GivenAMapSmallerThanTheInput_WhenFound_ThenBoxesAreInInputPixels) {
  Map map{.width = 32, .height = 16};
  map.fill(4, 3, 12, 4, 0.75f);
  expect_boxes(find(map, 1.5f), {{3.5f, 1.5f, 36.5f, 18.5f, 0.75f, 0}});
}

TEST_P(P02, GivenATurnedText_WhenFound_ThenItsBoxIsTheSmallestThatHoldsIt) {
  // A band of 45 degrees down: |x - y| <= 2 and 0 <= x + y <= 18 from 20, 4. Its pixels' corners
  // reach from -3 to 3 across and from 0 to 20 along, both times the square root of 2.
  Map map;
  for (int y = 0; y < 12; ++y) {
    for (int x = 0; x < 12; ++x) {
      if (std::abs(x - y) <= 2 && x + y <= 18) map.at(20 + x, 4 + y) = 0.9f;
    }
  }
  const float root = std::numbers::sqrt2_v<float>, turn = std::numbers::pi_v<float> / 4;
  const auto got = find(map);
  expect_turned(got, {{25, 9, 20 / root, 6 / root, turn}});
  // Mirrored, it rises.
  Map mirrored;
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 64; ++x) mirrored.at(63 - x, y) = map.at(x, y);
  }
  const auto rising = find(mirrored);
  expect_turned(rising, {{39, 9, 20 / root, 6 / root, -turn}});
  // The hull of the corners: (20 + 6) / 2 across and down.
  const DetectionRecord& hull = rising->block.records[0];
  EXPECT_NEAR(hull.x0, 39 - 6.5f, 1e-4);
  EXPECT_NEAR(hull.y1, 9 + 6.5f, 1e-4);
  // Pixels of the ground at its edges make the mean less.
  EXPECT_GT(hull.score, 0.5f);
  EXPECT_LT(hull.score, 0.9f);
}

TEST_P(P02, GivenPixelsThatTouchOrNot_WhenFound_ThenRegionsAreThoseThatTouchAlsoAtCorners) {
  Map corner;
  corner.fill(4, 4, 4, 4, 0.9f).fill(8, 8, 4, 4, 0.9f);
  ASSERT_TRUE(find(corner, 0, 0.1f));
  EXPECT_EQ(find(corner, 0, 0.1f)->block.count, 1u);
  Map apart;
  apart.fill(4, 4, 4, 4, 0.8f).fill(9, 4, 4, 4, 0.9f);
  expect_boxes(find(apart), {{9, 4, 13, 8, 0.9f, 0}, {4, 4, 8, 8, 0.8f, 0}});
  // Two arms that meet below are one, and so are those of a comb.
  Map arms;
  arms.fill(4, 4, 3, 9, 0.9f).fill(12, 4, 3, 9, 0.9f).fill(4, 10, 11, 3, 0.9f);
  arms.fill(20, 4, 1, 8, 0.9f).fill(22, 4, 1, 8, 0.9f).fill(24, 4, 1, 8, 0.9f);
  arms.fill(20, 12, 5, 1, 0.9f);
  const auto got = find(arms, 0, 0.1f);
  ASSERT_TRUE(got) << got.error().message();
  ASSERT_EQ(got->block.count, 2u);
  expect_turned(got, {{9.5f, 8.5f, 11, 9, 0}, {22.5f, 8.5f, 5, 9, 0}});
  // 27 + 27 + 15 of 99 pixels, and 29 of 45.
  EXPECT_FLOAT_EQ(got->block.records[0].score, 0.9f * 69 / 99);
  EXPECT_FLOAT_EQ(got->block.records[1].score, 0.9f * 29 / 45);
}

TEST_P(P02, GivenValuesAtTheThresholds_WhenFound_ThenTheyCount) {
  Map map;
  map.fill(4, 4, 4, 4, 0.3f).fill(20, 4, 4, 4, 0.299999f);
  expect_boxes(find(map, 0, 0.3f), {{4, 4, 8, 8, 0.3f, 0}});
  expect_boxes(find(map, 0, 0.300001f), {});
}

TEST_P(P02, GivenRegionsOfEqualScores_WhenFound_ThenTheFirstRowThenColumnComesFirst) {
  Map map;
  map.fill(40, 4, 4, 4, 0.5f).fill(4, 4, 4, 4, 0.5f).fill(20, 3, 4, 4, 0.5f);
  expect_boxes(find(map),
               {{20, 3, 24, 7, 0.5f, 0}, {4, 4, 8, 8, 0.5f, 0}, {40, 4, 44, 8, 0.5f, 0}});
}

TEST_P(P02, GivenSmallRegions_WhenFound_ThenOnlySidesOfThreePixelsAreTexts) {
  Map map;
  map.fill(4, 4, 20, 2, 0.9f).fill(30, 4, 2, 20, 0.9f).fill(40, 4, 1, 1, 0.9f);
  expect_boxes(find(map), {});
  map.fill(50, 4, 3, 3, 0.9f);
  expect_boxes(find(map, 10), {{42.5f, -3.5f, 60.5f, 14.5f, 0.9f, 0}});
}

TEST_P(P02, GivenNaNOrInfinity_WhenFound_ThenTheyAreNoTextAndDoNotCount) {
  for (const float bad : {kNan, kInf, -kInf}) {
    Map map;
    map.fill(4, 4, 8, 6, 0.75f).fill(6, 6, 3, 2, bad).fill(40, 10, 6, 6, bad);
    expect_boxes(find(map), {{4, 4, 12, 10, 0.75f, 0}});
    Map all;
    all.fill(0, 0, 64, 32, bad);
    expect_boxes(find(all), {});
  }
}

TEST_P(P02, GivenNoTextOneOrHundreds_WhenFound_ThenNoneOneOrTheBestThreeHundredComeOut) {
  expect_boxes(find(Map()), {});
  Map full;
  full.fill(0, 0, 64, 32, 1);
  expect_boxes(find(full), {{0, 0, 64, 32, 1, 0}});
  Map many{.width = 128, .height = 64};
  many.fill(0, 0, 128, 64, 0.1f);
  for (int i = 0; i < 32 * 16; ++i) {
    many.fill(4 * (i % 32), 4 * (i / 32), 3, 3, 0.5f + static_cast<float>(i) / 1024);
  }
  const auto got = find(many);
  ASSERT_TRUE(got) << got.error().message();
  ASSERT_EQ(got->block.count, 300u);
  ASSERT_EQ(got->rotated.size(), 300u);
  for (std::size_t n = 0; n < 300; ++n) {
    const auto i = static_cast<float>(511 - n);
    EXPECT_FLOAT_EQ(got->block.records[n].score, 0.5f + i / 1024);
    EXPECT_EQ(got->rotated[n].center_x, 4 * std::fmod(i, 32.0f) + 1.5f);
  }
  // A chessboard of single pixels touches at its corners everywhere.
  Map board;
  for (int i = 0; i < 64 * 32; ++i) {
    if ((i % 64 + i / 64) % 2 == 0) board.at(i % 64, i / 64) = 1;
  }
  expect_boxes(find(board), {{0, 0, 64, 32, 0.5f, 0}});
}

TEST_P(P02, GivenASecondBatchItem_WhenDecoded_ThenItsOwnMapIsRead) {
  Map first, second;
  first.fill(4, 4, 4, 4, 0.9f);
  second.fill(20, 4, 4, 4, 0.8f);
  const std::vector<Output> both{testing::batched(first.outputs()[0], second.outputs()[0])};
  expect_boxes(decode(text_model(both), both, {.threshold = 0.5f}, 1), {{20, 4, 24, 8, 0.8f, 0}});
  EXPECT_FALSE(decode(text_model(both), both, {.threshold = 0.5f}, 2));
}

TEST_P(P02, GivenOutputsThatAreNoTextMap_WhenOpened_ThenTheErrorSaysWhy) {
  const auto refusal = [](const Manifest& manifest) {
    const auto decoder = create_decoder(manifest, {});
    return decoder ? std::string("opened") : decoder.error().message();
  };
  const auto of_shape = [](const Shape& shape) { return text_model({Output{shape, {}}}); };
  EXPECT_EQ(refusal(of_shape({1, 1, 32, 64})), "opened");
  EXPECT_EQ(refusal(of_shape({-1, 1, -1, -1})), "opened");
  EXPECT_THAT(refusal(of_shape({1, 2, 32, 64})), HasSubstr("[batch, 1, h, w]"));
  EXPECT_THAT(refusal(of_shape({1, 32, 64})), HasSubstr("[batch, 1, h, w]"));
  EXPECT_THAT(refusal(of_shape({1, 1, 64, 32})), HasSubstr("proportions of the input, 64 x 32"));
  EXPECT_THAT(refusal(of_shape({1, 1, 2048, 4096})), HasSubstr("4194304 pixels"));
  Manifest labelled = of_shape({1, 1, 32, 64});
  labelled.labels = {"text", "picture"};
  EXPECT_THAT(refusal(labelled), HasSubstr("2 labels for 1 class"));
  Manifest upright = of_shape({1, 1, 32, 64});
  upright.task = "detection";
  EXPECT_THAT(refusal(upright), HasSubstr("oriented-detection"));
}

// P04 ---------------------------------------------------------------------------------------------

/// The mean of the pixels whose centres lie in the box, one by one, and how many they are.
struct OneByOne {
  double mean = 0;
  std::uint64_t pixels = 0;
};
OneByOne one_by_one(const ProbabilityMap& map, const RotatedRecord& box) {
  const double cosine = std::cos(double{box.angle}), sine = std::sin(double{box.angle});
  OneByOne all;
  for (std::size_t i = 0; i < map.values.size(); ++i) {
    const double x = static_cast<double>(i % map.width) + 0.5 - double{box.center_x};
    const double y = static_cast<double>(i / map.width) + 0.5 - double{box.center_y};
    const bool is_inside = std::abs(x * cosine + y * sine) <= double{box.width} / 2 &&
                           std::abs(y * cosine - x * sine) <= double{box.height} / 2;
    if (!is_inside || !std::isfinite(map.values[i])) continue;
    all.mean += double{map.values[i]};
    ++all.pixels;
  }
  if (all.pixels > 0) all.mean /= static_cast<double>(all.pixels);
  return all;
}

TEST(P04_TextMap, GivenRingsWithinRings_WhenMeansAreTaken_ThenTheWorkIsOfRowsAndNotOfPixels) {
  // Squares within squares, with values of their own, so that a wrong pixel would show.
  constexpr std::size_t kSide = 211;
  std::vector<float> values(kSide * kSide);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t x = i % kSide, y = i / kSide;
    const std::size_t ring = std::min({x, y, kSide - 1 - x, kSide - 1 - y});
    const float noise = static_cast<float>((i * 7919) % 1000) / 10000;
    values[i] = ring % 2 == 0 ? 0.8f + noise : noise;
  }
  values[kSide * 100 + 100] = kNan;
  values[kSide * 100 + 101] = kInf;
  const ProbabilityMap map{.values = values, .width = kSide, .height = kSide};
  std::vector<RotatedRecord> boxes;
  for (const TextRegion& region : find_text_regions(map, 0.5f)) boxes.push_back(region.box);
  ASSERT_EQ(boxes.size(), 53u);
  // Turned ones, some of which leave the map, and one that no pixel's centre lies in.
  for (int i = 0; i < 40; ++i) {
    const auto n = static_cast<float>(i);
    boxes.push_back({.center_x = 100 + n,
                     .center_y = 90 + n * 2,
                     .width = 150 - n,
                     .height = 120 + n,
                     .angle = -0.75f + n * 0.0371f});
  }
  boxes.push_back({.center_x = 50, .center_y = 50, .width = 0.5f, .height = 0.5f, .angle = 0});
  std::uint64_t work = 0, rows = 0, pixels = 0;
  const std::vector<float> means = means_inside(map, boxes, &work);
  ASSERT_EQ(means.size(), boxes.size());
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    SCOPED_TRACE(i);
    const OneByOne wanted = one_by_one(map, boxes[i]);
    EXPECT_NEAR(double{means[i]}, wanted.mean, 1e-6);
    pixels += wanted.pixels;
    rows += std::min(kSide, static_cast<std::size_t>(
                                std::ceil(std::hypot(boxes[i].width, boxes[i].height)) + 1));
  }
  // A part of a row of 211 is at most two sums of each size up to 128.
  EXPECT_LE(work, kSide * kSide + rows * 2 * 8);
  EXPECT_LT(work * 4, pixels);
}

TEST(P04_TextMap, GivenHugeValuesBesideABox_WhenItsMeanIsTaken_ThenSmallOnesAreNotLost) {
  std::vector<float> values(64 * 4, 3e38f);
  const ProbabilityMap map{.values = values, .width = 64, .height = 4};
  for (std::size_t y = 0; y < 4; ++y) {
    for (std::size_t x = 21; x < 40; ++x) values[y * 64 + x] = 0.25f;
  }
  const std::vector<RotatedRecord> boxes{
      {.center_x = 30.5f, .center_y = 2, .width = 19, .height = 4, .angle = 0}};
  EXPECT_EQ(means_inside(map, boxes), std::vector<float>{0.25f});
}

}  // namespace
}  // namespace penstock
