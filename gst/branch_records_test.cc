// SPDX-License-Identifier: Apache-2.0
//
// GstAnalytics records of two frames as one's, read back with the stock API.
#include "gst/branch_records.h"

#include <gst/analytics/analytics.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "gst/gst_ptr.h"
#include "gst/keypoints_mtd.h"

namespace penstock::gst {
namespace {

BufferPtr frame() { return BufferPtr(gst_buffer_new_allocate(nullptr, 64, nullptr)); }

GstAnalyticsRelationMeta* meta_of(const BufferPtr& buffer) {
  return gst_buffer_add_analytics_relation_meta(buffer.get());
}

guint add_box(const BufferPtr& buffer, const char* label, int x = 1) {
  GstAnalyticsODMtd added;
  EXPECT_TRUE(gst_analytics_relation_meta_add_od_mtd(meta_of(buffer), g_quark_from_string(label), x,
                                                     2, 30, 40, 0.5f, &added));
  return added.id;
}
guint add_class(const BufferPtr& buffer, const char* label) {
  GstAnalyticsClsMtd added;
  EXPECT_TRUE(gst_analytics_relation_meta_add_one_cls_mtd(meta_of(buffer), 0.25f,
                                                          g_quark_from_string(label), &added));
  return added.id;
}
guint add_track(const BufferPtr& buffer, guint64 id) {
  GstAnalyticsTrackingMtd added;
  EXPECT_TRUE(
      gst_analytics_relation_meta_add_tracking_mtd(meta_of(buffer), id, 7 * GST_SECOND, &added));
  return added.id;
}
guint add_tensor(const BufferPtr& buffer, GstBuffer* data) {
  GstAnalyticsTensorMtd added;
  EXPECT_TRUE(gst_analytics_relation_meta_add_tensor_mtd(meta_of(buffer), 2, &added));
  GstTensor* tensor = gst_analytics_tensor_mtd_get_tensor(&added);
  tensor->id = g_quark_from_static_string("some-tensor");
  tensor->data_type = GST_TENSOR_DATA_TYPE_UINT8;
  tensor->dims[0] = 4;
  tensor->dims[1] = 2;
  tensor->data = gst_buffer_ref(data);
  return added.id;
}
/// Of the picture's part (8, 4) 16x12.
guint add_segmentation(const BufferPtr& buffer, GstBuffer* mask) {
  std::array<guint, 2> regions{0, 9};
  GstAnalyticsSegmentationMtd added;
  EXPECT_TRUE(gst_analytics_relation_meta_add_segmentation_mtd(
      meta_of(buffer), gst_buffer_ref(mask), GST_SEGMENTATION_TYPE_INSTANCE, regions.size(),
      regions.data(), 8, 4, 16, 12, &added));
  return added.id;
}
BufferPtr mask() {
  BufferPtr buffer = frame();
  gst_buffer_add_video_meta(buffer.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_GRAY8, 8, 8);
  return buffer;
}

void relate(const BufferPtr& buffer, int kinds, guint first, guint second) {
  EXPECT_TRUE(gst_analytics_relation_meta_set_relation(
      meta_of(buffer), static_cast<GstAnalyticsRelTypes>(kinds), first, second));
}

/// Joins a branch of width x height into a frame of 1920x1080.
Result<void> join(const BufferPtr& into, const BufferPtr& branch, int width, int height,
                  const std::vector<Detection>& objects, std::size_t most = 4096) {
  return join_records(into.get(), 1920, 1080,
                      {.frame = branch.get(), .width = width, .height = height, .objects = objects},
                      most);
}

guint length(const BufferPtr& buffer) {
  return static_cast<guint>(gst_analytics_relation_get_length(meta_of(buffer)));
}

TEST(G03, GivenRelationsOfEveryKind_WhenJoined_ThenTheyAreBetweenTheSameRecords) {
  const BufferPtr into = frame();
  const guint own = add_box(into, "car"), own_class = add_class(into, "red");
  relate(into, GST_ANALYTICS_REL_TYPE_RELATE_TO, own, own_class);
  const BufferPtr data = frame(), masks = mask();
  const BufferPtr branch = frame();
  const std::vector<guint> ids{add_box(branch, "cat"),
                               add_class(branch, "tabby"),
                               add_track(branch, 41),
                               add_tensor(branch, data.get()),
                               add_segmentation(branch, masks.get()),
                               add_class(branch, "two"),
                               add_box(branch, "collar")};
  relate(branch, GST_ANALYTICS_REL_TYPE_CONTAIN | GST_ANALYTICS_REL_TYPE_RELATE_TO, ids[0], ids[1]);
  relate(branch, GST_ANALYTICS_REL_TYPE_IS_PART_OF, ids[1], ids[0]);
  relate(branch, GST_ANALYTICS_REL_TYPE_RELATE_TO, ids[0], ids[2]);
  relate(branch, GST_ANALYTICS_REL_TYPE_N_TO_N, ids[4], ids[5]);
  relate(branch, GST_ANALYTICS_REL_TYPE_N_TO_N, ids[5], ids[4]);
  relate(branch, GST_ANALYTICS_REL_TYPE_IS_PART_OF, ids[6], ids[0]);
  relate(branch, GST_ANALYTICS_REL_TYPE_RELATE_TO, ids[3], ids[3]);
  ASSERT_TRUE(join(into, branch, 640, 360, {{.label = "cat"}, {.label = "collar"}}));

  ASSERT_EQ(length(into), 2u + 7u);
  for (guint first = 0; first < 9; ++first) {
    for (guint second = 0; second < 9; ++second) {
      const auto kinds = gst_analytics_relation_meta_get_relation(meta_of(into), first, second);
      if (first >= 2 && second >= 2) {
        EXPECT_EQ(kinds,
                  gst_analytics_relation_meta_get_relation(meta_of(branch), first - 2, second - 2))
            << first << " " << second;
      } else if (first == 0 && second == 1) {
        EXPECT_EQ(kinds, GST_ANALYTICS_REL_TYPE_RELATE_TO);
      } else {
        EXPECT_EQ(kinds, GST_ANALYTICS_REL_TYPE_NONE) << first << " " << second;
      }
    }
  }
  for (guint id = 0; id < 7; ++id) {
    GstAnalyticsMtd before, after;
    ASSERT_TRUE(gst_analytics_relation_meta_get_mtd(meta_of(branch), id, GST_ANALYTICS_MTD_TYPE_ANY,
                                                    &before));
    ASSERT_TRUE(gst_analytics_relation_meta_get_mtd(meta_of(into), id + 2,
                                                    GST_ANALYTICS_MTD_TYPE_ANY, &after));
    EXPECT_EQ(gst_analytics_mtd_get_mtd_type(&after), gst_analytics_mtd_get_mtd_type(&before));
  }
}

TEST(G03, GivenTwoBranchesOfManyRecords_WhenJoined_ThenEachFindsItsOwn) {
  const BufferPtr into = frame();
  std::vector<Detection> objects;
  for (int number = 0; number < 2; ++number) {
    const BufferPtr branch = frame();
    objects.clear();
    for (int i = 0; i < 40; ++i) {
      const std::string label = std::to_string(100 * number + i);
      relate(branch, GST_ANALYTICS_REL_TYPE_RELATE_TO, add_box(branch, label.c_str()),
             add_class(branch, label.c_str()));
      objects.push_back({.label = label});
    }
    ASSERT_TRUE(join(into, branch, 1920, 1080, objects));
  }
  gpointer state = nullptr;
  GstAnalyticsMtd box;
  int found = 0;
  while (gst_analytics_relation_meta_iterate(meta_of(into), &state,
                                             gst_analytics_od_mtd_get_mtd_type(), &box)) {
    gpointer classes = nullptr;
    GstAnalyticsClsMtd of_it;
    ASSERT_TRUE(gst_analytics_relation_meta_get_direct_related(
        meta_of(into), box.id, GST_ANALYTICS_REL_TYPE_RELATE_TO,
        gst_analytics_cls_mtd_get_mtd_type(), &classes, &of_it));
    EXPECT_EQ(gst_analytics_od_mtd_get_obj_type(&box), gst_analytics_cls_mtd_get_quark(&of_it, 0));
    ++found;
  }
  EXPECT_EQ(found, 80);
}

TEST(G03, GivenABranchOfAThird_WhenJoined_ThenRecordsHaveTheirPlacesInTheFrame) {
  const BufferPtr into = frame(), branch = frame(), masks = mask();
  add_box(branch, "cat");
  add_box(branch, "boat");
  add_segmentation(branch, masks.get());
  GstAnalyticsMtd points;
  ASSERT_TRUE(add_keypoints(meta_of(branch),
                            {.frame_width = 640,
                             .frame_height = 360,
                             .keypoints = {{.x = 10.5f, .y = -2, .confidence = 0.5f}}},
                            points));
  // The caller has scaled them in full precision.
  ASSERT_TRUE(join(
      into, branch, 640, 360,
      {{.label = "cat", .confidence = 0.5f, .x = 4.4f, .y = 6, .width = 90, .height = 120},
       {.label = "boat", .confidence = 0.75f, .rotated = RotatedBox{300, 200, 100, 50, 0.5f}}}));
  GstAnalyticsMtd record;
  gint x = 0, y = 0, w = 0, h = 0;
  gfloat angle = 0, confidence = 0;
  ASSERT_TRUE(gst_analytics_relation_meta_get_od_mtd(meta_of(into), 0, &record));
  gst_analytics_od_mtd_get_location(&record, &x, &y, &w, &h, &confidence);
  EXPECT_EQ((std::vector<int>{x, y, w, h}), (std::vector<int>{4, 6, 90, 120}));
  EXPECT_STREQ(g_quark_to_string(gst_analytics_od_mtd_get_obj_type(&record)), "cat");
  ASSERT_TRUE(gst_analytics_relation_meta_get_od_mtd(meta_of(into), 1, &record));
  gst_analytics_od_mtd_get_oriented_location(&record, &x, &y, &w, &h, &angle, &confidence);
  EXPECT_EQ((std::vector<int>{x, y, w, h}), (std::vector<int>{250, 175, 100, 50}));
  EXPECT_FLOAT_EQ(angle, 0.5f);
  EXPECT_FLOAT_EQ(confidence, 0.75f);

  ASSERT_TRUE(gst_analytics_relation_meta_get_segmentation_mtd(meta_of(into), 2, &record));
  guint wide = 0, high = 0;
  const BufferPtr shared(gst_analytics_segmentation_mtd_get_mask(&record, &x, &y, &wide, &high));
  EXPECT_EQ(shared.get(), masks.get()) << "shared, not copied";
  EXPECT_EQ((std::vector<guint>{guint(x), guint(y), wide, high}),
            (std::vector<guint>{24, 12, 48, 36}));
  EXPECT_EQ(gst_analytics_segmentation_mtd_get_region_count(&record), 2u);
  EXPECT_EQ(gst_analytics_segmentation_mtd_get_region_id(&record, 1), 9u);

  GstAnalyticsMtd moved;
  ASSERT_TRUE(gst_analytics_relation_meta_get_mtd(meta_of(into), 3, keypoints_mtd_type(), &moved));
  const auto read = read_keypoints(moved);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->frame_width, 1920);
  EXPECT_EQ(read->frame_height, 1080);
  EXPECT_FLOAT_EQ(read->keypoints.at(0).x, 31.5f);
  EXPECT_FLOAT_EQ(read->keypoints.at(0).y, -6);
  EXPECT_FLOAT_EQ(read->keypoints.at(0).confidence, 0.5f);
}

TEST(G03, GivenValuesWithoutAPlace_WhenJoined_ThenTheyAreTheSameAndBuffersAreShared) {
  const BufferPtr into = frame(), data = frame();
  {
    const BufferPtr branch = frame();
    add_track(branch, (guint64{1} << 62) + 1);
    add_tensor(branch, data.get());
    add_class(branch, "tabby");
    ASSERT_TRUE(join(into, branch, 640, 360, {}));
  }
  GstAnalyticsMtd record;
  guint64 id = 0;
  GstClockTime first = 0, last = 0;
  gboolean lost = TRUE;
  ASSERT_TRUE(gst_analytics_relation_meta_get_tracking_mtd(meta_of(into), 0, &record));
  ASSERT_TRUE(gst_analytics_tracking_mtd_get_info(&record, &id, &first, &last, &lost));
  EXPECT_EQ(id, (guint64{1} << 62) + 1);
  EXPECT_EQ(first, 7 * GST_SECOND);
  EXPECT_FALSE(lost);
  ASSERT_TRUE(gst_analytics_relation_meta_get_tensor_mtd(meta_of(into), 1, &record));
  const GstTensor* tensor = gst_analytics_tensor_mtd_get_tensor(&record);
  EXPECT_EQ(tensor->data, data.get());
  EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(data.get()), 2) << "ours and the joined frame's";
  EXPECT_EQ(tensor->num_dims, 2u);
  EXPECT_EQ(tensor->dims[0], 4u);
  ASSERT_TRUE(gst_analytics_relation_meta_get_cls_mtd(meta_of(into), 2, &record));
  EXPECT_FLOAT_EQ(gst_analytics_cls_mtd_get_level(&record, 0), 0.25f);
}

TEST(G03, GivenMoreRecordsThanTheLimit_WhenJoined_ThenBothNumbersAreTold) {
  const BufferPtr into = frame(), branch = frame();
  for (int i = 0; i < 6; ++i) add_box(into, "a");
  for (int i = 0; i < 5; ++i) add_box(branch, "b");
  const std::vector<Detection> objects(5);
  const auto joined = join(into, branch, 640, 360, objects, 10);
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().kind(), ErrorKind::kExhausted);
  EXPECT_EQ(joined.error().message(),
            "its 5 records beside the 6 that are there are more than 10 (max-records)");
  EXPECT_EQ(length(into), 6u);
  EXPECT_TRUE(join(into, branch, 640, 360, objects, 11));
}

TEST(G03, GivenARecordOfAnUnknownType_WhenJoined_ThenItIsRefusedByName) {
  static const GstAnalyticsMtdImpl impl{"somebody's", nullptr, nullptr, {}};
  const BufferPtr into = frame(), branch = frame();
  GstAnalyticsMtd added;
  ASSERT_NE(gst_analytics_relation_meta_add_mtd(meta_of(branch), &impl, 8, &added), nullptr);
  const auto joined = join(into, branch, 640, 360, {});
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().kind(), ErrorKind::kUnsupported);
  EXPECT_EQ(joined.error().message(),
            "records of type 'somebody's' can't be joined: what is in them is not known");
}

TEST(G03, GivenAnEmptyMeta_WhenJoined_ThenTheFrameCountsAsLookedAt) {
  const BufferPtr into = frame(), branch = frame(), untouched = frame();
  meta_of(branch);
  ASSERT_TRUE(join(into, branch, 640, 360, {}));
  EXPECT_NE(gst_buffer_get_analytics_relation_meta(into.get()), nullptr);
  ASSERT_TRUE(join(untouched, frame(), 640, 360, {}));
  EXPECT_EQ(gst_buffer_get_analytics_relation_meta(untouched.get()), nullptr);
}

}  // namespace
}  // namespace penstock::gst
