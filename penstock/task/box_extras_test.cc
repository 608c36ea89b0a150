// SPDX-License-Identifier: Apache-2.0
//
// Contract P02 for what belongs to objects besides their boxes: keypoints, turned boxes and masks,
// computed by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "penstock/task/test_extras.h"

namespace penstock {
namespace {

using testing::Extras;
using testing::Output;
using testing::rows_of;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kPi = std::numbers::pi_v<float>;

class P02 : public Extras {};
INSTANTIATE_TEST_SUITE_P(cpu, P02, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P02, ::testing::Values("sim"));

// Poses -------------------------------------------------------------------------------------------

TEST_P(P02, GivenYolov8Poses_WhenDecoded_ThenKeypointsFollowTheBoxesThatSurvive) {
  const std::vector<float> rows{
      50, 20, 10, 10, 0.4f, 0.4f, 0,    46, 16, 0.1f, 54, 24, 0.2f,   // a tie at the threshold
      21, 10, 8,  4,  0,    0.8f, 0,    1,  1,  1,    1,  1,  1,      // loses to the next
      20, 10, 8,  4,  0,    0.9f, 0,    18, 9,  0.5f, 22, 11, 0.25f,  //
      20, 10, 8,  4,  0,    0,    0.3f, 2,  2,  1,    2,  2,  1,      // below the threshold
      40, 10, 0,  4,  0,    0.9f, 0,    3,  3,  1,    3,  3,  1};     // no area
  const std::vector<Output> outputs{rows_of(rows, 13, true)};
  const auto got = decode(manifest("yolov8-pose", "pose", outputs, 3, 2), outputs);
  expect_boxes(got, {{16, 8, 24, 12, 0.9f, 1}, {45, 15, 55, 25, 0.4f, 0}});
  expect_keypoints(got, 2, {{18, 9, 0.5f}, {22, 11, 0.25f}, {46, 16, 0.1f}, {54, 24, 0.2f}});
}

TEST_P(P02, GivenPosesWithoutConfidence_WhenDecoded_ThenItIsOne) {
  const std::vector<Output> columns{rows_of({20, 10, 8, 4, 0.9f, 18, 9, 22, 11}, 9, true)};
  const auto got = decode(manifest("yolov8-pose", "pose", columns, 1, 2), columns);
  expect_boxes(got, {{16, 8, 24, 12, 0.9f, 0}});
  expect_keypoints(got, 2, {{18, 9, 1}, {22, 11, 1}});
  const std::vector<Output> rows{rows_of({16, 8, 24, 12, 0.9f, 2, 18, 9, 22, 11}, 10, false)};
  const auto end_to_end = decode(manifest("yolo-end-to-end-pose", "pose", rows, 3, 2), rows);
  expect_boxes(end_to_end, {{16, 8, 24, 12, 0.9f, 2}});
  expect_keypoints(end_to_end, 2, {{18, 9, 1}, {22, 11, 1}});
}

TEST_P(P02, GivenEndToEndPoses_WhenDecoded_ThenEqualBoxesKeepTheirOwnKeypoints) {
  const std::vector<float> rows{10, 10, 20, 20, 0.8f, 2, 1, 2, 0.1f,  //
                                10, 10, 20, 20, 0.9f, 2, 3, 4, 0.2f,  //
                                10, 10, 20, 20, 0.9f, 2, 5, 6, 0.3f,  //
                                10, 10, 20, 20, 0.9f, 3, 7, 8, 0.4f,  // no such class
                                30, 10, 20, 20, 0.9f, 0, 9, 9, 0.5f};
  const std::vector<Output> outputs{rows_of(rows, 9, false)};
  const auto got = decode(manifest("yolo-end-to-end-pose", "pose", outputs, 3, 1), outputs);
  expect_boxes(got,
               {{10, 10, 20, 20, 0.9f, 2}, {10, 10, 20, 20, 0.9f, 2}, {10, 10, 20, 20, 0.8f, 2}});
  expect_keypoints(got, 1, {{3, 4, 0.2f}, {5, 6, 0.3f}, {1, 2, 0.1f}});
}

TEST_P(P02, GivenOnePersonOfMovenet_WhenDecoded_ThenTheBoxIsAroundWhatIsSeen) {
  // y, x, score of four keypoints
  const std::vector<float> person{0.25f, 0.5f,  0.5f,   //
                                  0.75f, 0.25f, 0.75f,  //
                                  0.5f,  0.75f, 0.4f,   // just the threshold
                                  0.9f,  0.9f,  0.3f};  // not seen
  const std::vector<Output> outputs{{{1, 1, 4, 3}, person}};
  const auto got = decode(manifest("movenet", "pose", outputs, 1, 4), outputs);
  expect_boxes(got, {{16, 8, 48, 24, 0.55f, 0}});
  expect_keypoints(got, 4, {{32, 8, 0.5f}, {16, 24, 0.75f}, {48, 16, 0.4f}, {57.6f, 28.8f, 0.3f}});
}

TEST_P(P02, GivenMovenetThatSeesTooLittle_WhenDecoded_ThenThereIsNoObject) {
  for (const std::vector<float>& person :
       {std::vector<float>{0.2f, 0.2f, 0.1f, 0.8f, 0.8f, 0.3f},  // nothing
        std::vector<float>{0.2f, 0.2f, 0.9f, 0.8f, 0.8f, 0.3f},  // a point has no area
        std::vector<float>{0.2f, 0.2f, 0.9f, 0.2f, 0.8f, 0.9f},  // nor has a line
        std::vector<float>{0.2f, 0.2f, kInf, 0.8f, 0.8f, kInf},  //
        std::vector<float>{0.2f, 0.2f, kNan, 0.8f, 0.8f, kNan},  //
        std::vector<float>{kNan, 0.2f, 0.9f, 0.8f, kInf, 0.9f}}) {
    const std::vector<Output> outputs{{{1, 1, 2, 3}, person}};
    const auto got = decode(manifest("movenet", "pose", outputs, 1, 2), outputs);
    expect_boxes(got, {});
    expect_keypoints(got, 2, {});
  }
}

TEST_P(P02, GivenPeopleOfMovenet_WhenDecoded_ThenPartsOfTheInputBecomePixels) {
  std::vector<float> rows(6 * 11, 0.0f);
  const auto set = [&](std::size_t row, const std::vector<float>& values) {
    std::ranges::copy(values, rows.begin() + std::ptrdiff_t(row * 11));
  };
  set(1, {0.25f, 0.5f, 0.6f, 0.75f, 0.25f, 0.7f, 0.25f, 0.25f, 0.75f, 0.5f, 0.4f});
  set(4, {0.5f, 0.5f, 0.1f, 0.5f, 0.75f, 0.2f, 0, 0.5f, 1, 1, 0.9f});
  const std::vector<Output> outputs{{{1, 6, 11}, rows}};
  const auto got = decode(manifest("movenet", "pose", outputs, 0, 2), outputs);
  expect_boxes(got, {{32, 0, 64, 32, 0.9f, 0}, {16, 8, 32, 24, 0.4f, 0}});
  expect_keypoints(got, 2, {{32, 16, 0.1f}, {48, 16, 0.2f}, {32, 8, 0.6f}, {16, 24, 0.7f}});
}

// Turned boxes ------------------------------------------------------------------------------------

void expect_rotated(const Result<Decoded>& got, const std::vector<RotatedRecord>& wanted) {
  ASSERT_TRUE(got) << got.error().message();
  ASSERT_EQ(got->rotated.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(got->rotated[i].center_x, wanted[i].center_x);
    EXPECT_EQ(got->rotated[i].center_y, wanted[i].center_y);
    EXPECT_EQ(got->rotated[i].width, wanted[i].width);
    EXPECT_EQ(got->rotated[i].height, wanted[i].height);
    EXPECT_EQ(got->rotated[i].angle, wanted[i].angle);
  }
}

TEST_P(P02, GivenTurnedBoxes_WhenDecoded_ThenNmsGoesByThePolygonsAndCornersAreTheHull) {
  // Along its own side by 3 of 10: 70 of 130 are shared, more than half of the union and less than
  // half of the sum. Across a bar of 4 by 5: nothing is shared, though the hulls are nearly the
  // same.
  const float step = 3 * std::sqrt(0.5f), aside = 5 * std::sqrt(0.5f);
  const std::vector<float> rows{
      20,          20,         10, 10, 0,    0.9f, 0, kPi / 4,   //
      20 + step,   20 + step,  10, 10, 0,    0.8f, 0, kPi / 4,   // gone
      20 + step,   20 + step,  10, 10, 0.7f, 0,    0, kPi / 4,   // another class
      120,         20,         40, 4,  0,    0,    1, kPi / 4,   //
      120 + aside, 20 - aside, 40, 4,  0,    0,    1, kPi / 4,   // beside it
      120,         20,         4,  40, 0,    0,    1, -kPi / 4,  // gone: the same, said differently
      120,         20,         4,  40, 0,    0,    1, kPi / 4,   // across it: stays
      80,          20,         40, 0,  0,    0,    1, 0.5f};     // a line
  const std::vector<Output> outputs{rows_of(rows, 8, true)};
  const auto got = decode(manifest("yolov8-obb", "oriented-detection", outputs), outputs);
  expect_rotated(got, {{120, 20, 40, 4, kPi / 4},
                       {120 + aside, 20 - aside, 40, 4, kPi / 4},
                       {120, 20, 4, 40, kPi / 4},
                       {20, 20, 10, 10, kPi / 4},
                       {20 + step, 20 + step, 10, 10, kPi / 4}});
  const float bar = 22 * std::sqrt(0.5f), half = 10 * std::sqrt(0.5f);
  expect_boxes(got,
               {{120 - bar, 20 - bar, 120 + bar, 20 + bar, 1, 2},
                {120 + aside - bar, 20 - aside - bar, 120 + aside + bar, 20 - aside + bar, 1, 2},
                {120 - bar, 20 - bar, 120 + bar, 20 + bar, 1, 2},
                {20 - half, 20 - half, 20 + half, 20 + half, 0.9f, 1},
                {20 + step - half, 20 + step - half, 20 + step + half, 20 + step + half, 0.7f, 0}});
}

TEST_P(P02, GivenTurnedBoxesAndAgnosticNms_WhenDecoded_ThenOtherClassesSuppressToo) {
  const std::vector<float> rows{20, 20, 12, 10, 0,    0.9f, 0,    0,   //
                                21, 20, 12, 10, 0.8f, 0,    0,    0,   //
                                24, 20, 12, 10, 0,    0,    0.7f, 0};  // 80 of 160: exactly half
  const std::vector<Output> outputs{rows_of(rows, 8, true)};
  const auto made = manifest("yolov8-obb", "oriented-detection", outputs);
  expect_boxes(decode(made, outputs, {.class_agnostic = true}),
               {{14, 15, 26, 25, 0.9f, 1}, {18, 15, 30, 25, 0.7f, 2}});
  expect_boxes(decode(made, outputs, {.iou_threshold = 0.4f, .class_agnostic = true}),
               {{14, 15, 26, 25, 0.9f, 1}});
}

TEST_P(P02, GivenEndToEndTurnedBoxes_WhenDecoded_ThenTheyComeAsTheyAreWithoutNms) {
  const std::vector<float> rows{20, 20, 10,  6, 0.8f, 2, 0.7f,   //
                                20, 20, 10,  6, 0.9f, 2, 0.7f,   //
                                20, 20, 10,  6, 0.9f, 0, -0.7f,  //
                                20, 20, 10,  6, 0.9f, 3, 0.7f,   // no such class
                                20, 20, -10, 6, 0.9f, 1, 0.7f,   // no box
                                40, 20, 10,  6, 0.4f, 1, kPi / 2};
  const std::vector<Output> outputs{rows_of(rows, 7, false)};
  const auto got = decode(manifest("yolo-end-to-end-obb", "oriented-detection", outputs), outputs);
  expect_rotated(got, {{20, 20, 10, 6, 0.7f},
                       {20, 20, 10, 6, -0.7f},
                       {20, 20, 10, 6, 0.7f},
                       {40, 20, 10, 6, kPi / 2}});
  EXPECT_FLOAT_EQ(got->block.records[3].x0, 37);
  EXPECT_FLOAT_EQ(got->block.records[3].y1, 25);
}

// Masks -------------------------------------------------------------------------------------------

TEST_P(P02, GivenPrototypes_WhenDecoded_ThenMasksAreTheirWeightedSumsWithinTheBoxes) {
  // 16 x 8: a quarter of the input. The second prototype has some values of its own.
  const float third = std::log(3.0f);
  std::vector<float> prototypes(256, 1.0f);
  std::fill_n(prototypes.begin() + 128, 128, 0.0f);
  const auto second = [&](std::size_t x, std::size_t y) -> float& {
    return prototypes[128 + y * 16 + x];
  };
  second(5, 2) = third;
  second(6, 2) = -third;
  second(7, 2) = kNan;
  second(7, 3) = 1000;
  second(3, 2) = second(8, 2) = second(4, 1) = second(4, 4) = 1000;  // just outside of the box
  // The first box is that of the mask's pixels [4, 8) x [2, 4), the second reaches over the edge.
  const std::vector<float> rows{60, 30, 16, 12, 0, 0,    0.8f, third, 0,    //
                                24, 12, 16, 8,  0, 1,    0,    0,     1,    //
                                25, 12, 16, 8,  0, 0.9f, 0,    -9,    -9};  // suppressed
  const Output head = rows_of(rows, 9, true), planes{{1, 2, 8, 16}, prototypes};
  for (const auto& outputs : {std::vector{head, planes}, std::vector{planes, head}}) {
    const auto got = decode(manifest("yolov8-seg", "instance-segmentation", outputs), outputs);
    expect_boxes(got, {{16, 8, 32, 16, 1, 1}, {52, 24, 68, 36, 0.8f, 2}});
    std::vector<std::uint8_t> wanted(256, 0);
    const std::vector<std::uint8_t> upper{128, 191, 64, 0}, lower{128, 128, 128, 255};
    std::ranges::copy(upper, wanted.begin() + 2 * 16 + 4);
    std::ranges::copy(lower, wanted.begin() + 3 * 16 + 4);
    for (std::ptrdiff_t y = 6; y < 8; ++y) {
      std::fill_n(wanted.begin() + 128 + y * 16 + 13, 3, std::uint8_t{191});  // 0.75 x 255 = 191.25
    }
    EXPECT_EQ(levels(got, {2, 8, 16}), wanted);
  }
}

TEST_P(P02, GivenEndToEndMasks_WhenDecoded_ThenEachObjectHasItsOwnWeights) {
  const Output planes{{1, 1, 8, 16}, std::vector<float>(128, 1.0f)};
  const std::vector<float> rows{0,  0, 64, 32, 0.8f, 2, -1000,  //
                                0,  0, 64, 32, 0.9f, 2, 1000,   //
                                17, 9, 31, 15, 0.5f, 0, 1000};  // the pixels whose centres are in
  const std::vector<Output> outputs{rows_of(rows, 7, false), planes};
  const auto got =
      decode(manifest("yolo-end-to-end-seg", "instance-segmentation", outputs), outputs);
  expect_boxes(got, {{0, 0, 64, 32, 0.9f, 2}, {0, 0, 64, 32, 0.8f, 2}, {17, 9, 31, 15, 0.5f, 0}});
  std::vector<std::uint8_t> wanted(384, 0);
  std::fill_n(wanted.begin(), 128, std::uint8_t{255});
  for (const std::ptrdiff_t y : {2, 3}) {
    std::fill_n(wanted.begin() + 256 + y * 16 + 4, 4, std::uint8_t{255});
  }
  EXPECT_EQ(levels(got, {3, 8, 16}), wanted);
}

}  // namespace
}  // namespace penstock
