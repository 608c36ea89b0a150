// SPDX-License-Identifier: Apache-2.0
#include "gst/allocation.h"

#include <gst/video/video.h>
#include <gtest/gtest.h>

#include "gst/gst_ptr.h"

namespace penstock::gst {
namespace {

constexpr char kCaps[] = "video/x-raw,format=I420,width=768,height=576,framerate=10/1";
constexpr guint kSize = 768 * 576 * 3 / 2;

struct Pool {
  GstPtr<GstBufferPool> pool;
  guint size = 0, minimum = 0, maximum = 0;
};

GstPtr<GstQuery> new_query() {
  const CapsPtr caps(gst_caps_from_string(kCaps));
  return GstPtr<GstQuery>(gst_query_new_allocation(caps.get(), TRUE));
}

Pool pool_of(GstQuery* query) {
  Pool pool;
  GstBufferPool* raw = nullptr;
  gst_query_parse_nth_allocation_pool(query, 0, &raw, &pool.size, &pool.minimum, &pool.maximum);
  pool.pool.reset(raw);
  return pool;
}

TEST(Allocation, GivenNoAnswerFromDownstream_WhenAdapted_ThenAPoolOfTheHeldFramesIsProposed) {
  const auto query = new_query();
  add_held_frames(query.get(), 11, DeviceKind::kCpu);
  const Pool pool = pool_of(query.get());
  EXPECT_NE(pool.pool, nullptr);
  EXPECT_EQ(pool.size, kSize);
  EXPECT_EQ(pool.minimum, 11u);
  EXPECT_EQ(pool.maximum, 0u);
}

TEST(Allocation, GivenDownstreamReadsVideoMeta_WhenAdapted_ThenThePromiseGoesUpstreamWithoutAPool) {
  const auto query = new_query();
  gst_query_add_allocation_meta(query.get(), GST_VIDEO_META_API_TYPE, nullptr);
  add_held_frames(query.get(), 3, DeviceKind::kCpu);
  EXPECT_TRUE(gst_query_find_allocation_meta(query.get(), GST_VIDEO_META_API_TYPE, nullptr));
  const Pool pool = pool_of(query.get());
  EXPECT_EQ(pool.pool, nullptr);
  EXPECT_EQ(pool.minimum, 3u);
}

TEST(Allocation, GivenAPoolAndVideoMetaOfDownstream_WhenAdapted_ThenTheDecoderKeepsItsOwnPool) {
  const auto query = new_query();
  const GstPtr<GstBufferPool> theirs(gst_video_buffer_pool_new());
  gst_query_add_allocation_pool(query.get(), theirs.get(), kSize, 4, 0);
  gst_query_add_allocation_meta(query.get(), GST_VIDEO_META_API_TYPE, nullptr);
  add_held_frames(query.get(), 6, DeviceKind::kCpu);
  const Pool pool = pool_of(query.get());
  EXPECT_EQ(pool.pool, nullptr);
  EXPECT_EQ(pool.minimum, 10u);
}

TEST(Allocation, GivenDownstreamDoesNotReadVideoMeta_WhenAdapted_ThenItIsNotPromised) {
  const auto query = new_query();
  add_held_frames(query.get(), 3, DeviceKind::kCpu);
  EXPECT_FALSE(gst_query_find_allocation_meta(query.get(), GST_VIDEO_META_API_TYPE, nullptr));
}

TEST(Allocation, GivenAGrowingPoolOfDownstream_WhenAdapted_ThenItIsKeptWithMoreBuffers) {
  const auto query = new_query();
  const GstPtr<GstBufferPool> theirs(gst_video_buffer_pool_new());
  gst_query_add_allocation_pool(query.get(), theirs.get(), kSize, 4, 0);
  add_held_frames(query.get(), 6, DeviceKind::kCpu);
  const Pool pool = pool_of(query.get());
  EXPECT_EQ(pool.pool.get(), theirs.get());
  EXPECT_EQ(pool.minimum, 10u);
}

TEST(Allocation, GivenALimitedPoolOfDownstream_WhenAdapted_ThenAnotherReplacesIt) {
  const auto query = new_query();
  const GstPtr<GstBufferPool> theirs(gst_video_buffer_pool_new());
  gst_query_add_allocation_pool(query.get(), theirs.get(), kSize, 2, 5);
  add_held_frames(query.get(), 6, DeviceKind::kCpu);
  const Pool pool = pool_of(query.get());
  EXPECT_NE(pool.pool.get(), theirs.get());
  EXPECT_EQ(pool.minimum, 8u);
  EXPECT_EQ(pool.maximum, 0u);
}

TEST(Allocation, GivenDownstreamCrops_WhenAdapted_ThenCroppingIsNotPromised) {
  const auto query = new_query();
  gst_query_add_allocation_meta(query.get(), GST_VIDEO_CROP_META_API_TYPE, nullptr);
  add_held_frames(query.get(), 3, DeviceKind::kCpu);
  EXPECT_FALSE(gst_query_find_allocation_meta(query.get(), GST_VIDEO_CROP_META_API_TYPE, nullptr));
}

TEST(Allocation, GivenDeviceMemory_WhenAdapted_ThenOnlyTheNumberIsAsked) {
  const auto query = new_query();
  add_held_frames(query.get(), 9, DeviceKind::kSim);
  const Pool pool = pool_of(query.get());
  EXPECT_EQ(pool.pool, nullptr);
  EXPECT_EQ(pool.minimum, 9u);
}

}  // namespace
}  // namespace penstock::gst
