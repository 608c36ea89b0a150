// SPDX-License-Identifier: Apache-2.0
//
// Contract P02 for semantic segmentation: maps written down by hand. The suites are instantiated in
// whole_picture_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/task/test_whole_picture.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Three classes on a map of 3 x 2; the winners are 2 0 1 / 0 1 0.
const std::vector<float> kPlanes{0.1f, 0.5f, 0.2f, 0.4f, kNan,  0.3f,  //
                                 0.2f, 0.5f, 0.9f, kInf, 0.1f,  0.3f,  //
                                 0.3f, 0.4f, 0.9f, 0.3f, -kInf, 0.3f};
const std::vector<std::uint8_t> kWinners{2, 0, 1, 0, 1, 0};

std::vector<float> channels_last(const std::vector<float>& planes, std::size_t channels) {
  std::vector<float> values;
  const std::size_t pixels = planes.size() / channels;
  for (std::size_t p = 0; p < pixels; ++p) {
    for (std::size_t c = 0; c < channels; ++c) values.push_back(planes[c * pixels + p]);
  }
  return values;
}

TEST_P(P02, GivenScoresOfEitherLayout_WhenSegmented_ThenTheLowestOfTheBestWins) {
  for (const Output& output :
       {floats({1, 3, 2, 3}, kPlanes), floats({1, 2, 3, 3}, channels_last(kPlanes, 3))}) {
    SCOPED_TRACE(to_string(output.shape));
    Manifest manifest = manifest_of("semantic-segmentation", {output}, 3);
    if (output.shape[1] == 3) {
      // Both the classes and the columns are three.
      EXPECT_THAT(message_of(decode(manifest, {output})), HasSubstr("either axis"));
      manifest.outputs[0].layout = TensorLayout::kNchw;
    }
    const auto decoded = decode(manifest, {output});
    ASSERT_TRUE(decoded) << message_of(decoded);
    EXPECT_EQ(map_of(*decoded), kWinners);
    EXPECT_EQ(decoded->device.class_map->shape, (Shape{2, 3}));
    EXPECT_EQ(decoded->device.class_map->type, DataType::kUint8);
    EXPECT_THAT(decoded->class_pixels, ElementsAre(3u, 2u, 1u));
  }
}

TEST_P(P02, GivenLabelsThatFitOneAxis_WhenSegmented_ThenTheyTellTheLayout) {
  // 2 classes on a map of 3 x 1.
  const std::vector<float> planes{0.6f, 0.4f, 0.5f, 0.4f, 0.6f, 0.5f};
  for (const Output& output :
       {floats({1, 2, 1, 3}, planes), floats({1, 1, 3, 2}, channels_last(planes, 2))}) {
    Manifest manifest = manifest_of("semantic-segmentation", {output}, 2);
    if (output.shape[1] == 1) manifest.outputs[0].layout = TensorLayout::kNhwc;
    const auto decoded = decode(manifest, {output});
    ASSERT_TRUE(decoded) << message_of(decoded);
    EXPECT_THAT(map_of(*decoded), ElementsAre(0, 1, 0));
  }
}

TEST_P(P02, GivenABatch_WhenItem1IsSegmented_ThenItsPixelsAreRead) {
  const std::vector<Output> outputs{floats({2, 3, 1, 2}, {0.9f, 0.9f, 0, 0, 0, 0,  //
                                                          0, 0.1f, 0.2f, 0, 0.3f, 0.1f})};
  const auto decoded =
      decode(manifest_of("semantic-segmentation", outputs, 3), outputs, kReadAll, 1);
  ASSERT_TRUE(decoded) << message_of(decoded);
  EXPECT_THAT(map_of(*decoded), ElementsAre(2, 0));
}

TEST_P(P02, GivenAPixelWithoutAFiniteScore_WhenSegmented_ThenTheMapIsUnusable) {
  const auto expect_refused = [&](const Output& output, int labels) {
    Manifest manifest = manifest_of("semantic-segmentation", {output}, labels);
    for (const ScoreKind kind : {ScoreKind::kProbabilities, ScoreKind::kLogits}) {
      manifest.scores = kind;
      const auto decoded = decode(manifest, {output});
      ASSERT_TRUE(decoded) << message_of(decoded);
      EXPECT_EQ(decoded->unusable, "output 'out1': a pixel has no finite score");
      EXPECT_TRUE(decoded->class_pixels.empty());
      EXPECT_FALSE(decoded->device.class_map);
    }
  };
  expect_refused(floats({1, 3, 1, 2}, {0.1f, kNan, 0, kInf, 0, -kInf}), 3);
  // One channel has no other score to go by.
  for (const float wrong : {kNan, kInf, -kInf})
    expect_refused(floats({1, 1, 1, 3}, {1, wrong, 0}), 2);
}

TEST_P(P02, GivenOneChannel_WhenSegmented_ThenTheThresholdTellsTheForeground) {
  const std::vector<float> values{0.0f, 0.5f, 0.49f, -0.1f, 0.9f, -5.0f};
  for (const int labels : {0, 2}) {
    const std::vector<Output> outputs{floats({1, 1, 2, 3}, values)};
    Manifest manifest = manifest_of("semantic-segmentation", outputs, labels);
    auto decoded = decode(manifest, outputs, {.threshold = 0.5f});
    ASSERT_TRUE(decoded) << message_of(decoded);
    EXPECT_THAT(map_of(*decoded), ElementsAre(0, 1, 0, 0, 1, 0));
    EXPECT_THAT(decoded->class_pixels, ElementsAre(4u, 2u));
    // As logits those from 0 up are at least a half; ln (7 / 3) is 0.85, of which 0.7 is made.
    manifest.scores = ScoreKind::kLogits;
    decoded = decode(manifest, outputs, {.threshold = 0.5f});
    ASSERT_TRUE(decoded) << message_of(decoded);
    EXPECT_THAT(map_of(*decoded), ElementsAre(1, 1, 1, 0, 1, 0));
    decoded = decode(manifest, outputs, {.threshold = 0.7f});
    ASSERT_TRUE(decoded) << message_of(decoded);
    EXPECT_THAT(map_of(*decoded), ElementsAre(0, 0, 0, 0, 1, 0));
  }
}

TEST_P(P02, GivenClassNumbers_WhenSegmented_ThenTheyAreTheMap) {
  const std::vector<std::int64_t> numbers{0, 2, 1, 2, 2, 0};
  for (const Shape& shape : {Shape{1, 2, 3}, Shape{1, 1, 2, 3}, Shape{1, 2, 3, 1}}) {
    const std::vector<Output> outputs{longs(shape, numbers)};
    const auto decoded = decode(manifest_of("semantic-segmentation", outputs, 3), outputs);
    ASSERT_TRUE(decoded) << message_of(decoded);
    EXPECT_THAT(map_of(*decoded), ElementsAre(0, 2, 1, 2, 2, 0));
    EXPECT_THAT(decoded->class_pixels, ElementsAre(2u, 1u, 3u));
  }
  const std::vector<Output> narrow{
      {DataType::kInt32, {1, 1, 2}, bytes_of(std::vector<std::int32_t>{255, 7})}};
  const auto decoded = decode(manifest_of("semantic-segmentation", narrow, 0), narrow);
  ASSERT_TRUE(decoded) << message_of(decoded);
  EXPECT_THAT(map_of(*decoded), ElementsAre(255, 7));
  for (const std::int64_t wrong : {std::int64_t{3}, std::int64_t{-1}, std::int64_t{1} << 40}) {
    const std::vector<Output> outputs{longs({1, 1, 2}, {0, wrong})};
    const auto refused = decode(manifest_of("semantic-segmentation", outputs, 3), outputs);
    EXPECT_THAT(message_of(refused),
                HasSubstr(str_format("output 'out1': class number {} is not within 0..2", wrong)));
  }
}

TEST_P(P02, GivenALetterboxedPicture_WhenSegmented_ThenItsPaddingIsNotCounted) {
  // 8 x 4 in an input of 16 x 16: 16 x 8 with four rows of padding above and below; the map has a
  // quarter of the input's size, so its rows 1 and 2 are the picture.
  const auto letterbox = Letterbox::plan({0, 0, 8, 4}, 8, 4, 16, 16, Fit::kLetterboxCenter);
  ASSERT_TRUE(letterbox);
  ASSERT_EQ(letterbox->pad_y, 4);
  const std::vector<Output> outputs{longs({1, 4, 4}, {2, 2, 2, 2,  //
                                                      0, 1, 1, 1,  //
                                                      0, 0, 1, 1,  //
                                                      2, 2, 2, 2})};
  const auto decoded =
      decode(manifest_of("semantic-segmentation", outputs, 3), outputs, kReadAll, 0, &*letterbox);
  ASSERT_TRUE(decoded) << message_of(decoded);
  EXPECT_THAT(decoded->class_pixels, ElementsAre(3u, 5u, 0u));
  EXPECT_EQ(map_of(*decoded).size(), 16u) << "the map is the whole input's";
  const auto areas = to_findings(*decoded, *letterbox, {"sky", "road", "pad"}).areas;
  ASSERT_EQ(areas.size(), 2u);
  EXPECT_EQ(areas[0].label, "road");
  EXPECT_FLOAT_EQ(areas[0].fraction, 5.0f / 8);
}

}  // namespace
}  // namespace penstock
