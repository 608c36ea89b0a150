// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/output_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "penstock/base/str_format.h"
#include "penstock/task/test_nanodet.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

DetectionBlock block_of(std::initializer_list<DetectionRecord> records) {
  DetectionBlock block{};
  for (const DetectionRecord& record : records) block.records[block.count++] = record;
  return block;
}

std::vector<Detection> detections_of(const DetectionBlock& block, const Letterbox& letterbox,
                                     const std::vector<std::string>& labels) {
  return to_findings({.block = block}, letterbox, labels).objects;
}

// 768 x 576 into 416: scaled 416 x 312, 52 rows of padding above.
Letterbox clip() {
  return *Letterbox::plan({0, 0, 768, 576}, 768, 576, 416, 416, Fit::kLetterboxCenter);
}

TEST(P05, GivenRecords_WhenTurnedIntoDetections_ThenTheyAreInSourcePixelsWithLabels) {
  const auto detections =
      detections_of(block_of({{104, 52 + 78, 208, 52 + 156, 0.75f, 1}, {0, 52, 416, 364, 0.5f, 7}}),
                    clip(), {"person", "bicycle"});
  ASSERT_EQ(detections.size(), 2u);
  EXPECT_EQ(detections[0].label, "bicycle");
  EXPECT_EQ(detections[0].class_id, 1);
  EXPECT_FLOAT_EQ(detections[0].confidence, 0.75f);
  EXPECT_FLOAT_EQ(detections[0].x, 192);
  EXPECT_FLOAT_EQ(detections[0].y, 144);
  EXPECT_FLOAT_EQ(detections[0].width, 192);
  EXPECT_FLOAT_EQ(detections[0].height, 144);
  EXPECT_EQ(detections[1].label, "class 7");
  EXPECT_FLOAT_EQ(detections[1].width, 768);
  EXPECT_FLOAT_EQ(detections[1].height, 576);
}

TEST(P05, GivenBoxesOverTheEdgeOrInThePadding_WhenTurned_ThenTheyAreClippedOrDropped) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto detections =
      detections_of(block_of({{-50, 0, 52, 130, 0.9f, 0},     // over the left and upper edge
                              {10, 10, 100, 51, 0.8f, 0},     // in the padding
                              {50, 200, 50, 240, 0.7f, 0},    // empty
                              {90, 240, 50, 200, 0.6f, 0},    // inside out
                              {kNan, 200, 50, 240, 0.5f, 0},  // not a box
                              {10, 200, 50, 240, kNan, 0}}),  // not a score
                    clip(), {"person"});
  ASSERT_EQ(detections.size(), 1u);
  EXPECT_FLOAT_EQ(detections[0].x, 0);
  EXPECT_FLOAT_EQ(detections[0].y, 0);
  EXPECT_FLOAT_EQ(detections[0].width, 96);
  EXPECT_FLOAT_EQ(detections[0].height, 144);
}

TEST(Detections, GivenABlockWithAnAbsurdCount_WhenTurned_ThenNothingBehindItIsRead) {
  DetectionBlock block{};
  block.count = 0xffffffffu;
  for (DetectionRecord& record : block.records) record = {10, 100, 20, 120, 0.5f, -3};
  const auto detections = detections_of(block, clip(), {"person"});
  ASSERT_EQ(detections.size(), 300u);
  EXPECT_EQ(detections[0].label, "class -3");
}

TEST(P05, GivenKeypoints_WhenTurned_ThenTheyFollowTheirBoxesUnclipped) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Decoded decoded{.block = block_of({{10, 10, 100, 51, 0.9f, 0},  // in the padding: dropped
                                     {104, 130, 208, 208, 0.8f, 0}})};
  decoded.keypoints_per_object = 2;
  decoded.keypoints = {{1, 1, 1}, {2, 2, 1}, {-26, 52 + 26, 0.5f}, {kNan, 60, 0.9f}};
  const auto objects = to_findings(decoded, clip(), {"person"}).objects;
  ASSERT_EQ(objects.size(), 1u);
  ASSERT_EQ(objects[0].keypoints.size(), 2u);
  EXPECT_FLOAT_EQ(objects[0].keypoints[0].x, -48);
  EXPECT_FLOAT_EQ(objects[0].keypoints[0].y, 48);
  EXPECT_FLOAT_EQ(objects[0].keypoints[0].confidence, 0.5f);
  EXPECT_EQ(objects[0].keypoints[1].confidence, 0);
  EXPECT_EQ(objects[0].mask, -1);
}

TEST(P05, GivenATurnedBox_WhenTurned_ThenItsSidesAndAngleAreTheSources) {
  Decoded decoded{.block = block_of({{104, 130, 208, 208, 0.8f, 0}})};
  decoded.rotated = {{104, 130, 52, 26, 0.5f}};
  const auto even = to_findings(decoded, clip(), {}).objects.at(0).rotated;
  ASSERT_TRUE(even);
  EXPECT_NEAR(even->center_x, 192, 1e-3);
  EXPECT_NEAR(even->center_y, 144, 1e-3);
  EXPECT_NEAR(even->width, 96, 1e-3);
  EXPECT_NEAR(even->height, 48, 1e-3);
  EXPECT_NEAR(even->angle, 0.5, 1e-6);
  for (const RotatedRecord wild : {RotatedRecord{104, 130, 1e20f, 26, 0},
                                   {104, 130, 52, 1e30f, 0},
                                   {1e9f, 130, 52, 26, 0},
                                   {104, 130, -1, 26, 0}}) {
    decoded.rotated = {wild};
    EXPECT_FALSE(to_findings(decoded, clip(), {}).objects.at(0).rotated);
  }
  // Stretched to a quarter of the width and half of the height: the corner vector of the long side
  // (cos, sin) * 40 is (4 cos, 2 sin) * 40 in the source.
  const auto wide = *Letterbox::plan({0, 0, 1664, 832}, 1664, 832, 416, 416, Fit::kStretch);
  decoded.rotated = {{100, 100, 40, 20, 0.5f}};
  const auto turned = to_findings(decoded, wide, {}).objects.at(0).rotated;
  ASSERT_TRUE(turned);
  EXPECT_NEAR(turned->width, 40 * std::hypot(4 * std::cos(0.5), 2 * std::sin(0.5)), 1e-3);
  EXPECT_NEAR(turned->angle, std::atan2(2 * std::sin(0.5), 4 * std::cos(0.5)), 1e-6);
}

TEST(P05, GivenClassPixels_WhenTurned_ThenTheAreasAreSortedAndEmptyOnesLeftOut) {
  Decoded decoded;
  decoded.class_pixels = {10, 0, 30};
  const auto areas = to_findings(decoded, clip(), {"sky", "car", "road"}).areas;
  ASSERT_EQ(areas.size(), 2u);
  EXPECT_EQ(areas[0].label, "road");
  EXPECT_FLOAT_EQ(areas[0].fraction, 0.75f);
  EXPECT_EQ(areas[1].class_id, 0);
}

TEST(Decoder, GivenAnUnknownFamily_WhenCreated_ThenItIsNamed) {
  Manifest manifest;
  manifest.name = "mine";
  manifest.family = "yolov9000";
  const auto decoder = create_decoder(manifest, {});
  ASSERT_FALSE(decoder);
  EXPECT_EQ(decoder.error().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(decoder.error().message(), HasSubstr("yolov9000"));
  EXPECT_THAT(decoder.error().message(), HasSubstr("mine"));
}

TEST(Decoder, GivenAFamilyOfAnotherTask_WhenCreated_ThenBothTasksAreNamed) {
  for (const auto& [family, task, wrong] :
       {std::array{"yolov8", "detection", "pose"}, std::array{"nanodet", "detection", "raw"},
        std::array{"yolov8-seg", "instance-segmentation", "detection"},
        std::array{"yolo-end-to-end-seg", "instance-segmentation", "semantic-segmentation"},
        std::array{"yolov8-pose", "pose", "detection"},
        std::array{"yolo-end-to-end-pose", "pose", "oriented-detection"},
        std::array{"movenet", "pose", "detection"},
        std::array{"yolov8-obb", "oriented-detection", "detection"},
        std::array{"yolo-end-to-end-obb", "oriented-detection", ""}}) {
    Manifest manifest = testing::NanodetOutputs(416, 80).manifest();
    manifest.family = family;
    manifest.task = wrong;
    const auto decoder = create_decoder(manifest, {});
    ASSERT_FALSE(decoder) << family;
    EXPECT_EQ(decoder.error().kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(decoder.error().message(), HasSubstr(str_format("'{}'", family)));
    EXPECT_THAT(decoder.error().message(), HasSubstr(str_format("'{}'", task)));
    EXPECT_THAT(decoder.error().message(), HasSubstr(str_format("'{}'", wrong)));
  }
}

TEST(Decoder, GivenOptionsOutOfRange_WhenCreated_ThenTheyAreRefused) {
  const Manifest manifest = testing::NanodetOutputs(416, 80).manifest();
  EXPECT_TRUE(create_decoder(manifest, {}));
  EXPECT_TRUE(create_decoder(manifest, {.threshold = 0, .iou_threshold = 1}));
  EXPECT_FALSE(create_decoder(manifest, {.threshold = -0.1f}));
  EXPECT_FALSE(create_decoder(manifest, {.threshold = 1.1f}));
  EXPECT_FALSE(create_decoder(manifest, {.threshold = std::nanf("")}));
  EXPECT_FALSE(create_decoder(manifest, {.iou_threshold = std::nanf("")}));
  EXPECT_FALSE(create_decoder(manifest, {.iou_threshold = 2}));
  EXPECT_FALSE(create_decoder(manifest, {.max_objects = 0}));
  EXPECT_FALSE(create_decoder(manifest, {.max_objects = 301}));
}

}  // namespace
}  // namespace penstock
