// SPDX-License-Identifier: Apache-2.0
//
// W04, W01: records that nobody should write. Nothing here may crash, hang or overrun.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "penstock/draw/compositor.h"
#include "penstock/media/test_frames.h"

namespace penstock {
namespace {

constexpr int kWidth = 128;
constexpr int kHeight = 72;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kHuge = std::numeric_limits<float>::max();

class HostileRecords : public ::testing::Test {
 protected:
  /// Draws and runs them; the list, for what it counted.
  DrawList run(const OverlayScene& scene) {
    const auto overlay = Overlay::create({}, kWidth, kHeight);
    auto drawing = (*overlay)->draw(scene);
    EXPECT_TRUE(drawing) << drawing.error().message();
    auto shared = std::make_shared<const Drawing>(std::move(*drawing));
    auto output = device_->allocate(std::size_t{4} * kWidth * kHeight);
    const auto compositor = Compositor::create(device_);
    auto done = (*compositor)->run(frame_, shared, *output, 4 * kWidth);
    EXPECT_TRUE(done && done->wait());
    return shared->list;
  }

  const DevicePtr device_ = testing::make_device("cpu");
  const FramePtr frame_ = testing::make_frame(*device_, testing::Picture(kWidth, kHeight));
};

class W04_Records : public HostileRecords {};

TEST_F(W04_Records, GivenTenThousandObjects_WhenDrawn_ThenTheLimitHoldsAndTheRestIsReported) {
  std::vector<Detection> objects(10'000);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    objects[i] = {.label = "object",
                  .confidence = 0.5f,
                  .x = float(i % 100),
                  .y = float(i % 60),
                  .width = 10,
                  .height = 8};
  }
  const DrawList list = run({.objects = objects});
  EXPECT_LE(list.commands().size(), kMaxDrawCommands);
  // A box, a ground and a text each.
  EXPECT_EQ(list.commands().size() + list.dropped(), 30'000u);
}

TEST_F(HostileRecords, GivenNumbersThatAreNone_WhenDrawn_ThenThoseObjectsAreCountedAndLeftOut) {
  std::vector<Detection> objects;
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    objects.push_back({.label = "x", .x = bad, .y = 1, .width = 10, .height = 10});
    objects.push_back({.label = "w", .x = 1, .y = 1, .width = bad, .height = 10});
    objects.push_back({.label = "r",
                       .width = 10,
                       .height = 10,
                       .rotated = RotatedBox{
                           .center_x = 5, .center_y = 5, .width = 4, .height = 2, .angle = bad}});
  }
  objects.push_back({.label = "negative", .x = 20, .y = 20, .width = -10, .height = 10});
  const DrawList list = run({.objects = objects});
  EXPECT_EQ(list.misplaced(), 10u);
  EXPECT_TRUE(list.commands().empty());
}

TEST_F(HostileRecords, GivenHugeNumbers_WhenDrawn_ThenNothingOverruns) {
  std::vector<Detection> objects;
  for (const float x : {-kHuge, -1e9f, -40'000.0f, 0.0f, 40'000.0f, kHuge}) {
    for (const float size : {0.0f, 1.0f, 70'000.0f, kHuge}) {
      Detection object{.label = "o",
                       .confidence = kNan,
                       .x = x,
                       .y = -x,
                       .width = size,
                       .height = size,
                       .track_id = std::numeric_limits<std::int64_t>::max()};
      object.keypoints.assign(17, {.x = x, .y = size, .confidence = kHuge});
      object.keypoints[3] = {.x = -kHuge, .y = kHuge, .confidence = 1};
      object.keypoints[4] = {.x = kNan, .y = 1, .confidence = 1};
      object.mask = 5;
      objects.push_back(object);
      object.rotated =
          RotatedBox{.center_x = x, .center_y = -x, .width = size, .height = kHuge, .angle = kHuge};
      objects.push_back(object);
    }
  }
  const std::vector<OverlayZone> zones{
      {.name = "far", .corners = {{-kHuge, kHuge}, {kHuge, kHuge}, {kNan, 0}}},
      {.name = "none", .corners = {}},
      {.name = "point", .corners = {{0.5f, 0.5f}}, .is_closed = false}};
  run({.objects = objects, .zones = zones});
}

TEST_F(HostileRecords, GivenLabelsOfAnyBytes_WhenDrawn_ThenTheyAreCut) {
  std::mt19937 random(3);
  std::vector<Detection> objects;
  for (int i = 0; i < 40; ++i) {
    std::string label(10'000, ' ');
    for (char& c : label) c = static_cast<char>(random());
    objects.push_back({.label = label,
                       .confidence = 2,
                       .x = float(i),
                       .y = 30,
                       .width = 30,
                       .height = 30,
                       .track_id = -5});
  }
  const DrawList list = run({.objects = objects});
  EXPECT_EQ(list.dropped(), 0u);
}

class HostileMasks : public HostileRecords {
 protected:
  OverlayMasks masks(const Shape& shape, std::size_t bytes) {
    auto storage = device_->allocate(bytes);
    OverlayMasks made{.masks = Tensor{.name = "masks",
                                      .type = DataType::kUint8,
                                      .shape = shape,
                                      .data = StorageRegion::whole(*storage),
                                      .ready = {}}};
    made.letterbox =
        *Letterbox::plan({0, 0, kWidth, kHeight}, kWidth, kHeight, 64, 64, Fit::kLetterboxCenter);
    return made;
  }
  std::string refusal(const OverlayMasks& masks) {
    const std::vector<Detection> objects{{.label = "a", .width = 10, .height = 10, .mask = 0}};
    const auto overlay = Overlay::create({}, kWidth, kHeight);
    const auto drawing = (*overlay)->draw({.objects = objects, .masks = &masks});
    return drawing ? "" : drawing.error().message();
  }
};

TEST_F(HostileMasks, GivenMasksOfAnotherShape_WhenDrawn_ThenTheyAreRefused) {
  EXPECT_EQ(refusal(masks({1, 16, 16}, 256)), "");
  for (const Shape& shape : {Shape{16, 16}, Shape{1, 16, 17}, Shape{1, 1, 16, 16}, Shape{},
                             Shape{1, -16, 16}, Shape{0, 16, 16}, Shape{1, 16, 0}}) {
    EXPECT_NE(refusal(masks(shape, 256)).find("uint8"), std::string::npos) << to_string(shape);
  }
  auto other_type = masks({1, 8, 8}, 256);
  other_type.masks->type = DataType::kFloat32;
  EXPECT_NE(refusal(other_type).find("uint8"), std::string::npos);
  auto nowhere = masks({1, 16, 16}, 256);
  nowhere.masks->data.storage = nullptr;
  EXPECT_NE(refusal(nowhere).find("uint8"), std::string::npos);
}

TEST_F(HostileMasks, GivenMasksOfAnotherPicture_WhenDrawn_ThenTheSizesAreNamed) {
  auto other = masks({1, 16, 16}, 256);
  other.letterbox.frame_width = 4;
  EXPECT_NE(refusal(other).find("4x72"), std::string::npos) << refusal(other);
  auto empty = masks({1, 16, 16}, 256);
  empty.letterbox = {};
  empty.letterbox.frame_width = kWidth;
  empty.letterbox.frame_height = kHeight;
  EXPECT_NE(refusal(empty).find("128x72"), std::string::npos);
}

TEST_F(HostileMasks, GivenAnIndexBeyondTheMasks_WhenDrawn_ThenItIsCounted) {
  const OverlayMasks given = masks({1, 16, 16}, 256);
  const std::vector<Detection> objects{{.width = 10, .height = 10, .mask = 1},
                                       {.width = 10, .height = 10, .mask = 2'000'000'000}};
  EXPECT_EQ(run({.objects = objects, .masks = &given}).misplaced(), 2u);
}

}  // namespace
}  // namespace penstock
