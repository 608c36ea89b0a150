// SPDX-License-Identifier: Apache-2.0
#include "gst/analysis_relations.h"

#include <gst/analytics/analytics.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "gst/keypoints_mtd.h"

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

/// In 0 <= angle < 2 pi.
gfloat full_turn(float angle) {
  constexpr float kTurn = 2 * std::numbers::pi_v<float>;
  const float rest = std::fmod(angle, kTurn);
  const float turned = rest < 0 ? rest + kTurn : rest;
  return turned < kTurn ? turned : 0.0f;
}

bool add_keypoints_tensor(GstAnalyticsRelationMeta* meta, const FrameResult& result,
                          const std::vector<Keypoint>& keypoints, GstAnalyticsTensorMtd& added) {
  std::vector<float> rows;
  rows.reserve(keypoints.size() * 3);
  for (const Keypoint& keypoint : keypoints) {
    rows.insert(rows.end(),
                {keypoint.x / static_cast<float>(std::max(result.width, 1)),
                 keypoint.y / static_cast<float>(std::max(result.height, 1)), keypoint.confidence});
  }
  // The record first: the library's call that takes the buffer too drops it where there is no room.
  constexpr gsize kDims = 2;
  if (!gst_analytics_relation_meta_add_tensor_mtd(meta, kDims, &added)) return false;
  GstTensor* tensor = gst_analytics_tensor_mtd_get_tensor(&added);
  tensor->id = g_quark_from_static_string(kKeypointsTensor);
  tensor->layout = GST_TENSOR_LAYOUT_CONTIGUOUS;
  tensor->data_type = GST_TENSOR_DATA_TYPE_FLOAT32;
  tensor->dims_order = GST_TENSOR_DIM_ORDER_ROW_MAJOR;
  tensor->dims[0] = keypoints.size();
  tensor->dims[1] = 3;
  tensor->data = gst_buffer_new_memdup(rows.data(), rows.size() * sizeof(float));
  return true;
}

bool relate(GstAnalyticsRelationMeta* meta, guint part, guint whole) {
  return gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_IS_PART_OF, part,
                                                  whole) != FALSE &&
         gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_CONTAIN, whole,
                                                  part) != FALSE;
}

bool add_keypoints_of(GstAnalyticsRelationMeta* meta, const FrameResult& result, guint object,
                      const std::vector<Keypoint>& points) {
  if (points.empty()) return true;
  GstAnalyticsMtd keypoints;
  GstAnalyticsTensorMtd tensor;
  return add_keypoints(meta, {result.width, result.height, points}, keypoints) &&
         relate(meta, keypoints.id, object) && add_keypoints_tensor(meta, result, points, tensor) &&
         relate(meta, tensor.id, object);
}

bool add_object_and_parts(GstAnalyticsRelationMeta* meta, const FrameResult& result,
                          const Detection& object, GstAnalyticsODMtd& box) {
  return add_object(meta, object, box) && add_keypoints_of(meta, result, box.id, object.keypoints);
}

bool add_classes(GstAnalyticsRelationMeta* meta, const std::vector<Classification>& classes,
                 GstAnalyticsClsMtd& added) {
  std::vector<gfloat> confidences;
  std::vector<GQuark> labels;
  for (const Classification& found : classes) {
    confidences.push_back(found.confidence);
    labels.push_back(g_quark_from_string(found.label.c_str()));
  }
  return gst_analytics_relation_meta_add_cls_mtd(meta, classes.size(), confidences.data(),
                                                 labels.data(), &added) != FALSE;
}

bool add_classes_of(GstAnalyticsRelationMeta* meta, guint object,
                    const std::vector<Classification>& classes) {
  if (classes.empty()) return true;
  constexpr auto kContainAndRelate = static_cast<GstAnalyticsRelTypes>(
      int{GST_ANALYTICS_REL_TYPE_CONTAIN} | int{GST_ANALYTICS_REL_TYPE_RELATE_TO});
  GstAnalyticsClsMtd added;
  return add_classes(meta, classes, added) && relate(meta, added.id, object) &&
         gst_analytics_relation_meta_set_relation(meta, kContainAndRelate, object, added.id) !=
             FALSE;
}

bool add_embedding_of(GstAnalyticsRelationMeta* meta, guint object,
                      const std::vector<float>& embedding) {
  if (embedding.empty()) return true;
  GstAnalyticsTensorMtd added;
  if (!gst_analytics_relation_meta_add_tensor_mtd(meta, 1, &added)) return false;
  GstTensor* tensor = gst_analytics_tensor_mtd_get_tensor(&added);
  tensor->id = g_quark_from_static_string(kEmbeddingTensor);
  tensor->layout = GST_TENSOR_LAYOUT_CONTIGUOUS;
  tensor->data_type = GST_TENSOR_DATA_TYPE_FLOAT32;
  tensor->dims_order = GST_TENSOR_DIM_ORDER_ROW_MAJOR;
  tensor->dims[0] = embedding.size();
  tensor->data = gst_buffer_new_memdup(embedding.data(), embedding.size() * sizeof(float));
  return relate(meta, added.id, object);
}

Result<void> no_room_unless(bool added) {
  if (added) return {};
  return fail(ErrorKind::kExhausted, "the buffer's analytics metadata takes no more records");
}

/// The default room is five records; growing it copies what is there each time.
GstAnalyticsRelationMetaInitParams room_for(const FrameResult& result) {
  constexpr gsize kBytesPerRecord = 128;
  gsize records = result.objects.size() + (result.classes.empty() ? 0 : 1);
  gsize bytes = result.classes.size() * (sizeof(gfloat) + sizeof(GQuark));
  for (const Detection& object : result.objects) {
    if (object.keypoints.empty()) continue;
    records += 2;
    bytes += object.keypoints.size() * sizeof(Keypoint);
  }
  records = std::max<gsize>(records, 1);
  return {records, bytes + records * kBytesPerRecord};
}

}  // namespace

RecordBox record_box(const Detection& object) {
  if (object.rotated) {
    const RotatedBox& box = *object.rotated;
    const Extent x = rounded(box.center_x - box.width / 2, box.width);
    const Extent y = rounded(box.center_y - box.height / 2, box.height);
    return {x.start, y.start, x.length, y.length, full_turn(box.angle)};
  }
  const Extent x = rounded(object.x, object.width);
  const Extent y = rounded(object.y, object.height);
  return {x.start, y.start, x.length, y.length, 0};
}

bool add_object(GstAnalyticsRelationMeta* meta, const Detection& object, GstAnalyticsODMtd& added) {
  const GQuark label = g_quark_from_string(object.label.c_str());
  const RecordBox box = record_box(object);
  if (object.rotated) {
    return gst_analytics_relation_meta_add_oriented_od_mtd(meta, label, box.x, box.y, box.width,
                                                           box.height, box.angle, object.confidence,
                                                           &added) != FALSE;
  }
  return gst_analytics_relation_meta_add_od_mtd(meta, label, box.x, box.y, box.width, box.height,
                                                object.confidence, &added) != FALSE;
}

Result<void> attach_relations(GstBuffer* buffer, const FrameResult& result) {
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  if (meta == nullptr) {
    GstAnalyticsRelationMetaInitParams room = room_for(result);
    meta = gst_buffer_add_analytics_relation_meta_full(buffer, &room);
  }
  GstAnalyticsClsMtd classes;
  bool added = result.classes.empty() || add_classes(meta, result.classes, classes);
  for (const Detection& object : result.objects) {
    GstAnalyticsODMtd box;
    added = added && add_object_and_parts(meta, result, object, box);
  }
  return no_room_unless(added);
}

Result<void> attach_to_object(GstAnalyticsRelationMeta* meta, const FrameResult& about,
                              const ObjectRecords& added) {
  const Attributes* attributes = added.attributes;
  return no_room_unless(
      (attributes == nullptr || (add_classes_of(meta, added.object, attributes->classes) &&
                                 add_embedding_of(meta, added.object, attributes->embedding))) &&
      add_keypoints_of(meta, about, added.object, added.keypoints));
}

Result<void> attach_part(GstAnalyticsRelationMeta* meta, const FrameResult& about, guint parent,
                         const Detection& object) {
  GstAnalyticsODMtd box;
  return no_room_unless(add_object_and_parts(meta, about, object, box) &&
                        relate(meta, box.id, parent));
}

}  // namespace penstock::gst
