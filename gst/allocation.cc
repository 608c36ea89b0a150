// SPDX-License-Identifier: Apache-2.0
#include "gst/allocation.h"

#include <gst/video/video.h>

#include <utility>

#include "gst/container_caps.h"
#include "gst/gst_ptr.h"

namespace penstock::gst {
namespace {

GstPtr<GstBufferPool> make_pool(GstCaps* caps, guint size, guint minimum) {
  GstPtr<GstBufferPool> pool(gst_video_buffer_pool_new());
  GstStructure* config = gst_buffer_pool_get_config(pool.get());
  gst_buffer_pool_config_set_params(config, caps, size, minimum, 0);
  return gst_buffer_pool_set_config(pool.get(), config) ? std::move(pool) : nullptr;
}

}  // namespace

void add_held_frames(GstQuery* query, guint held, DeviceKind device) {
  // Cropping happens where pixels are read, and frames are read whole.
  guint crop = 0;
  while (gst_query_find_allocation_meta(query, GST_VIDEO_CROP_META_API_TYPE, &crop)) {
    gst_query_remove_nth_allocation_meta(query, crop);
  }

  GstCaps* caps = nullptr;
  gst_query_parse_allocation(query, &caps, nullptr);
  if (caps == nullptr) return;
  // A container is no memory to be pooled: the number is that of each stream's frames.
  const bool contained = is_container(caps);
  GstVideoInfo info;
  if (!contained && !gst_video_info_from_caps(&info, caps)) return;

  if (gst_query_get_n_allocation_pools(query) == 0) {
    gst_query_add_allocation_pool(query, nullptr, contained ? 0 : GST_VIDEO_INFO_SIZE(&info), 0, 0);
  }
  for (guint i = 0; i < gst_query_get_n_allocation_pools(query); ++i) {
    GstBufferPool* offered = nullptr;
    guint size = 0, minimum = 0, maximum = 0;
    gst_query_parse_nth_allocation_pool(query, i, &offered, &size, &minimum, &maximum);
    GstPtr<GstBufferPool> pool(maximum == 0 ? offered : nullptr);
    if (offered != nullptr && maximum != 0) gst_object_unref(offered);
    if (contained) {
      pool.reset();
    } else if (device == DeviceKind::kCpu) {
      if (gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr)) {
        pool.reset();
      } else if (pool == nullptr) {
        pool = make_pool(caps, size, minimum + held);
      }
    }
    gst_query_set_nth_allocation_pool(query, i, pool.get(), size, minimum + held, 0);
  }
}

}  // namespace penstock::gst
