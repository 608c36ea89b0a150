// SPDX-License-Identifier: Apache-2.0
//
// YOLO of oriented boxes, as Ultralytics exports it. v8 and 11: [batch, 4 + classes + 1, rows];
// end-to-end (26): [batch, boxes, 7] of centre, size, score, class, angle. The angle is in radians
// and turns the width's side clockwise as seen. A candidate's corners are the turned box's upright
// hull.
#include <functional>
#include <utility>

#include "penstock/task/box_family.h"
#include "penstock/task/rotated_nms.h"
#include "penstock/task/yolo_heads.h"

namespace penstock {
namespace {

using TurnedBoxOf = std::function<RotatedRecord(ItemValues, std::size_t row)>;

TurnedBoxOf turned_box_of(const RowValues& head) {
  return [head](ItemValues outputs, std::size_t row) {
    return RotatedRecord{.center_x = head.at(outputs, row, 0),
                         .center_y = head.at(outputs, row, 1),
                         .width = head.at(outputs, row, 2),
                         .height = head.at(outputs, row, 3),
                         .angle = head.at(outputs, row, head.width - 1)};
  };
}

BoxReader read_turned_boxes(CollectItem rows, const RowValues& head) {
  const TurnedBoxOf box_of = turned_box_of(head);
  CollectItem collect(
      [rows = std::move(rows), box_of](ItemValues outputs, std::vector<Candidate>& candidates) {
        rows(outputs, candidates);
        std::size_t kept = 0;
        for (Candidate candidate : candidates) {
          const RotatedRecord box = box_of(outputs, static_cast<std::size_t>(candidate.index));
          // The hull of a line has area; written so that NaN goes, too.
          if (!(box.width > 0.0f && box.height > 0.0f)) continue;
          candidate.record = upright_hull(box, candidate.record.score, candidate.record.class_id);
          candidates[kept++] = candidate;
        }
        candidates.resize(kept);
      });
  return {std::move(collect), BoxExtras{.rotated_of = box_of}};
}

}  // namespace

Result<BoxReader> bind_yolov8_obb(const BoxModel& model, std::span<const Shape> shapes) {
  constexpr std::string_view kFamily = "yolov8-obb";
  if (shapes.size() != 1) {
    return misfit(kFamily, shapes, "they need one [batch, 4 + classes + 1, rows]");
  }
  const auto head = yolo_head(kFamily, shapes, 0, HeadForm::kYolov8);
  if (!head) return std::unexpected(head.error());
  const auto classes = class_count(kFamily, model, shapes, shapes[0][1], 4 + 1);
  if (!classes) return std::unexpected(classes.error());
  return read_turned_boxes(collect_yolov8(*head, *classes, model.threshold), *head);
}

Result<BoxReader> bind_end_to_end_obb(const BoxModel& model, std::span<const Shape> shapes) {
  constexpr std::string_view kFamily = "yolo-end-to-end-obb";
  if (shapes.size() != 1 || shapes[0].size() != 3 || shapes[0][2] != 7) {
    return misfit(kFamily, shapes, "they need one [batch, boxes, 7]");
  }
  const auto head = yolo_head(kFamily, shapes, 0, HeadForm::kEndToEnd);
  if (!head) return std::unexpected(head.error());
  return read_turned_boxes(collect_end_to_end(*head, model.classes, model.threshold), *head);
}

}  // namespace penstock
