// SPDX-License-Identifier: Apache-2.0
#include "penstock/records/records.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <limits>

namespace penstock {
namespace {

TEST(JsonLine, GivenAFrameWithoutObjects_WhenWritten_ThenEveryKeyIsThere) {
  FrameResult result;
  result.source = "vtest.avi";
  result.frame = 7;
  result.pts_ns = 700000000;
  result.width = 768;
  result.height = 576;
  EXPECT_EQ(to_json_line(result),
            R"({"source":"vtest.avi","frame":7,"pts_ns":700000000,"width":768,"height":576,)"
            R"("objects":[]})");
}

TEST(JsonLine, GivenObjects_WhenWritten_ThenTheyFollowInOrder) {
  FrameResult result;
  result.source = "a \"b\"\n";
  result.objects = {{.class_id = 0,
                     .label = "person",
                     .confidence = 0.75f,
                     .x = 10.5f,
                     .y = 20,
                     .width = 30.25f,
                     .height = 40},
                    {.class_id = 56, .label = "\xff", .confidence = 0.5f}};
  EXPECT_EQ(
      to_json_line(result),
      R"({"source":"a \"b\"\n","frame":0,"pts_ns":-1,"width":0,"height":0,"objects":[)"
      R"({"label":"person","class_id":0,"confidence":0.75,"x":10.5,"y":20,"w":30.25,"h":40},)"
      "{\"label\":\"\xef\xbf\xbd\",\"class_id\":56,\"confidence\":0.5,\"x\":0,\"y\":0,\"w\":0,"
      "\"h\":0}]}");
}

TEST(JsonLine, GivenTrackedObjects_WhenWritten_ThenOnlyTheyHaveTheTrackersKeys) {
  FrameResult result;
  result.objects = {{.label = "a", .track_id = 9223372036854775807},
                    {.label = "b"},
                    {.label = "c", .track_id = 2, .predicted = true}};
  const std::string rest = R"(,"class_id":0,"confidence":0,"x":0,"y":0,"w":0,"h":0)";
  const std::string line = to_json_line(result);
  EXPECT_TRUE(line.ends_with(R"("objects":[{"label":"a")" + rest +
                             R"(,"track_id":9223372036854775807},{"label":"b")" + rest +
                             R"(},{"label":"c")" + rest + R"(,"track_id":2,"predicted":true}]})"))
      << line;
}

TEST(JsonLine, GivenPlacesThatWereCounted_WhenWritten_ThenTheyComeLast) {
  FrameResult result;
  result.classes = {{.class_id = 3, .label = "cat", .confidence = 0.5f}};
  result.zones = {{.name = "the \"mat\"", .inside = 2, .entered = 18446744073709551615u, .left = 3},
                  {.name = "door"}};
  result.lines = {{.name = "gate", .forwards = 4, .backwards = 5}};
  EXPECT_EQ(to_json_line(result),
            R"({"source":"","frame":0,"pts_ns":-1,"width":0,"height":0,"objects":[],)"
            R"("classes":[{"label":"cat","class_id":3,"confidence":0.5}],)"
            R"("zones":[{"name":"the \"mat\"","inside":2,"entered":18446744073709551615,"left":3},)"
            R"({"name":"door","inside":0,"entered":0,"left":0}],)"
            R"("lines":[{"name":"gate","forwards":4,"backwards":5}]})");
}

TEST(JsonLine, GivenASecondStagesFindings_WhenWritten_ThenObjectsHaveThemByModel) {
  FrameResult result;
  Attributes color;
  color.model = "color";
  color.classes = {{.class_id = 1, .label = "red", .confidence = 0.5f}};
  Attributes face;
  face.model = "face \"v2\"";
  face.age = 7;
  face.embedding = {0.25f, -1};
  result.objects = {{.label = "car", .attributes = {color, face}}, {.label = "plate", .parent = 0}};
  const std::string rest = R"(,"class_id":0,"confidence":0,"x":0,"y":0,"w":0,"h":0)";
  const std::string line = to_json_line(result);
  EXPECT_TRUE(line.ends_with(
      R"("objects":[{"label":"car")" + rest +
      R"(,"attributes":[{"model":"color","classes":[{"label":"red","class_id":1,"confidence":0.5}]},)"
      R"({"model":"face \"v2\"","age":7,"embedding":[0.25,-1]}]},)"
      R"({"label":"plate")" +
      rest + R"(,"parent":0}]})"))
      << line;
}

TEST(JsonLine, GivenALaterModelsWordOnTheWholeFrame_WhenWritten_ThenItIsKeptApartFromTheFirsts) {
  FrameResult result;
  result.classes = {{.class_id = 3, .label = "cat", .confidence = 0.5f}};
  Attributes scene;
  scene.model = "scene";
  scene.classes = {{.class_id = 1, .label = "street", .confidence = 0.25f}};
  result.attributes = {scene};
  EXPECT_EQ(to_json_line(result),
            R"({"source":"","frame":0,"pts_ns":-1,"width":0,"height":0,"objects":[],)"
            R"("classes":[{"label":"cat","class_id":3,"confidence":0.5}],)"
            R"("attributes":[{"model":"scene","classes":)"
            R"([{"label":"street","class_id":1,"confidence":0.25}]}]})");
}

TEST(JsonLine, GivenTheOtherTasksFindings_WhenWritten_ThenTheirKeysFollow) {
  FrameResult result;
  result.objects = {{.label = "person",
                     .keypoints = {{.x = 1, .y = -2.5f, .confidence = 1}, {}},
                     .rotated = RotatedBox{.center_x = 1, .center_y = 2, .width = 3, .height = 4}},
                    {.label = "car"}};
  result.classes = {{.class_id = 3, .label = "cat", .confidence = 0.5f}};
  result.areas = {{.class_id = 1, .label = "road", .fraction = 0.25f}};
  result.texts = {{.text = "GATE \"B\" \xc3\xa9", .confidence = 0.75f}};
  result.embedding = {0.5f, std::numeric_limits<float>::infinity()};
  result.tensors = {
      {.name = "out", .shape = {1, 3}, .values = {1, double{0.1f}, 9007199254740991.0}}};
  EXPECT_EQ(to_json_line(result),
            R"({"source":"","frame":0,"pts_ns":-1,"width":0,"height":0,"objects":[)"
            R"({"label":"person","class_id":0,"confidence":0,"x":0,"y":0,"w":0,"h":0,)"
            R"("rotated":{"cx":1,"cy":2,"w":3,"h":4,"angle":0},)"
            R"("keypoints":[{"x":1,"y":-2.5,"confidence":1},{"x":0,"y":0,"confidence":0}]},)"
            R"({"label":"car","class_id":0,"confidence":0,"x":0,"y":0,"w":0,"h":0}],)"
            R"("classes":[{"label":"cat","class_id":3,"confidence":0.5}],)"
            "\"texts\":[{\"text\":\"GATE \\\"B\\\" \xc3\xa9\",\"confidence\":0.75}],"
            R"("areas":[{"label":"road","class_id":1,"fraction":0.25}],"embedding":[0.5,null],)"
            R"("tensors":[{"name":"out","shape":[1,3],"values":[1,0.1,9007199254740991]}]})");
}

TEST(JsonLine, GivenThreeHundredObjects_WhenWritten_ThenAnotherParserCountsThemOnOneLine) {
  FrameResult result;
  for (int i = 0; i < 300; ++i) {
    result.objects.push_back({.class_id = i, .label = "x", .confidence = 1.0f / float(i + 1)});
  }
  const std::string line = to_json_line(result);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  ASSERT_EQ(parser.parse(line).get(document), simdjson::SUCCESS);
  simdjson::dom::array objects;
  ASSERT_EQ(document["objects"].get(objects), simdjson::SUCCESS);
  ASSERT_EQ(objects.size(), 300u);
  double confidence = 0;
  ASSERT_EQ(objects.at(6)["confidence"].get(confidence), simdjson::SUCCESS);
  EXPECT_FLOAT_EQ(static_cast<float>(confidence), 1.0f / 7);
}

}  // namespace
}  // namespace penstock
