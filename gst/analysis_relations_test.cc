// SPDX-License-Identifier: Apache-2.0
//
// Contract G01: what is attached is read back with the stock API of GstAnalytics.
#include "gst/analysis_relations.h"

#include <gst/analytics/analytics.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numbers>
#include <vector>

#include "gst/gst_ptr.h"
#include "gst/keypoints_mtd.h"

namespace penstock::gst {
namespace {

BufferPtr buffer_with(const FrameResult& result) {
  BufferPtr buffer(gst_buffer_new_allocate(nullptr, 64, nullptr));
  const auto attached = attach_relations(buffer.get(), result);
  EXPECT_TRUE(attached) << attached.error().message();
  return buffer;
}

FrameResult frame_with(std::vector<Detection> objects) {
  FrameResult result;
  result.width = 200;
  result.height = 100;
  result.objects = std::move(objects);
  return result;
}

std::vector<GstAnalyticsMtd> records_of(GstBuffer* buffer, GstAnalyticsMtdType type) {
  std::vector<GstAnalyticsMtd> records;
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  EXPECT_NE(meta, nullptr);
  if (meta == nullptr) return records;
  gpointer state = nullptr;
  GstAnalyticsMtd record;
  while (gst_analytics_relation_meta_iterate(meta, &state, type, &record)) {
    records.push_back(record);
  }
  return records;
}

std::vector<GstAnalyticsMtd> parts_of(const GstAnalyticsMtd& object, GstAnalyticsMtdType type) {
  std::vector<GstAnalyticsMtd> parts;
  gpointer state = nullptr;
  GstAnalyticsMtd part;
  while (gst_analytics_relation_meta_get_direct_related(
      object.meta, object.id, GST_ANALYTICS_REL_TYPE_CONTAIN, type, &state, &part)) {
    parts.push_back(part);
  }
  return parts;
}

std::vector<float> values_of(const GstTensor& tensor) {
  std::vector<float> values(gst_buffer_get_size(tensor.data) / sizeof(float));
  gst_buffer_extract(tensor.data, 0, values.data(), values.size() * sizeof(float));
  return values;
}

TEST(G01, GivenATurnedBox_WhenReadWithTheStockApi_ThenItIsTheBoxBeforeTurningAndTheAngle) {
  const float pi = std::numbers::pi_v<float>;
  for (const auto& [angle, wanted] :
       {std::pair{0.5f, 0.5f}, {-0.5f, 2 * pi - 0.5f}, {3 * pi, pi}, {0.0f, 0.0f}}) {
    const BufferPtr buffer = buffer_with(frame_with(
        {{.class_id = 1,
          .label = "ship",
          .confidence = 0.75f,
          .x = 70,
          .y = 20,
          .width = 60,
          .height = 60,
          .rotated = RotatedBox{
              .center_x = 100, .center_y = 50, .width = 60, .height = 20, .angle = angle}}}));
    const auto objects = records_of(buffer.get(), gst_analytics_od_mtd_get_mtd_type());
    ASSERT_EQ(objects.size(), 1u);
    gint x = 0, y = 0, width = 0, height = 0;
    gfloat turned = 0, confidence = 0;
    ASSERT_TRUE(gst_analytics_od_mtd_get_oriented_location(&objects[0], &x, &y, &width, &height,
                                                           &turned, &confidence));
    EXPECT_EQ(x, 70);
    EXPECT_EQ(y, 40);
    EXPECT_EQ(width, 60);
    EXPECT_EQ(height, 20);
    EXPECT_NEAR(turned, wanted, 1e-5);
    EXPECT_FLOAT_EQ(confidence, 0.75f);
    EXPECT_STREQ(g_quark_to_string(gst_analytics_od_mtd_get_obj_type(&objects[0])), "ship");
  }
}

TEST(G01, GivenClasses_WhenReadWithTheStockApi_ThenOneRecordHoldsThemInOrder) {
  FrameResult result = frame_with({});
  result.classes = {{.class_id = 3, .label = "cat", .confidence = 0.75f},
                    {.class_id = 1, .label = "dog", .confidence = 0.125f}};
  const BufferPtr buffer = buffer_with(result);
  const auto records = records_of(buffer.get(), gst_analytics_cls_mtd_get_mtd_type());
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(gst_analytics_relation_get_length(records[0].meta), 1u);
  ASSERT_EQ(gst_analytics_cls_mtd_get_length(&records[0]), 2u);
  EXPECT_STREQ(g_quark_to_string(gst_analytics_cls_mtd_get_quark(&records[0], 0)), "cat");
  EXPECT_FLOAT_EQ(gst_analytics_cls_mtd_get_level(&records[0], 0), 0.75f);
  EXPECT_STREQ(g_quark_to_string(gst_analytics_cls_mtd_get_quark(&records[0], 1)), "dog");
  EXPECT_FLOAT_EQ(gst_analytics_cls_mtd_get_level(&records[0], 1), 0.125f);
}

TEST(G01, GivenPoses_WhenReadWithTheStockApi_ThenEachObjectContainsItsOwnTensor) {
  std::vector<Detection> people(2);
  for (int person = 0; person < 2; ++person) {
    people[std::size_t(person)].label = "person";
    people[std::size_t(person)].width = people[std::size_t(person)].height = 10;
    for (int i = 0; i < 17; ++i) {
      people[std::size_t(person)].keypoints.push_back(
          {.x = float(100 * person + i), .y = float(-i), .confidence = float(i) / 16});
    }
  }
  people.push_back({.label = "car", .width = 5, .height = 5});
  BufferPtr buffer = buffer_with(frame_with(people));
  // Also on a copy that outlives the original.
  for (int copies = 0; copies < 2; ++copies) {
    const auto objects = records_of(buffer.get(), gst_analytics_od_mtd_get_mtd_type());
    ASSERT_EQ(objects.size(), 3u);
    EXPECT_TRUE(parts_of(objects[2], GST_ANALYTICS_MTD_TYPE_ANY).empty());
    for (std::size_t person = 0; person < 2; ++person) {
      SCOPED_TRACE(person);
      const auto parts = parts_of(objects[person], gst_analytics_tensor_mtd_get_mtd_type());
      ASSERT_EQ(parts.size(), 1u);
      EXPECT_EQ(
          gst_analytics_relation_meta_get_relation(parts[0].meta, parts[0].id, objects[person].id),
          GST_ANALYTICS_REL_TYPE_IS_PART_OF);
      const GstTensor* tensor = gst_analytics_tensor_mtd_get_tensor(&parts[0]);
      ASSERT_NE(tensor, nullptr);
      EXPECT_STREQ(g_quark_to_string(tensor->id), "penstock-keypoints");
      const gsize dims[] = {17, 3};
      ASSERT_TRUE(gst_tensor_check_type(tensor, GST_TENSOR_DATA_TYPE_FLOAT32,
                                        GST_TENSOR_DIM_ORDER_ROW_MAJOR, 2, dims));
      const auto values = values_of(*tensor);
      ASSERT_EQ(values.size(), 51u);
      // Parts of a frame of 200 x 100.
      EXPECT_FLOAT_EQ(values[15], (100 * float(person) + 5) / 200);
      EXPECT_FLOAT_EQ(values[16], -0.05f);
      EXPECT_FLOAT_EQ(values[17], 5.0f / 16);
      EXPECT_FLOAT_EQ(values[48], (100 * float(person) + 16) / 200);
    }
    buffer = BufferPtr(gst_buffer_copy(buffer.get()));
  }
}

TEST(G01, GivenPoses_WhenReadAsThePrivateType_ThenTheyArePixelsOfTheSaidFrame) {
  const BufferPtr buffer = buffer_with(
      frame_with({{.label = "person", .keypoints = {{.x = 10.5f, .y = 20, .confidence = 1}, {}}}}));
  const auto objects = records_of(buffer.get(), gst_analytics_od_mtd_get_mtd_type());
  ASSERT_EQ(objects.size(), 1u);
  EXPECT_FALSE(read_keypoints(objects[0])) << "not of that type";
  const auto parts = parts_of(objects[0], keypoints_mtd_type());
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_STREQ(gst_analytics_mtd_type_get_name(keypoints_mtd_type()), "penstock-keypoints");
  const auto read = read_keypoints(parts[0]);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->frame_width, 200);
  EXPECT_EQ(read->frame_height, 100);
  ASSERT_EQ(read->keypoints.size(), 2u);
  EXPECT_FLOAT_EQ(read->keypoints[0].x, 10.5f);
  EXPECT_FLOAT_EQ(read->keypoints[0].y, 20);
  EXPECT_FLOAT_EQ(read->keypoints[1].confidence, 0);
}

TEST(G01, GivenMoreThanTheRoomOfAnEarlierMeta_WhenAttached_ThenItGrowsAndNothingIsLost) {
  BufferPtr buffer = buffer_with(frame_with({}));
  std::vector<Detection> people(300);
  for (Detection& person : people) person.keypoints.resize(3);
  ASSERT_TRUE(attach_relations(buffer.get(), frame_with(people)));
  const auto objects = records_of(buffer.get(), gst_analytics_od_mtd_get_mtd_type());
  ASSERT_EQ(objects.size(), 300u);
  EXPECT_EQ(parts_of(objects[299], keypoints_mtd_type()).size(), 1u);
  EXPECT_EQ(parts_of(objects[299], gst_analytics_tensor_mtd_get_mtd_type()).size(), 1u);
}

}  // namespace
}  // namespace penstock::gst
