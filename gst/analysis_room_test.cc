// SPDX-License-Identifier: Apache-2.0
//
// Contract G01 where the relation meta has no room for a tensor. GstAnalytics grows its meta until
// memory ends, so that two of its calls are replaced in this program.
#include <dlfcn.h>
#include <gst/analytics/analytics.h>
#include <gtest/gtest.h>

#include <atomic>

#include "gst/analysis_relations.h"
#include "gst/gst_ptr.h"

namespace {

std::atomic<bool> refuses_tensors = false;
std::atomic<bool> counts_copies = false;
std::atomic<int> live_copies = 0;

using AddTensor = gboolean (*)(GstAnalyticsRelationMeta*, gsize, GstAnalyticsTensorMtd*);
using CopyBytes = GstBuffer* (*)(gconstpointer, gsize);

void forget_copy(gpointer, GstMiniObject*) { --live_copies; }

}  // namespace

extern "C" {

gboolean gst_analytics_relation_meta_add_tensor_mtd(GstAnalyticsRelationMeta* meta, gsize num_dims,
                                                    GstAnalyticsTensorMtd* added) {
  static const auto real =
      reinterpret_cast<AddTensor>(::dlsym(RTLD_NEXT, "gst_analytics_relation_meta_add_tensor_mtd"));
  return refuses_tensors ? FALSE : real(meta, num_dims, added);
}

GstBuffer* gst_buffer_new_memdup(gconstpointer data, gsize size) {
  static const auto real = reinterpret_cast<CopyBytes>(::dlsym(RTLD_NEXT, "gst_buffer_new_memdup"));
  GstBuffer* copy = real(data, size);
  if (counts_copies) {
    ++live_copies;
    gst_mini_object_weak_ref(GST_MINI_OBJECT_CAST(copy), forget_copy, nullptr);
  }
  return copy;
}

}  // extern "C"

namespace penstock::gst {
namespace {

FrameResult pose() {
  FrameResult result;
  result.width = result.height = 64;
  result.objects.push_back({.label = "person", .keypoints = {{.x = 1, .y = 2, .confidence = 1}}});
  return result;
}

TEST(G01, GivenAMetaWithoutRoomForATensor_WhenAttached_ThenItIsAnErrorAndNothingIsLeftBehind) {
  counts_copies = true;
  {
    const BufferPtr full(gst_buffer_new_allocate(nullptr, 64, nullptr));
    refuses_tensors = true;
    const auto attached = attach_relations(full.get(), pose());
    refuses_tensors = false;
    ASSERT_FALSE(attached);
    EXPECT_EQ(attached.error().kind(), ErrorKind::kExhausted);
  }
  EXPECT_EQ(live_copies.load(), 0);
  {
    const BufferPtr roomy(gst_buffer_new_allocate(nullptr, 64, nullptr));
    ASSERT_TRUE(attach_relations(roomy.get(), pose()));
    EXPECT_EQ(live_copies.load(), 1);
  }
  EXPECT_EQ(live_copies.load(), 0);
  counts_copies = false;
}

}  // namespace
}  // namespace penstock::gst
