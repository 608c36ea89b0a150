// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/drawn_labels.h"

#include <gst/analytics/analytics.h>
#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

TEST(DrawnLabels, GivenAPlainLabel_WhenDrawn_ThenItStays) {
  EXPECT_EQ(drawn_label("traffic light"), "traffic light");
  EXPECT_EQ(drawn_label("\u00e9tag\u00e8re"), "\u00e9tag\u00e8re");
}

TEST(DrawnLabels, GivenMarkup_WhenDrawn_ThenItIsShownAsItIs) {
  EXPECT_EQ(drawn_label("salt & pepper"), "salt &amp; pepper");
  EXPECT_EQ(drawn_label("<span size='99999'>"), "&lt;span size=&apos;99999&apos;&gt;");
}

TEST(DrawnLabels, GivenControlCharactersAndBadBytes_WhenDrawn_ThenTheyAreReplaced) {
  EXPECT_EQ(drawn_label("a\nb\tc\x1b[0m"), "a b c [0m");
  EXPECT_EQ(drawn_label("a\xff"
                        "b"),
            "a\ufffd"
            "b");
}

TEST(DrawnLabels, GivenALongLabel_WhenDrawn_ThenItEndsInAnEllipsis) {
  EXPECT_EQ(drawn_label(std::string(64, 'x')), std::string(64, 'x'));
  EXPECT_EQ(drawn_label(std::string(100000, 'x')), std::string(64, 'x') + "\u2026");
}

TEST(DrawnLabels, GivenABufferWithObjects_WhenPrepared_ThenOnlyItsLabelsChange) {
  gst_init(nullptr, nullptr);
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 16, nullptr);
  const GstMemory* memory = gst_buffer_peek_memory(buffer, 0);
  GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(buffer);
  GstAnalyticsODMtd box;
  gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string("cat"), 1, 2, 3, 4, 0.5f, &box);
  gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string("a<b"), 5, 6, 7, 8, 0.25f, &box);
  buffer = with_drawn_labels(buffer);
  EXPECT_EQ(gst_buffer_peek_memory(buffer, 0), memory);
  meta = gst_buffer_get_analytics_relation_meta(buffer);
  ASSERT_NE(meta, nullptr);
  ASSERT_EQ(gst_analytics_relation_get_length(meta), 2u);
  const std::string labels[] = {"cat", "a&lt;b"};
  for (guint i = 0; i < 2; ++i) {
    ASSERT_TRUE(gst_analytics_relation_meta_get_od_mtd(meta, i, &box));
    EXPECT_EQ(g_quark_to_string(gst_analytics_od_mtd_get_obj_type(&box)), labels[i]);
    gint x = 0, y = 0, width = 0, height = 0;
    gfloat confidence = 0;
    gst_analytics_od_mtd_get_location(&box, &x, &y, &width, &height, &confidence);
    EXPECT_EQ(x, int(1 + 4 * i));
    EXPECT_EQ(y, int(2 + 4 * i));
    EXPECT_EQ(width, int(3 + 4 * i));
    EXPECT_EQ(height, int(4 + 4 * i));
    EXPECT_EQ(confidence, i == 0 ? 0.5f : 0.25f);
  }
  gst_buffer_unref(buffer);
}

}  // namespace
}  // namespace penstock
