// SPDX-License-Identifier: Apache-2.0
//
// Contract P02 for BlazeFace: logits and values of anchors written down by hand, boxes and
// keypoints computed by hand. The input is 128 x 128, so the fine grid's cells are 8 pixels and the
// coarse one's 16.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "penstock/task/test_extras.h"

namespace penstock {
namespace {

using testing::Extras;
using ::testing::HasSubstr;
using testing::Output;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// All anchors of a picture, none of them a face.
struct Anchors {
  std::vector<float> logits = std::vector<float>(896, -100.0f);
  std::vector<float> values = std::vector<float>(896 * 16, 0.0f);

  void set(std::size_t anchor, float logit, const std::vector<float>& of_anchor) {
    logits[anchor] = logit;
    std::ranges::copy(of_anchor, values.begin() + static_cast<std::ptrdiff_t>(anchor * 16));
  }
  /// Outputs as the four of two grids, coarse ones first, or as two.
  std::vector<Output> outputs(bool apart) const {
    if (!apart) return {{{1, 896, 16}, values}, {{1, 896, 1}, logits}};
    const auto logit = logits.begin() + 512;
    const auto value = values.begin() + 512 * 16;
    return {{{1, 384, 1}, {logit, logits.end()}},
            {{1, 512, 1}, {logits.begin(), logit}},
            {{1, 384, 16}, {value, values.end()}},
            {{1, 512, 16}, {values.begin(), value}}};
  }
};

class P02 : public Extras {
 protected:
  static Manifest faces(const std::vector<Output>& outputs, int labels = 1,
                        std::size_t keypoints = 6) {
    Manifest made = manifest("blazeface", "pose", outputs, labels, keypoints);
    made.preprocess.width = made.preprocess.height = 128;
    return made;
  }
  Result<Decoded> decode_faces(const std::vector<Output>& outputs, int item = 0) {
    return decode(faces(outputs), outputs, {.threshold = 0.5f, .iou_threshold = 0.3f}, item);
  }
};
INSTANTIATE_TEST_SUITE_P(cpu, P02, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P02, ::testing::Values("sim"));

TEST_P(P02, GivenFacesInBothGrids_WhenDecoded_ThenAnchorsAreTheMiddlesOfTheirCells) {
  Anchors anchors;
  // Fine: the second anchor of column 2, row 1; its middle is 20, 12.
  anchors.set(2 * (16 + 2) + 1, std::log(9.0f),
              {2, -1, 10, 6, 0, 0, 1, 2, 3, 4, -5, 6, 7, -8, 9, 10});
  // Coarse: the last anchor of all, in column 7, row 7, at 120, 120; just the threshold.
  anchors.set(895, 0, {0, 0, 4, 8, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6});
  // Coarse: the first anchor of column 3, row 0, at 56, 8.
  anchors.set(512 + 6 * 3, std::log(3.0f), {-6, 8, 20, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  for (const bool apart : {true, false}) {
    SCOPED_TRACE(apart);
    const auto got = decode_faces(anchors.outputs(apart));
    expect_boxes(
        got, {{17, 8, 27, 14, 0.9f, 0}, {40, 6, 60, 26, 0.75f, 0}, {118, 116, 122, 124, 0.5f, 0}});
    expect_keypoints(got, 6,
                     {{20, 12, 1},
                      {21, 14, 1},
                      {23, 16, 1},
                      {15, 18, 1},
                      {27, 4, 1},
                      {29, 22, 1},
                      {56, 8, 1},
                      {56, 8, 1},
                      {56, 8, 1},
                      {56, 8, 1},
                      {56, 8, 1},
                      {56, 8, 1},
                      {121, 121, 1},
                      {122, 122, 1},
                      {123, 123, 1},
                      {124, 124, 1},
                      {125, 125, 1},
                      {126, 126, 1}});
  }
}

TEST_P(P02, GivenAnchorsThatSeeTheSameFace_WhenDecoded_ThenTheSurestAndOfEqualsTheFirstIsLeft) {
  Anchors anchors;
  anchors.set(0, 1, {0, 0, 40, 40, 1, 1});
  anchors.set(1, 2, {0, 0, 40, 40, 2, 2});   // the surest
  anchors.set(2, 2, {-8, 0, 40, 40, 3, 3});  // the same place from the next cell
  anchors.set(60, 2, {0, 0, 10, 10, 4, 4});  // elsewhere
  anchors.set(512, 2, {-4, -4, 41, 41, 5, 5});
  const auto got = decode_faces(anchors.outputs(true));
  const float score = 1 / (1 + std::exp(-2.0f));
  expect_boxes(got, {{-16, -16, 24, 24, score, 0}, {111, 7, 121, 17, score, 0}});
  ASSERT_EQ(got->keypoints.size(), 12u);
  EXPECT_FLOAT_EQ(got->keypoints[0].x, 6);
  EXPECT_FLOAT_EQ(got->keypoints[6].x, 120);
}

TEST_P(P02, GivenNaNInfinityOrNoArea_WhenDecoded_ThenTheyNeverWin) {
  for (const float bad : {kNan, kInf, -kInf}) {
    Anchors anchors;
    anchors.set(100, 1, {0, 0, 8, 8});
    anchors.set(200, bad, {0, 0, 8, 8});
    for (std::size_t v = 0; v < 4; ++v) {
      std::vector<float> values{0, 0, 8, 8};
      values[v] = bad;
      anchors.set(300 + v, 3, values);
      anchors.set(600 + v, 3, values);
    }
    const auto got = decode_faces(anchors.outputs(true));
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(got->block.count, 1u) << bad;
  }
  Anchors flat;
  flat.set(100, 3, {0, 0, 0, 8});
  flat.set(200, 3, {0, 0, 8, 0});
  flat.set(300, 3, {0, 0, -8, -8});
  expect_boxes(decode_faces(flat.outputs(false)), {});
}

TEST_P(P02, GivenNoFaceOrAFaceAtEveryAnchor_WhenDecoded_ThenNoneOrThreeHundredComeOut) {
  Anchors anchors;
  const auto none = decode_faces(anchors.outputs(true));
  expect_boxes(none, {});
  expect_keypoints(none, 6, {});
  for (std::size_t i = 0; i < 896; ++i) {
    // Apart from one another, so that NMS keeps them.
    const std::size_t nth = i < 512 ? i % 2 : (i - 512) % 6;
    anchors.set(i, 3, {2 * static_cast<float>(nth), 0, 1, 1});
  }
  const auto got = decode_faces(anchors.outputs(true));
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->block.count, 300u);
  EXPECT_EQ(got->keypoints.size(), 1800u);
}

TEST_P(P02, GivenASecondBatchItem_WhenDecoded_ThenItsOwnValuesAreRead) {
  Anchors first, second;
  first.set(0, 3, {0, 0, 8, 8});
  second.set(2, 3, {0, 0, 8, 8});
  const auto a = first.outputs(true), b = second.outputs(true);
  std::vector<Output> both;
  for (std::size_t i = 0; i < a.size(); ++i) both.push_back(testing::batched(a[i], b[i]));
  const auto got = decode_faces(both, 1);
  ASSERT_TRUE(got) << got.error().message();
  ASSERT_EQ(got->block.count, 1u);
  EXPECT_FLOAT_EQ(got->block.records[0].x0, 8);
  EXPECT_FALSE(decode_faces(both, 2));
}

TEST_P(P02, GivenOutputsOrManifestsThatAreNotBlazeFaces_WhenOpened_ThenTheErrorSaysWhy) {
  const auto refusal = [](const Manifest& manifest) {
    const auto decoder = create_decoder(manifest, {});
    return decoder ? std::string("opened") : decoder.error().message();
  };
  const auto outputs = Anchors().outputs(true);
  EXPECT_EQ(refusal(faces(outputs)), "opened");
  EXPECT_THAT(refusal(faces(outputs, 2)), HasSubstr("2 labels for 1 class"));
  EXPECT_THAT(refusal(faces(outputs, 1, 5)), HasSubstr("5 names, not 6"));
  Manifest wide = faces(outputs);
  wide.preprocess.width = 256;
  EXPECT_THAT(refusal(wide), HasSubstr("256 x 128, no square"));
  std::vector<Output> fewer(outputs.begin(), outputs.end() - 1);
  EXPECT_THAT(refusal(faces(fewer)), HasSubstr("[batch, 896, 16]"));
  std::vector<Output> twice = outputs;
  twice[1] = twice[0];
  EXPECT_THAT(refusal(faces(twice)), HasSubstr("[1,384,1], [1,384,1]"));
  std::vector<Output> more = Anchors().outputs(false);
  more.push_back({{1, 896, 2}, {}});
  EXPECT_THAT(refusal(faces(more)), HasSubstr("blazeface"));
}

}  // namespace
}  // namespace penstock
