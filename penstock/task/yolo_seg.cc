// SPDX-License-Identifier: Apache-2.0
//
// YOLO of instance masks: a head whose rows end with an object's weights of M prototypes, v8 and 11
// [batch, 4 + classes + M, rows], end-to-end (26) [batch, boxes, 6 + M], and the prototypes [batch,
// M, h, w], in any order.
#include "penstock/base/str_format.h"
#include "penstock/task/box_extras.h"
#include "penstock/task/box_family.h"
#include "penstock/task/yolo_heads.h"

namespace penstock {
namespace {

struct SegOutputs {
  RowValues head;
  std::size_t prototype_output = 0;
  std::int64_t prototypes = 0;
};

Result<SegOutputs> match_outputs(std::string_view family, std::span<const Shape> shapes,
                                 HeadForm form) {
  const bool two = shapes.size() == 2;
  if (!two || shapes[0].size() + shapes[1].size() != 7 ||
      (shapes[0].size() != 3 && shapes[0].size() != 4)) {
    return misfit(family, shapes, "they need one of rank 3 and prototypes [batch, M, h, w]");
  }
  const std::size_t at = shapes[0].size() == 4 ? 0 : 1;
  const Shape& shape = shapes[at];
  if (shape[1] < 1 || shape[1] > kMaxPrototypes) {
    return misfit(family, shapes,
                  str_format("the number of prototypes must be fixed, 1 to {}", kMaxPrototypes));
  }
  for (const std::int64_t side : {shape[2], shape[3]}) {
    if (side == 0 || side > kMaxPrototypeSide) {
      return misfit(family, shapes,
                    str_format("prototypes must have sides of 1 to {}", kMaxPrototypeSide));
    }
  }
  const auto head = yolo_head(family, shapes, 1 - at, form);
  if (!head) return std::unexpected(head.error());
  return SegOutputs{.head = *head, .prototype_output = at, .prototypes = shape[1]};
}

BoxExtras masks_behind(const SegOutputs& outputs) {
  const auto prototypes = static_cast<std::size_t>(outputs.prototypes);
  return {.prototypes = prototypes,
          .prototype_output = outputs.prototype_output,
          .coefficients_of = [head = outputs.head, first = outputs.head.width - prototypes](
                                 ItemValues values, std::size_t row, std::span<float> weights) {
            for (std::size_t m = 0; m < weights.size(); ++m) {
              weights[m] = head.at(values, row, first + m);
            }
          }};
}

}  // namespace

Result<BoxReader> bind_yolov8_seg(const BoxModel& model, std::span<const Shape> shapes) {
  constexpr std::string_view kFamily = "yolov8-seg";
  const auto found = match_outputs(kFamily, shapes, HeadForm::kYolov8);
  if (!found) return std::unexpected(found.error());
  const auto classes = class_count(
      kFamily, model, shapes, static_cast<std::int64_t>(found->head.width), 4 + found->prototypes);
  if (!classes) return std::unexpected(classes.error());
  return BoxReader(collect_yolov8(found->head, *classes, model.threshold), masks_behind(*found));
}

Result<BoxReader> bind_end_to_end_seg(const BoxModel& model, std::span<const Shape> shapes) {
  constexpr std::string_view kFamily = "yolo-end-to-end-seg";
  const auto found = match_outputs(kFamily, shapes, HeadForm::kEndToEnd);
  if (!found) return std::unexpected(found.error());
  if (static_cast<std::int64_t>(found->head.width) != 6 + found->prototypes) {
    return misfit(
        kFamily, shapes,
        str_format("a box must have 6 values and the weights of {} prototypes", found->prototypes));
  }
  return BoxReader(collect_end_to_end(found->head, model.classes, model.threshold),
                   masks_behind(*found));
}

}  // namespace penstock
