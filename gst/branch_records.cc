// SPDX-License-Identifier: Apache-2.0
#include "gst/branch_records.h"

#include <gst/video/video.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "gst/analysis_relations.h"
#include "gst/keypoints_mtd.h"
#include "penstock/base/str_format.h"
#include "penstock/records/frame_scale.h"

namespace penstock::gst {
namespace {

/// One join of two metas.
struct Joining {
  GstBuffer* into;
  GstAnalyticsRelationMeta* meta;
  GstVideoInfo size;
  const BranchRecords& branch;
  GstVideoInfo branch_size;
  std::size_t object = 0;  ///< Number of the next object record.
};

GstVideoInfo size_info(int width, int height) {
  GstVideoInfo info;
  gst_video_info_init(&info);
  info.width = width;
  info.height = height;
  return info;
}

/// Types whose bytes mean the same under another id, and whose own hook does what else there is.
bool moves_by_itself(GstAnalyticsMtdType type) {
  return type == gst_analytics_cls_mtd_get_mtd_type() ||
         type == gst_analytics_tracking_mtd_get_mtd_type() ||
         type == gst_analytics_tensor_mtd_get_mtd_type() ||
         type == gst_analytics_segmentation_mtd_get_mtd_type();
}

/// As the library copies a buffer's records: the bytes, and then the type's hook, which takes
/// references and scales places.
bool add_same(Joining& joining, const GstAnalyticsMtd& record, GstAnalyticsMtd& added) {
  const auto* impl =
      reinterpret_cast<const GstAnalyticsMtdImpl*>(gst_analytics_mtd_get_mtd_type(&record));
  const gsize size = gst_analytics_mtd_get_size(&record);
  gpointer bytes = gst_analytics_relation_meta_add_mtd(joining.meta, impl, size, &added);
  if (bytes == nullptr) return false;
  if (size > 0) {
    std::memcpy(bytes, gst_analytics_relation_meta_get_mtd_data(record.meta, record.id), size);
  }
  if (impl->mtd_meta_transform == nullptr) return true;
  GstVideoMetaTransform scale{.in_info = &joining.branch_size, .out_info = &joining.size};
  return impl->mtd_meta_transform(joining.into, &added, joining.branch.frame,
                                  gst_video_meta_transform_scale_get_quark(), &scale) != FALSE;
}

bool add_scaled_keypoints(Joining& joining, const GstAnalyticsMtd& record, GstAnalyticsMtd& added) {
  auto read = read_keypoints(record);
  if (!read) return false;
  const int width = read->frame_width > 0 ? read->frame_width : joining.branch.width;
  const int height = read->frame_height > 0 ? read->frame_height : joining.branch.height;
  const FrameScale scale = scale_between(width, height, joining.size.width, joining.size.height);
  for (Keypoint& point : read->keypoints) point = scaled(point, scale);
  read->frame_width = joining.size.width;
  read->frame_height = joining.size.height;
  return add_keypoints(joining.meta, *read, added);
}

Result<guint> add_record(Joining& joining, const GstAnalyticsMtd& record) {
  const GstAnalyticsMtdType type = gst_analytics_mtd_get_mtd_type(&record);
  const gsize before = gst_analytics_relation_get_length(joining.meta);
  GstAnalyticsMtd added{};
  bool done = false;
  if (type == gst_analytics_od_mtd_get_mtd_type()) {
    done = joining.object < joining.branch.objects.size() &&
           add_object(joining.meta, joining.branch.objects[joining.object++], added);
  } else if (type == keypoints_mtd_type()) {
    done = add_scaled_keypoints(joining, record, added);
  } else if (moves_by_itself(type)) {
    done = add_same(joining, record, added);
  } else {
    return fail(ErrorKind::kUnsupported,
                str_format("records of type '{}' can't be joined: what is in them is not known",
                           gst_analytics_mtd_type_get_name(type)));
  }
  // The library's answer is an address also where there was no room.
  if (!done || gst_analytics_relation_get_length(joining.meta) != before + 1) {
    return fail(ErrorKind::kExhausted, "the buffer's analytics metadata takes no more records");
  }
  return added.id;
}

Result<void> relate_as_before(GstAnalyticsRelationMeta* into, GstAnalyticsRelationMeta* from,
                              std::span<const guint> ids) {
  for (guint first = 0; first < ids.size(); ++first) {
    gpointer state = nullptr;
    GstAnalyticsMtd second;
    while (gst_analytics_relation_meta_get_direct_related(
        from, first, GST_ANALYTICS_REL_TYPE_ANY, GST_ANALYTICS_MTD_TYPE_ANY, &state, &second)) {
      const GstAnalyticsRelTypes kinds =
          gst_analytics_relation_meta_get_relation(from, first, second.id);
      if (!gst_analytics_relation_meta_set_relation(into, kinds, ids[first], ids[second.id])) {
        return fail(ErrorKind::kInternal, "a relation could not be set");
      }
    }
  }
  return {};
}

GstAnalyticsRelationMeta* meta_with_room(GstBuffer* into, gsize records, gsize bytes) {
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(into);
  if (meta != nullptr) return meta;
  GstAnalyticsRelationMetaInitParams room{std::max<gsize>(records, 1), std::max<gsize>(bytes, 64)};
  return gst_buffer_add_analytics_relation_meta_full(into, &room);
}

}  // namespace

Result<void> join_records(GstBuffer* into, int width, int height, const BranchRecords& branch,
                          std::size_t most) {
  GstAnalyticsRelationMeta* from = gst_buffer_get_analytics_relation_meta(branch.frame);
  if (from == nullptr) return {};
  const gsize count = gst_analytics_relation_get_length(from);
  constexpr gsize kBytesPerRecord = 128;
  GstAnalyticsRelationMeta* meta = meta_with_room(into, count, count * kBytesPerRecord);
  const gsize there = gst_analytics_relation_get_length(meta);
  if (there + count > most) {
    return fail(ErrorKind::kExhausted,
                str_format("its {} records beside the {} that are there are more than {} "
                           "(max-records)",
                           count, there, most));
  }
  Joining joining{.into = into,
                  .meta = meta,
                  .size = size_info(width, height),
                  .branch = branch,
                  .branch_size = size_info(branch.width, branch.height)};
  std::vector<guint> ids;
  for (guint id = 0; id < count; ++id) {
    GstAnalyticsMtd record;
    if (!gst_analytics_relation_meta_get_mtd(from, id, GST_ANALYTICS_MTD_TYPE_ANY, &record)) {
      return fail(ErrorKind::kCorrupt, str_format("its record {} can't be read", id));
    }
    const auto added = add_record(joining, record);
    if (!added) return std::unexpected(added.error());
    ids.push_back(*added);
  }
  return relate_as_before(meta, from, ids);
}

}  // namespace penstock::gst
