// SPDX-License-Identifier: Apache-2.0
//
// W01: which commands records become.
#include "penstock/draw/overlay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "penstock/draw/colors.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

/// A label: its ground, and its text in the glyphs' numbers.
struct Label {
  DrawBox ground;
  DrawColor color;
  std::vector<Glyph> text;
};

std::vector<Label> labels_of(const DrawList& list) {
  std::vector<Label> labels;
  for (const DrawCommand& command : list.commands()) {
    if (command.kind == DrawKind::kFill) labels.push_back({command.box, command.color, {}});
    if (command.kind == DrawKind::kText) {
      auto& text = labels.back().text;
      text.insert(text.end(), command.more.begin(), command.more.begin() + command.count);
    }
  }
  return labels;
}

std::vector<DrawCommand> commands_of(const DrawList& list, DrawKind kind) {
  std::vector<DrawCommand> found;
  std::ranges::copy_if(list.commands(), std::back_inserter(found),
                       [&](const DrawCommand& command) { return command.kind == kind; });
  return found;
}

DrawList drawn(const OverlayScene& scene, const OverlayStyle& style = {}, int width = 640,
               int height = 480) {
  const auto overlay = Overlay::create(style, width, height);
  EXPECT_TRUE(overlay);
  auto drawing = (*overlay)->draw(scene);
  EXPECT_TRUE(drawing) << drawing.error().message();
  return drawing->list;
}

std::vector<Label> labels(const std::vector<Detection>& objects, const OverlayStyle& style = {},
                          int width = 640, int height = 480) {
  return labels_of(drawn({.objects = objects}, style, width, height));
}

Detection object_at(float x, float y, float width, float height) {
  return {
      .label = "person", .confidence = 0.874f, .x = x, .y = y, .width = width, .height = height};
}

TEST(W01, GivenAnObject_WhenDrawn_ThenItsLabelStandsOnItsBox) {
  const auto got = labels({object_at(100, 200, 50, 120)});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].text, glyphs_of("person 87%", 64));
  EXPECT_EQ(got[0].ground.y1, 199) << "the line's outer edge";
  EXPECT_EQ(got[0].ground.x0, 99);
  EXPECT_EQ(got[0].color, color_of_label("person"));
}

TEST(W01, GivenBoxesAtTheEdges_WhenDrawn_ThenLabelsLieInsideThePicture) {
  for (const auto& [x, y, w, h] : {std::array{0.f, 0.f, 50.f, 50.f},
                                   {600.f, 3.f, 40.f, 20.f},
                                   {-30.f, -40.f, 90.f, 90.f},
                                   {635.f, 470.f, 50.f, 50.f},
                                   {-1e9f, -1e9f, 2e9f, 2e9f},
                                   {300.f, 1.f, 2.f, 478.f}}) {
    const auto got = labels({object_at(x, y, w, h)});
    ASSERT_EQ(got.size(), 1u) << x << "," << y;
    EXPECT_GE(got[0].ground.x0, 0);
    EXPECT_GE(got[0].ground.y0, 0);
    EXPECT_LE(got[0].ground.x1, 640);
    EXPECT_LE(got[0].ground.y1, 480);
    EXPECT_EQ(got[0].text, glyphs_of("person 87%", 64)) << "all of it";
  }
}

TEST(W01, GivenABoxThatDoesNotShow_WhenDrawn_ThenNothingIs) {
  for (const auto& [x, y] :
       {std::pair{700.f, 100.f}, {-200.f, 100.f}, {100.f, 500.f}, {100.f, -200.f}}) {
    EXPECT_TRUE(drawn({.objects = std::vector{object_at(x, y, 50, 50)}}).commands().empty());
  }
}

TEST(W01, GivenAPictureNarrowerThanALabel_WhenDrawn_ThenTheLabelIsCutToIt) {
  auto object = object_at(5, 40, 20, 20);
  object.label = std::string(10'000, 'w');
  const auto got = labels({object}, {}, 64, 64);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_GE(got[0].ground.x0, 0);
  EXPECT_LE(got[0].ground.x1, 64);
  EXPECT_GE(got[0].text.size(), 3u);
  EXPECT_LE(got[0].text.size(), 8u);
  EXPECT_TRUE(labels({object}, {}, 64, 8).empty()) << "no room for a line of text";
}

TEST(W01, GivenTracks_WhenDrawn_ThenIdsAreShownAndColoursAreTheirs) {
  auto object = object_at(100, 200, 50, 120);
  object.track_id = 42;
  auto same_class = object;
  same_class.track_id = 43;
  const auto got = labels({object, same_class});
  ASSERT_EQ(got.size(), 2u);
  // The surest is drawn last.
  EXPECT_EQ(got[1].text, glyphs_of("person #42 87%", 64));
  EXPECT_EQ(got[1].color, color_of_track(42));
  EXPECT_EQ(got[0].color, color_of_track(43));
  EXPECT_NE(got[0].color, got[1].color);
}

TEST(W01, GivenPartsThatAreNotWanted_WhenDrawn_ThenTheyAreNot) {
  auto object = object_at(100, 200, 50, 120);
  object.track_id = 42;
  object.keypoints.assign(17, {.x = 110, .y = 220, .confidence = 1});
  EXPECT_EQ(labels({object}, {.ids = false})[0].text, glyphs_of("person 87%", 64));
  EXPECT_EQ(labels({object}, {.confidences = false})[0].text, glyphs_of("person #42", 64));
  EXPECT_EQ(labels({object}, {.labels = false})[0].text, glyphs_of("#42 87%", 64));
  const OverlayStyle nothing{
      .boxes = false, .labels = false, .ids = false, .confidences = false, .skeletons = false};
  EXPECT_TRUE(drawn({.objects = std::vector{object}}, nothing).commands().empty());
  EXPECT_EQ(commands_of(drawn({.objects = std::vector{object}}, {.boxes = false}), DrawKind::kFrame)
                .size(),
            0u);
}

TEST(W01, GivenAPictureOfAnySize_WhenDrawn_ThenLinesAndLettersGrowWithIt) {
  const auto line_width = [](int width, int height) {
    return commands_of(
               drawn({.objects = std::vector{object_at(50, 50, 50, 50)}}, {}, width, height),
               DrawKind::kFrame)[0]
        .value;
  };
  EXPECT_EQ(line_width(128, 128), 1);
  EXPECT_EQ(line_width(768, 576), 2);
  EXPECT_EQ(line_width(1920, 1080), 3);
  EXPECT_EQ(line_width(2160, 3840), 6);
  const auto high = [](int width, int height) {
    const auto got = labels({object_at(50, 90, 50, 50)}, {}, width, height);
    return got[0].ground.y1 - got[0].ground.y0;
  };
  EXPECT_GT(high(1920, 1080), high(640, 480));
  EXPECT_GT(high(3840, 2160), high(1920, 1080));
}

TEST(W01, GivenATurnedBox_WhenDrawn_ThenItsSidesAre) {
  Detection object = object_at(60, 60, 80, 80);
  object.rotated = RotatedBox{.center_x = 100,
                              .center_y = 100,
                              .width = 60,
                              .height = 20,
                              .angle = std::numbers::pi_v<float> / 2};
  const auto sides = commands_of(drawn({.objects = std::vector{object}}), DrawKind::kStroke);
  ASSERT_EQ(sides.size(), 4u);
  // Turned by a quarter: 20 wide and 60 high.
  float low_x = 1e9f, high_x = 0, low_y = 1e9f, high_y = 0;
  for (const DrawCommand& side : sides) {
    const auto line = std::bit_cast<DrawStroke>(side.more);
    low_x = std::min(low_x, line.x0), high_x = std::max(high_x, line.x0);
    low_y = std::min(low_y, line.y0), high_y = std::max(high_y, line.y0);
    EXPECT_NEAR(std::hypot(line.x1 - line.x0, line.y1 - line.y0) / 40, 1, 0.51);
  }
  EXPECT_NEAR(low_x, 90, 1e-3);
  EXPECT_NEAR(high_x, 110, 1e-3);
  EXPECT_NEAR(low_y, 70, 1e-3);
  EXPECT_NEAR(high_y, 130, 1e-3);
}

/// A standing person, as COCO numbers the joints.
std::vector<Keypoint> person() {
  return {{100, 20, 1}, {103, 17, 1},  {97, 17, 1},  {106, 19, 1},  {94, 19, 1}, {112, 40, 1},
          {88, 40, 1},  {118, 60, 1},  {82, 60, 1},  {120, 80, 1},  {80, 80, 1}, {108, 90, 1},
          {92, 90, 1},  {109, 120, 1}, {91, 120, 1}, {110, 150, 1}, {90, 150, 1}};
}

TEST(W01, GivenACocoPerson_WhenDrawn_ThenLimbsJoinItsJoints) {
  Detection object = object_at(70, 10, 60, 150);
  object.keypoints = person();
  const auto strokes = commands_of(drawn({.objects = std::vector{object}}), DrawKind::kStroke);
  ASSERT_EQ(strokes.size(), 18u + 17u);
  const auto joins = [&](std::size_t a, std::size_t b) {
    return std::ranges::count_if(strokes, [&](const DrawCommand& command) {
      const auto line = std::bit_cast<DrawStroke>(command.more);
      return line.x0 == object.keypoints[a].x && line.y0 == object.keypoints[a].y &&
             line.x1 == object.keypoints[b].x && line.y1 == object.keypoints[b].y;
    });
  };
  // Shoulder to elbow to wrist and hip to knee to ankle on both sides, shoulders and hips across.
  for (const auto& [a, b] : std::vector<std::pair<std::size_t, std::size_t>>{{5, 7},
                                                                             {7, 9},
                                                                             {6, 8},
                                                                             {8, 10},
                                                                             {11, 13},
                                                                             {13, 15},
                                                                             {12, 14},
                                                                             {14, 16},
                                                                             {5, 6},
                                                                             {11, 12},
                                                                             {5, 11},
                                                                             {6, 12}}) {
    EXPECT_EQ(joins(a, b), 1) << a << "-" << b;
  }
}

TEST(W01, GivenHiddenJoints_WhenDrawn_ThenNeitherTheyNorTheirLimbsAre) {
  Detection object = object_at(70, 10, 60, 150);
  object.keypoints = person();
  object.keypoints[7].confidence = 0.1f;
  object.keypoints[9].confidence = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(commands_of(drawn({.objects = std::vector{object}}), DrawKind::kStroke).size(),
            16u + 15u);
  EXPECT_EQ(commands_of(drawn({.objects = std::vector{object}}, {.keypoint_threshold = 0.05f}),
                        DrawKind::kStroke)
                .size(),
            17u + 16u);
}

TEST(W01, GivenKeypointsOfAnotherKind_WhenDrawn_ThenOnlyThePointsAre) {
  Detection object = object_at(70, 10, 60, 150);
  object.keypoints = {{80, 20, 1}, {90, 30, 1}, {100, 25, 1}};
  EXPECT_EQ(commands_of(drawn({.objects = std::vector{object}}), DrawKind::kStroke).size(), 3u);
}

TEST(W01, GivenZones_WhenDrawn_ThenPolygonsCloseAndLinesDoNot) {
  const std::vector<OverlayZone> zones{
      {.name = "door", .corners = {{0.1f, 0.2f}, {0.5f, 0.25f}, {0.5f, 0.9f}}},
      {.name = "gate", .corners = {{0.2f, 0.5f}, {0.8f, 0.5f}}, .is_closed = false}};
  const auto list = drawn({.zones = zones});
  EXPECT_EQ(commands_of(list, DrawKind::kStroke).size(), 4u);
  const auto line = std::bit_cast<DrawStroke>(commands_of(list, DrawKind::kStroke)[0].more);
  EXPECT_FLOAT_EQ(line.x0, 64);
  EXPECT_FLOAT_EQ(line.y0, 96);
  const auto names = labels_of(list);
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0].text, glyphs_of("door", 64));
  EXPECT_EQ(names[1].text, glyphs_of("gate", 64));
  EXPECT_TRUE(drawn({.zones = zones}, {.zones = false}).commands().empty());
}

TEST(W01, GivenCountsOfZones_WhenDrawn_ThenTheyStandBehindTheNamesAndAreNotCutOff) {
  const std::string long_name(80, 'n');
  const std::vector<OverlayZone> zones{{.name = "door",
                                        .corners = {{0.1f, 0.2f}, {0.5f, 0.25f}, {0.5f, 0.9f}},
                                        .count = "3 (+5 -2)"},
                                       {.name = long_name,
                                        .corners = {{0.1f, 0.5f}, {0.8f, 0.5f}},
                                        .is_closed = false,
                                        .count = "+12 -34"}};
  const auto names = labels_of(drawn({.zones = zones}, {.text_size = 5}));
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0].text, glyphs_of("door: 3 (+5 -2)", 64));
  EXPECT_EQ(names[1].text, glyphs_of(std::string(55, 'n') + ": +12 -34", 64));
}

TEST(W01, GivenClassesOfTheWholePicture_WhenDrawn_ThenTheFirstAreWrittenBelowEachOther) {
  std::vector<Classification> classes;
  for (int i = 0; i < 9; ++i) {
    classes.push_back({.class_id = i, .label = "kind", .confidence = 0.9f - 0.1f * float(i)});
  }
  const auto got = labels_of(drawn({.classes = classes}));
  ASSERT_EQ(got.size(), 5u);
  EXPECT_EQ(got[0].text, glyphs_of("kind 90%", 64));
  for (std::size_t i = 1; i < got.size(); ++i) {
    EXPECT_EQ(got[i].ground.y0, got[i - 1].ground.y1);
    EXPECT_EQ(got[i].ground.x0, 0);
  }
}

TEST(W01, GivenColours_WhenAskedAgain_ThenTheyAreTheSameAndReadable) {
  EXPECT_EQ(color_of_label("person"), color_of_label("person"));
  EXPECT_NE(color_of_label("person"), color_of_label("car"));
  const auto luminance = [](DrawColor color) {
    // WCAG's relative luminance.
    const auto linear = [](int level) {
      const double part = level / 255.0;
      return part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(color.red) + 0.7152 * linear(color.green) + 0.0722 * linear(color.blue);
  };
  for (int id = 1; id <= 20; ++id) {
    const DrawColor ground = color_of_track(id);
    double light = luminance(ground), dark = luminance(ink_on(ground));
    if (light < dark) std::swap(light, dark);
    EXPECT_GE((light + 0.05) / (dark + 0.05), 3.0) << "WCAG's least contrast of large text, " << id;
    EXPECT_NE(ground, color_of_track(id + 1));
  }
}

TEST(V03, GivenPicturesToTheLimit_WhenAnOverlayIsMade_ThenLargerOnesAreRefused) {
  EXPECT_TRUE(Overlay::create({}, 4096, 4096));
  for (const auto& [width, height] : {std::pair{4098, 16}, {16, 4098}, {0, 16}, {16, -2}}) {
    const auto refused = Overlay::create({}, width, height);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message().find("1..4096"), std::string::npos);
  }
}

TEST(Overlay, GivenAStyleOutsideItsLimits_WhenMade_ThenTheNumberIsNamed) {
  EXPECT_NE(Overlay::create({.line_width = 65}, 64, 64).error().message().find("65"),
            std::string::npos);
  EXPECT_NE(Overlay::create({.text_size = 4}, 64, 64).error().message().find("4"),
            std::string::npos);
}

}  // namespace
}  // namespace penstock
