// SPDX-License-Identifier: Apache-2.0
//
// YOLO of poses. v8 and 11: [batch, 4 + classes + keypoints x d, rows]; end-to-end (26): [batch,
// boxes, 6 + keypoints x d]. A keypoint is x, y in input pixels and, where d is 3, its confidence
// (sigmoid applied).
#include "penstock/base/str_format.h"
#include "penstock/task/box_family.h"
#include "penstock/task/yolo_heads.h"

namespace penstock {
namespace {

/// How many values each keypoint has when there are `values` of all.
Result<std::size_t> values_each(std::string_view family, const BoxModel& model,
                                std::span<const Shape> shapes, std::int64_t values) {
  if (model.keypoints < 1 || model.keypoints > kMaxKeypoints) {
    return misfit(family, shapes,
                  str_format("the manifest's 'postprocess.keypoints' has {} names, not 1 to {}",
                             model.keypoints, kMaxKeypoints));
  }
  const auto keypoints = static_cast<std::int64_t>(model.keypoints);
  if (values == 2 * keypoints) return 2;
  if (values == 3 * keypoints) return 3;
  return misfit(family, shapes,
                str_format("{} values beside box and classes are neither 2 nor 3 for each of {} "
                           "keypoints",
                           values, keypoints));
}

BoxExtras keypoints_behind(const RowValues& head, std::size_t first, std::size_t keypoints,
                           std::size_t each) {
  return {.keypoints = keypoints,
          .keypoints_of = [head, first, each](ItemValues outputs, std::size_t row,
                                              std::span<KeypointRecord> records) {
            for (std::size_t k = 0; k < records.size(); ++k) {
              const std::size_t at = first + k * each;
              records[k] = {.x = head.at(outputs, row, at),
                            .y = head.at(outputs, row, at + 1),
                            .score = each == 3 ? head.at(outputs, row, at + 2) : 1.0f};
            }
          }};
}

}  // namespace

Result<BoxReader> bind_yolov8_pose(const BoxModel& model, std::span<const Shape> shapes) {
  constexpr std::string_view kFamily = "yolov8-pose";
  if (shapes.size() != 1) {
    return misfit(kFamily, shapes, "they need one [batch, 4 + classes + keypoints x 2 or 3, rows]");
  }
  const auto head = yolo_head(kFamily, shapes, 0, HeadForm::kYolov8);
  if (!head) return std::unexpected(head.error());
  if (model.classes == 0) {
    return misfit(kFamily, shapes, "without labels, classes can't be told from keypoints");
  }
  const std::size_t first = 4 + model.classes;
  const auto each =
      values_each(kFamily, model, shapes, shapes[0][1] - static_cast<std::int64_t>(first));
  if (!each) return std::unexpected(each.error());
  return BoxReader(collect_yolov8(*head, model.classes, model.threshold),
                   keypoints_behind(*head, first, model.keypoints, *each));
}

Result<BoxReader> bind_end_to_end_pose(const BoxModel& model, std::span<const Shape> shapes) {
  constexpr std::string_view kFamily = "yolo-end-to-end-pose";
  if (shapes.size() != 1) {
    return misfit(kFamily, shapes, "they need one [batch, boxes, 6 + keypoints x 2 or 3]");
  }
  const auto head = yolo_head(kFamily, shapes, 0, HeadForm::kEndToEnd);
  if (!head) return std::unexpected(head.error());
  const auto each = values_each(kFamily, model, shapes, shapes[0][2] - 6);
  if (!each) return std::unexpected(each.error());
  return BoxReader(collect_end_to_end(*head, model.classes, model.threshold),
                   keypoints_behind(*head, 6, model.keypoints, *each));
}

}  // namespace penstock
