// SPDX-License-Identifier: Apache-2.0
#include "gst/detection_relations.h"

#include <gst/analytics/analytics.h>

#include <algorithm>
#include <cmath>

namespace penstock::gst {
namespace {

struct Extent {
  gint start;
  gint length;
};

Extent rounded(float start, float length) {
  const long low = std::lround(start);
  const long high = std::lround(start + length);
  return {static_cast<gint>(low), static_cast<gint>(std::max(high - low, 1L))};
}

}  // namespace

Result<void> attach_relations(GstBuffer* buffer, std::span<const Detection> detections) {
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  if (meta == nullptr) {
    // The default room is five records; growing it copies what is there each time.
    constexpr gsize kBytesPerObject = 96;
    const gsize objects = std::max<gsize>(detections.size(), 1);
    GstAnalyticsRelationMetaInitParams room{objects, objects * kBytesPerObject};
    meta = gst_buffer_add_analytics_relation_meta_full(buffer, &room);
  }
  for (const Detection& detection : detections) {
    const Extent x = rounded(detection.x, detection.width);
    const Extent y = rounded(detection.y, detection.height);
    GstAnalyticsODMtd added;
    if (!gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string(detection.label.c_str()),
                                                x.start, y.start, x.length, y.length,
                                                detection.confidence, &added)) {
      return fail(ErrorKind::kExhausted, "the buffer's analytics metadata takes no more objects");
    }
  }
  return {};
}

}  // namespace penstock::gst
