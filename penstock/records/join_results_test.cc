// SPDX-License-Identifier: Apache-2.0
#include "penstock/records/join_results.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>

#include "penstock/records/frame_scale.h"

namespace penstock {
namespace {

FrameResult frame(int width, int height) {
  FrameResult result;
  result.source = "door";
  result.frame = 4;
  result.pts_ns = 160000000;
  result.generation = 2;
  result.width = width;
  result.height = height;
  return result;
}

Attributes said_by(const std::string& model, const std::string& label) {
  Attributes attributes;
  attributes.model = model;
  attributes.classes = {{.label = label}};
  return attributes;
}

TEST(G03, GivenABranchOfAThirdOfTheSize_WhenJoined_ThenItsGeometryIsThreeTimesAsLarge) {
  FrameResult whole = frame(1920, 1080);
  FrameResult branch = frame(640, 360);
  branch.objects = {{.label = "person",
                     .x = 10.5f,
                     .y = 20,
                     .width = 30,
                     .height = 40.25f,
                     .keypoints = {{.x = -1, .y = 361, .confidence = 0.5f}},
                     .rotated = RotatedBox{25, 40, 30, 20, 0.75f}}};
  ASSERT_TRUE(join_results(whole, branch));
  ASSERT_EQ(whole.objects.size(), 1u);
  const Detection& object = whole.objects[0];
  EXPECT_FLOAT_EQ(object.x, 31.5f);
  EXPECT_FLOAT_EQ(object.y, 60);
  EXPECT_FLOAT_EQ(object.width, 90);
  EXPECT_FLOAT_EQ(object.height, 120.75f);
  EXPECT_FLOAT_EQ(object.keypoints[0].x, -3);
  EXPECT_FLOAT_EQ(object.keypoints[0].y, 1083);
  EXPECT_FLOAT_EQ(object.keypoints[0].confidence, 0.5f);
  EXPECT_FLOAT_EQ(object.rotated->center_x, 75);
  EXPECT_FLOAT_EQ(object.rotated->center_y, 120);
  EXPECT_FLOAT_EQ(object.rotated->width, 90);
  EXPECT_FLOAT_EQ(object.rotated->height, 60);
  EXPECT_EQ(object.rotated->angle, 0.75f);
}

TEST(G03, GivenWhatLaterModelsAndCountersSaid_WhenJoined_ThenAllOfItIsKept) {
  FrameResult whole = frame(640, 360);
  whole.attributes = {said_by("light", "day")};
  whole.zones = {{.name = "mat", .inside = 1}};
  FrameResult branch = frame(320, 180);
  branch.attributes = {said_by("weather", "rain")};
  branch.zones = {{.name = "door", .inside = 2}};
  branch.lines = {{.name = "gate", .forwards = 3}};
  ASSERT_TRUE(join_results(whole, branch));
  ASSERT_EQ(whole.attributes.size(), 2u);
  EXPECT_EQ(whole.attributes[0].model, "light");
  EXPECT_EQ(whole.attributes[1].classes.at(0).label, "rain");
  ASSERT_EQ(whole.zones.size(), 2u);
  EXPECT_EQ(whole.zones[1].name, "door");
  ASSERT_EQ(whole.lines.size(), 1u);
  EXPECT_EQ(whole.lines[0].forwards, 3u);
}

TEST(G03, GivenABranchLargerThanTheFrame_WhenJoined_ThenItsGeometryShrinks) {
  FrameResult whole = frame(640, 360);
  FrameResult branch = frame(1280, 1080);
  branch.objects = {{.x = 100, .y = 300, .width = 50, .height = 90}};
  ASSERT_TRUE(join_results(whole, branch));
  EXPECT_FLOAT_EQ(whole.objects[0].x, 50);
  EXPECT_FLOAT_EQ(whole.objects[0].y, 100);
  EXPECT_FLOAT_EQ(whole.objects[0].width, 25);
  EXPECT_FLOAT_EQ(whole.objects[0].height, 30);
}

// The oracle moves corners, and looks at the parallelogram that they make.
TEST(G03, GivenOtherScalesPerAxis_WhenATurnedBoxIsScaled_ThenItsFirstSideAndItsAreaAreRight) {
  const FrameScale scale = scale_between(100, 100, 300, 50);
  for (double turn = -3; turn < 3; turn += 0.37) {
    const RotatedBox box{50, 50, 20, 8, static_cast<float>(turn)};
    const RotatedBox moved = scaled(box, scale);
    const double side_x = 3 * 20 * std::cos(turn), side_y = 0.5 * 20 * std::sin(turn);
    const double other_x = 3 * 8 * -std::sin(turn), other_y = 0.5 * 8 * std::cos(turn);
    const double angle = static_cast<double>(moved.angle);
    EXPECT_NEAR(static_cast<double>(moved.width) * std::cos(angle), side_x, 1e-3) << turn;
    EXPECT_NEAR(static_cast<double>(moved.width) * std::sin(angle), side_y, 1e-3) << turn;
    EXPECT_NEAR(static_cast<double>(moved.width) * static_cast<double>(moved.height),
                std::abs(side_x * other_y - side_y * other_x), 1e-2)
        << turn;
    EXPECT_FLOAT_EQ(moved.center_x, 150);
    EXPECT_FLOAT_EQ(moved.center_y, 25);
  }
}

TEST(G03, GivenPartsOfObjects_WhenJoined_ThenParentsPointAtTheSameObjects) {
  FrameResult whole = frame(64, 64);
  whole.objects = {{.label = "bus"}, {.label = "plate", .mask = 3, .parent = 0}};
  FrameResult branch = frame(64, 64);
  branch.objects = {{.label = "cat", .mask = 1},
                    {.label = "dog", .mask = 0},
                    {.label = "collar", .mask = 2, .parent = 1}};
  branch.objects[1].attributes.push_back({});
  branch.objects[1].attributes[0].model = "breed";
  const auto part = join_results(whole, branch);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->first_object, 2u);
  ASSERT_EQ(whole.objects.size(), 5u);
  EXPECT_EQ(whole.objects[1].parent, 0);
  EXPECT_EQ(whole.objects[2].parent, -1);
  EXPECT_EQ(whole.objects[4].label, "collar");
  EXPECT_EQ(whole.objects[4].parent, 3);
  EXPECT_EQ(whole.objects[static_cast<std::size_t>(whole.objects[4].parent)].label, "dog");
  EXPECT_EQ(whole.objects[3].attributes[0].model, "breed");
  // Masks of the frame's objects would count in somebody else's; those of parts go by their parent.
  EXPECT_EQ(part->masks, (std::vector<int>{1, 0, -1}));
  EXPECT_EQ(whole.objects[2].mask, -1);
  EXPECT_EQ(whole.objects[3].mask, -1);
  EXPECT_EQ(whole.objects[4].mask, 2);
  EXPECT_EQ(whole.objects[1].mask, 3);
}

TEST(G03, GivenTwoClassifiers_WhenJoined_ThenTheFirstStaysAndNothingIsLost) {
  FrameResult whole = frame(64, 64);
  whole.classes = {{.label = "indoors", .confidence = 0.75f}};
  FrameResult branch = frame(64, 64);
  branch.classes = {{.label = "night", .confidence = 0.5f}};
  branch.embedding = {1, 2};
  branch.texts = {{.text = "EXIT"}};
  const auto part = join_results(whole, branch);
  ASSERT_TRUE(part);
  ASSERT_EQ(whole.classes.size(), 1u);
  EXPECT_EQ(whole.classes[0].label, "indoors");
  ASSERT_EQ(part->rest.classes.size(), 1u);
  EXPECT_EQ(part->rest.classes[0].label, "night");
  EXPECT_EQ(whole.embedding, (std::vector<float>{1, 2}));
  EXPECT_TRUE(part->rest.embedding.empty());
  EXPECT_EQ(whole.texts[0].text, "EXIT");
}

struct Refused {
  const char* name;
  void (*change)(FrameResult&);
  const char* error;
};
class G03_Refused : public ::testing::TestWithParam<Refused> {};

TEST_P(G03_Refused, GivenAnotherFrame_WhenJoined_ThenTheFieldAndBothValuesAreNamed) {
  FrameResult whole = frame(64, 64);
  FrameResult branch = frame(32, 32);
  branch.objects.push_back({});
  GetParam().change(branch);
  const auto part = join_results(whole, branch);
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().message(), GetParam().error);
  EXPECT_TRUE(whole.objects.empty());
}
INSTANTIATE_TEST_SUITE_P(
    Frames, G03_Refused,
    ::testing::Values(Refused{"Source", [](FrameResult& b) { b.source = "gate"; },
                              "source 'gate' is not the frame's, which is 'door'"},
                      Refused{"Generation", [](FrameResult& b) { b.generation = 1; },
                              "generation '1' is not the frame's, which is '2'"},
                      Refused{"Pts", [](FrameResult& b) { b.pts_ns = 120000000; },
                              "PTS (ns) '120000000' is not the frame's, which is '160000000'"},
                      Refused{"Size", [](FrameResult& b) { b.width = 0; },
                              "size 0x32 can't be told in pixels of 64x64"},
                      Refused{"Parent", [](FrameResult& b) { b.objects[0].parent = 1; },
                              "an object's parent is 1, of 1 objects"}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace penstock
