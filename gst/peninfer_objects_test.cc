// SPDX-License-Identifier: Apache-2.0
//
// peninfer as a second stage: what it says of the objects that a frame's metadata has, and where.
#include <gmock/gmock.h>
#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gst/keypoints_mtd.h"
#include "gst/object_choice.h"
#include "gst/testing/object_fixture.h"

namespace penstock::gst {
namespace {

using model_testing::BoxLayout;
using model_testing::PictureReader;
using ::testing::ElementsAre;
using ::testing::Values;

/// A red, a green and a blue car.
std::vector<Spot> three_cars() {
  return {
      {0, 16, 16, 48, "car", 0.9f}, {1, 112, 96, 48, "car", 0.8f}, {2, 240, 160, 48, "car", 0.7f}};
}

// ---- G01 ----

class G01 : public ObjectFixture {};

TEST_P(G01, GivenObjectsOfThreeColors_WhenClassified_ThenEachIsRelatedToItsOwnClasses) {
  play_stage(color_reader());
  const BufferPtr out = through(frame_of(three_cars()));
  const auto objects = objects_of(out.get());
  ASSERT_EQ(objects.size(), 3u);
  const char* const colors[] = {"red", "green", "blue"};
  for (std::size_t i = 0; i < 3; ++i) {
    // Contained, and related to, which is where objectdetectionoverlay looks.
    for (const GstAnalyticsRelTypes relation :
         {GST_ANALYTICS_REL_TYPE_CONTAIN, GST_ANALYTICS_REL_TYPE_RELATE_TO}) {
      const auto classes = related(objects[i], relation, gst_analytics_cls_mtd_get_mtd_type());
      ASSERT_EQ(classes.size(), 1u);
      EXPECT_EQ(gst_analytics_cls_mtd_get_length(&classes[0]), 3u);
      EXPECT_STREQ(g_quark_to_string(gst_analytics_cls_mtd_get_quark(&classes[0], 0)), colors[i]);
      EXPECT_GT(gst_analytics_cls_mtd_get_level(&classes[0], 0), 0.9f);
      EXPECT_EQ(
          gst_analytics_relation_meta_get_relation(classes[0].meta, classes[0].id, objects[i].id),
          GST_ANALYTICS_REL_TYPE_IS_PART_OF);
    }
  }
  EXPECT_THAT(colors_of(out.get()), ElementsAre("red", "green", "blue"));
  const auto& said = read_analysis(out.get())->result.objects[1].attributes;
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].model, to_string(PictureReader::kCenterLogits));
}

TEST_P(G01, GivenAnEmbeddingModel_WhenObjectsAreLookedAt_ThenEachContainsItsVector) {
  play_stage(reader(PictureReader::kMeanEmbedding));
  const BufferPtr out = through(frame_of(three_cars()));
  const auto objects = objects_of(out.get());
  ASSERT_EQ(objects.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto tensors = related(objects[i], GST_ANALYTICS_REL_TYPE_CONTAIN,
                                 gst_analytics_tensor_mtd_get_mtd_type());
    ASSERT_EQ(tensors.size(), 1u);
    const GstTensor* tensor = gst_analytics_tensor_mtd_get_tensor(&tensors[0]);
    EXPECT_STREQ(g_quark_to_string(tensor->id), "penstock-embedding");
    const gsize dims[] = {3};
    ASSERT_TRUE(gst_tensor_check_type(tensor, GST_TENSOR_DATA_TYPE_FLOAT32,
                                      GST_TENSOR_DIM_ORDER_ROW_MAJOR, 1, dims));
    float values[3];
    ASSERT_EQ(gst_buffer_extract(tensor->data, 0, values, sizeof values), sizeof values);
    for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(values[k], i == k ? 1 : 0, 0.05) << i << k;
  }
}

TEST_P(G01, GivenAPoseModel_WhenObjectsAreLookedAt_ThenTheirKeypointsAreInTheFramesPixels) {
  play_stage(finder(BoxLayout::kYolov8Pose));
  // A region of 80 x 80, twice as large in the model's input.
  const Spot person{0, 116, 76, 48, "person", 0.9f, {}, 16};
  const BufferPtr out = through(frame_of({person}));
  const auto objects = objects_of(out.get());
  ASSERT_EQ(objects.size(), 1u) << "keypoints are the object's, not another object's";
  const auto parts = related(objects[0], GST_ANALYTICS_REL_TYPE_CONTAIN, keypoints_mtd_type());
  ASSERT_EQ(parts.size(), 1u);
  const auto read = read_keypoints(parts[0]);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->frame_width, kPictureWidth);
  const int count = keypoints_of(BoxLayout::kYolov8Pose);
  ASSERT_EQ(read->keypoints.size(), static_cast<std::size_t>(count));
  for (int k = 0; k < count; ++k) {
    const auto place = model_testing::keypoint_place(count, k);
    const Keypoint& at = read->keypoints[static_cast<std::size_t>(k)];
    EXPECT_NEAR(at.x, 116 + place.x * 48, 1) << k;
    EXPECT_NEAR(at.y, 76 + place.y * 48, 1) << k;
  }
  EXPECT_EQ(read_analysis(out.get())->result.objects[0].keypoints.size(),
            static_cast<std::size_t>(count));
}

INSTANTIATE_TEST_SUITE_P(cpu, G01, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, G01, Values("sim"));

// ---- P05 ----

class P05 : public ObjectFixture {};

TEST_P(P05, GivenAnObjectAtOddPixels_WhenSomethingIsFoundInIt_ThenItsBoxIsExactInTheFrame) {
  play_stage(finder(BoxLayout::kYolov8));
  // The box of the object is grown by a pixel on each side, to (100, 60)-(180, 140).
  BufferPtr in = picture({{2, 116, 76, 48}}, 0);
  GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(in.get());
  GstAnalyticsODMtd car;
  gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string("car"), 101, 61, 78, 78, 0.9f,
                                         &car);
  const BufferPtr out = through(std::move(in));
  const auto objects = objects_of(out.get());
  ASSERT_EQ(objects.size(), 2u);
  gint x = 0, y = 0, width = 0, height = 0;
  gfloat confidence = 0;
  gst_analytics_od_mtd_get_location(&objects[1], &x, &y, &width, &height, &confidence);
  EXPECT_EQ(x, 116);
  EXPECT_EQ(y, 76);
  EXPECT_EQ(width, 48);
  EXPECT_EQ(height, 48);
  EXPECT_EQ(gst_analytics_relation_meta_get_relation(objects[0].meta, objects[0].id, objects[1].id),
            GST_ANALYTICS_REL_TYPE_CONTAIN);
  EXPECT_EQ(gst_analytics_relation_meta_get_relation(objects[0].meta, objects[1].id, objects[0].id),
            GST_ANALYTICS_REL_TYPE_IS_PART_OF);
  const auto& told = read_analysis(out.get())->result.objects;
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].parent, -1);
  EXPECT_EQ(told[1].parent, 0);
  EXPECT_EQ(told[1].class_id, 2);
}

TEST_P(P05, GivenSmallSquares_WhenLookedAtInTiles_ThenEachIsToldOnceAndExactlyInItsPlace) {
  // Tiles of 160 x 160, the model's size, three in a row and two in a column.
  play({finder(BoxLayout::kYolov8), "roi=tiles", "tiles=3x2", "tile-overlap=50", "batch-size=4"});
  send_caps(CapsPtr(gst_caps_from_string(picture_caps().c_str())));
  // In one tile, in two, in all that overlap in the middle, and cut by the tiles' edges.
  const std::vector<Spot> squares{{0, 8, 8, 24},     {1, 96, 16, 24},  {2, 96, 104, 24},
                                  {0, 152, 152, 24}, {1, 232, 72, 24}, {2, 288, 208, 24}};
  const BufferPtr out = through(picture(squares, 0));
  const auto analysis = share_analysis(out.get());
  ASSERT_NE(analysis, nullptr);
  std::vector<std::string> found, drawn;
  for (const Detection& object : analysis->result.objects) {
    found.push_back(str_format("{} at {},{} {}x{}", object.class_id, object.x, object.y,
                               object.width, object.height));
  }
  for (const Spot& square : squares) {
    drawn.push_back(str_format("{} at {},{} {}x{}", square.color, square.x, square.y, square.side,
                               square.side));
  }
  EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(drawn));
  EXPECT_EQ(objects_of(out.get()).size(), squares.size());
  EXPECT_EQ(stat("inferred"), 1u);
  EXPECT_EQ(batched(), 6u) << "a batch of four tiles and one of two";
}

TEST_P(P05, GivenTilesThatCantBe_WhenStarted_ThenTheErrorNamesTheProperty) {
  for (const auto& [properties, cause] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{finder(BoxLayout::kYolov8), "tiles=3"}, "property 'tiles' is '3'"},
           {{finder(BoxLayout::kYolov8), "tiles=3x"}, "property 'tiles' is '3x'"},
           {{finder(BoxLayout::kYolov8), "tiles=3x2x1"}, "property 'tiles' is '3x2x1'"},
           {{finder(BoxLayout::kYolov8), "tiles=0x2"}, "0x2 tiles"},
           {{finder(BoxLayout::kYolov8), "tiles=17x1"}, "17x1 tiles"},
           {{color_reader()}, "task 'detection'; the model's is 'classification'"}}) {
    std::vector<std::string> all = properties;
    all.push_back("roi=tiles");
    const GstPtr<GstElement> element = make_element(all);
    EXPECT_EQ(gst_element_set_state(element.get(), GST_STATE_READY), GST_STATE_CHANGE_FAILURE);
    const auto said = errors();
    ASSERT_EQ(said.size(), 1u);
    EXPECT_THAT(said[0], ::testing::HasSubstr(cause));
    gst_element_set_state(element.get(), GST_STATE_NULL);
  }
}

INSTANTIATE_TEST_SUITE_P(cpu, P05, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P05, Values("sim"));

// ---- V10 ----

TEST(V10, GivenBoxesOfObjects_WhenTheirRegionsAreTaken_ThenTheyAreTheLeastEvenOnesAround) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> place(-60, 360), length(0.1f, 200);
  int inside = 0;
  for (int i = 0; i < 20000; ++i) {
    Detection object;
    object.x = place(random);
    object.y = place(random);
    object.width = length(random);
    object.height = length(random);
    const auto region = region_of(object, 320, 240);
    const bool visible = object.x < 320 && object.y < 240 && object.x + object.width > 0 &&
                         object.y + object.height > 0;
    ASSERT_EQ(region.has_value(), visible) << object.x << " " << object.y;
    if (!region) continue;
    ++inside;
    EXPECT_EQ((region->x | region->y | region->width | region->height) & 1, 0);
    const float edges[][2] = {
        {std::max(object.x, 0.0f), float(region->x)},
        {std::max(object.y, 0.0f), float(region->y)},
        {float(region->x + region->width), std::min(object.x + object.width, 320.0f)},
        {float(region->y + region->height), std::min(object.y + object.height, 240.0f)}};
    for (const auto& edge : edges) {
      EXPECT_GE(edge[0], edge[1]) << "the object is within";
      EXPECT_LT(edge[0], edge[1] + 2) << "and no even edge is nearer";
    }
  }
  EXPECT_GT(inside, 1000);
}

TEST(V10, GivenWhatNoPictureHas_WhenItsRegionIsTaken_ThenThereIsNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float huge = std::numeric_limits<float>::max();
  for (const auto& [x, y, width, height] : std::vector<std::tuple<float, float, float, float>>{
           {nan, 0, 10, 10},
           {0, nan, 10, 10},
           {0, 0, nan, 10},
           {0, 0, 10, std::numeric_limits<float>::infinity()},
           {0, 0, -10, 10},
           {0, 0, 0, 10},
           {320, 0, 10, 10},
           {-10, 0, 10, 10},
           {huge, huge, huge, huge}}) {
    Detection object;
    object.x = x;
    object.y = y;
    object.width = width;
    object.height = height;
    EXPECT_FALSE(region_of(object, 320, 240)) << x << " " << y << " " << width << " " << height;
  }
  const auto whole = region_of({.x = -1e9f, .y = -1e9f, .width = 2e9f, .height = 2e9f}, 320, 240);
  ASSERT_TRUE(whole);
  EXPECT_EQ(*whole, (RectI{0, 0, 320, 240}));
}

// ---- G02 ----

class G02 : public ObjectFixture {};

TEST_P(G02, GivenAFirstStagesAnalysis_WhenObjectsAreClassified_ThenOneAnalysisHasBoth) {
  play_stage(color_reader());
  const auto first = std::make_shared<Analysis>();
  first->result.source = "camera";
  first->result.frame = 77;
  first->result.objects = {{.class_id = 5,
                            .label = "car",
                            .confidence = 0.9f,
                            .x = 16.25f,
                            .y = 16,
                            .width = 47.5f,
                            .height = 48},
                           {.class_id = 5,
                            .label = "car",
                            .confidence = 0.8f,
                            .x = 112,
                            .y = 96,
                            .width = 48,
                            .height = 48}};
  auto spots = three_cars();
  spots.pop_back();
  BufferPtr in = frame_of(spots);
  attach_analysis(in.get(), first);
  const BufferPtr out = through(std::move(in));
  const auto both = share_analysis(out.get());
  ASSERT_NE(both, nullptr);
  EXPECT_EQ(both->result.source, "camera");
  EXPECT_EQ(both->result.frame, 77u);
  ASSERT_EQ(both->result.objects.size(), 2u);
  EXPECT_EQ(both->result.objects[0].x, 16.25f) << "the first stage's precision";
  EXPECT_EQ(both->result.objects[0].class_id, 5);
  EXPECT_THAT(colors_of(out.get()), ElementsAre("red", "green"));
  EXPECT_TRUE(first->result.objects[0].attributes.empty()) << "others may share it";
  int analyses = 0;
  gpointer state = nullptr;
  while (GstMeta* meta = gst_buffer_iterate_meta(out.get(), &state)) {
    analyses += g_str_equal(g_type_name(meta->info->type), "PenAnalysisMeta");
  }
  EXPECT_EQ(analyses, 1);
}

TEST_P(G02, GivenRecordsThatSomebodyMoved_WhenObjectsAreClassified_ThenTheyCountAndNotTheAnalysis) {
  play_stage(color_reader());
  auto spots = three_cars();
  spots.pop_back();
  // Of before they were exchanged: as many, of the same label, at each other's place.
  const auto stale = std::make_shared<Analysis>();
  for (const Spot& spot : {spots[1], spots[0]}) {
    stale->result.objects.push_back({.class_id = 5,
                                     .label = "car",
                                     .confidence = 0.9f,
                                     .x = float(spot.x),
                                     .y = float(spot.y),
                                     .width = float(spot.side),
                                     .height = float(spot.side)});
  }
  BufferPtr in = frame_of(spots);
  attach_analysis(in.get(), stale);
  const BufferPtr out = through(std::move(in));
  EXPECT_THAT(colors_of(out.get()), ElementsAre("red", "green"));
  const Analysis* told = read_analysis(out.get());
  ASSERT_EQ(told->result.objects.size(), 2u);
  EXPECT_EQ(told->result.objects[0].x, float(spots[0].x));
}

int analyses_on(GstBuffer* buffer) {
  int analyses = 0;
  gpointer state = nullptr;
  while (GstMeta* meta = gst_buffer_iterate_meta(buffer, &state)) {
    analyses += g_str_equal(g_type_name(meta->info->type), "PenAnalysisMeta");
  }
  return analyses;
}

/// Of a detector that found the cars and a mood.
std::shared_ptr<Analysis> first_stage() {
  auto first = std::make_shared<Analysis>();
  first->result.source = "camera";
  first->result.classes = {{.class_id = 7, .label = "busy", .confidence = 0.5f}};
  for (const Spot& spot : three_cars()) {
    first->result.objects.push_back({.label = "car",
                                     .confidence = spot.confidence,
                                     .x = float(spot.x) + 0.25f,
                                     .y = float(spot.y),
                                     .width = 48,
                                     .height = 48,
                                     .track_id = 4});
  }
  return first;
}

TEST_P(G02, GivenAFirstStage_WhenAnotherLooksAtTheWholeFrame_ThenOneAnalysisHasBothWords) {
  play_stage(color_reader(), {"roi=full-frame"});
  BufferPtr in = frame_of(three_cars());
  const auto first = first_stage();
  attach_analysis(in.get(), first);
  const BufferPtr out = through(std::move(in));
  EXPECT_EQ(analyses_on(out.get()), 1);
  const auto both = share_analysis(out.get());
  ASSERT_NE(both, nullptr);
  EXPECT_EQ(both->result.source, "camera");
  ASSERT_EQ(both->result.objects.size(), 3u);
  EXPECT_EQ(both->result.objects[0].x, 16.25f);
  EXPECT_EQ(both->result.objects[2].track_id, 4);
  ASSERT_EQ(both->result.classes.size(), 1u);
  EXPECT_EQ(both->result.classes[0].label, "busy") << "the first's own";
  ASSERT_EQ(both->result.attributes.size(), 1u);
  EXPECT_EQ(both->result.attributes[0].model, to_string(PictureReader::kCenterLogits));
  EXPECT_EQ(both->result.attributes[0].classes.size(), 3u);
  EXPECT_TRUE(first->result.attributes.empty()) << "others may share it";
}

TEST_P(G02, GivenAFirstStage_WhenAnotherFindsObjectsInTiles_ThenTheyStandBehindTheFirsts) {
  // Tiles of the model's size; it finds squares of three of its strides, and of the cars what tiles
  // cut.
  play_stage(finder(BoxLayout::kYolov8), {"roi=tiles", "tiles=3x2", "tile-overlap=50"});
  auto spots = three_cars();
  spots.push_back({1, 232, 72, 24});
  spots.push_back({2, 96, 16, 24});
  BufferPtr in = frame_of(spots);
  attach_analysis(in.get(), first_stage());
  const BufferPtr out = through(std::move(in));
  EXPECT_EQ(analyses_on(out.get()), 1);
  const auto both = share_analysis(out.get());
  ASSERT_NE(both, nullptr);
  const auto& objects = both->result.objects;
  ASSERT_GE(objects.size(), 5u);
  EXPECT_EQ(objects.size(), objects_of(out.get()).size()) << "as many as there are records";
  for (std::size_t i = 0; i < objects.size(); ++i) {
    EXPECT_EQ(objects[i].track_id, i < 3 ? 4 : 0);
    EXPECT_EQ(objects[i].label == "car", i < 3);
  }
  std::vector<std::string> found;
  for (std::size_t i = 3; i < objects.size(); ++i) {
    found.push_back(str_format("{} at {},{}", objects[i].class_id, objects[i].x, objects[i].y));
  }
  EXPECT_THAT(found, ::testing::IsSupersetOf({"1 at 232,72", "2 at 96,16"}));
}

TEST_P(G02, GivenRecordsThatTheFirstStageKnowsNotOf_WhenAnotherFollows_ThenEachKeepsItsOwnWord) {
  play_stage(color_reader(), {"roi=full-frame"});
  BufferPtr in = frame_of(three_cars());
  auto first = first_stage();
  first->result.objects.pop_back();
  attach_analysis(in.get(), first);
  const BufferPtr out = through(std::move(in));
  EXPECT_EQ(analyses_on(out.get()), 2);
  const auto latest = share_analysis(out.get());
  EXPECT_TRUE(latest->result.objects.empty());
  EXPECT_EQ(latest->result.classes.size(), 3u);
}

TEST_P(G02, GivenASegmenter_WhenObjectsAreLookedAt_ThenEachHasItsOwnMapOnTheDevice) {
  play_stage(reader(PictureReader::kColorScores));
  const BufferPtr out = through(frame_of(three_cars()));
  const auto analysis = share_analysis(out.get());
  ASSERT_NE(analysis, nullptr);
  ASSERT_EQ(analysis->object_device.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const ObjectDeviceFindings& left = analysis->object_device[i];
    EXPECT_EQ(left.object, i);
    ASSERT_TRUE(left.device.class_map);
    EXPECT_EQ(left.device.letterbox.crop, (RectI{three_cars()[i].x, three_cars()[i].y, 48, 48}));
    const auto& areas = analysis->result.objects[i].attributes.at(0).areas;
    ASSERT_FALSE(areas.empty());
    EXPECT_EQ(areas[0].class_id, static_cast<int>(i) + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(cpu, G02, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, G02, Values("sim"));

// ---- P04 ----

class P04 : public ObjectFixture {};

TEST_P(P04, GivenAFrameOfWhichTheModelSaysNothing_WhenInferred_ThenItIsCountedAndTheStreamGoesOn) {
  // The mean of a black picture has length 0, and no direction. Square ones have no grey border.
  play({reader(PictureReader::kMeanEmbedding)});
  constexpr std::size_t kPixels = std::size_t{kFrameSide} * kFrameSide;
  std::vector<std::byte> black(kPixels * 3 / 2, std::byte{128});
  std::fill_n(black.begin(), kPixels, std::byte{16});
  for (int frame = 0; frame < 3; ++frame) {
    const BufferPtr dark = through(make_buffer(black, pts(2 * frame)));
    ASSERT_NE(dark, nullptr);
    ASSERT_NE(read_analysis(dark.get()), nullptr) << "it was looked at";
    EXPECT_TRUE(read_analysis(dark.get())->result.embedding.empty());
    const BufferPtr lit = through(make_frame(pts(2 * frame + 1)));
    ASSERT_NE(lit, nullptr);
    EXPECT_EQ(read_analysis(lit.get())->result.embedding.size(), 3u);
  }
  EXPECT_EQ(stat("inferred"), 6u);
  EXPECT_EQ(stat("unusable"), 3u);
  std::vector<std::string> warnings;
  while (GstMessage* raw = gst_bus_pop(bus_.get())) {
    const GstPtr<GstMessage> message(raw);
    EXPECT_NE(GST_MESSAGE_TYPE(raw), GST_MESSAGE_ERROR);
    if (GST_MESSAGE_TYPE(raw) != GST_MESSAGE_WARNING) continue;
    GError* said = nullptr;
    gst_message_parse_warning(raw, &said, nullptr);
    warnings.emplace_back(said->message);
    g_error_free(said);
  }
  ASSERT_EQ(warnings.size(), 1u) << "the others are in the stats";
  EXPECT_NE(warnings[0].find("an embedding of length 0"), std::string::npos) << warnings[0];
}

INSTANTIATE_TEST_SUITE_P(cpu, P04, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P04, Values("sim"));

}  // namespace
}  // namespace penstock::gst
