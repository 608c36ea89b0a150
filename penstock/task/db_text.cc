// SPDX-License-Identifier: Apache-2.0
//
// Text detection by differentiable binarisation (DB), as PP-OCR has it: one [batch, 1, h, w] of
// probabilities that a pixel is in the middle of a text, of the input's proportions. Pixels of at
// least the manifest's pixel_threshold that touch make a region; its score is the mean probability
// in the smallest turned box around it. The model learns texts that are shrunk, so the box grows on
// all sides by area x unclip_ratio / perimeter. One class, no NMS.
#include <memory>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/task/box_family.h"
#include "penstock/task/rotated_nms.h"
#include "penstock/task/text_regions.h"

namespace penstock {
namespace {

constexpr std::string_view kFamily = "db-text";
/// A budget for P04: 2048 x 2048, four times what PP-OCR takes.
constexpr std::int64_t kMaxTextMapPixels = std::int64_t{1} << 22;

RotatedRecord grown(RotatedRecord box, float unclip_ratio) {
  // The distance on both sides.
  const float more = box.width * box.height * unclip_ratio / (box.width + box.height);
  box.width += more;
  box.height += more;
  return box;
}

RotatedRecord scaled(const RotatedRecord& box, float scale) {
  return {.center_x = box.center_x * scale,
          .center_y = box.center_y * scale,
          .width = box.width * scale,
          .height = box.height * scale,
          .angle = box.angle};
}

Result<void> check_sides(const BoxModel& model, std::span<const Shape> shapes) {
  const std::int64_t height = shapes[0][2], width = shapes[0][3];
  if (height < 0 || width < 0) return {};
  if (height < 1 || width < 1 || height * model.width != width * model.height) {
    return misfit(kFamily, shapes,
                  str_format("the map has not the proportions of the input, {} x {}", model.width,
                             model.height));
  }
  if (height * width > kMaxTextMapPixels) {
    return fail(ErrorKind::kExhausted,
                str_format("a map of {} x {} has more than the {} pixels that family '{}' takes",
                           width, height, kMaxTextMapPixels, kFamily));
  }
  return {};
}

}  // namespace

Result<BoxReader> bind_db_text(const BoxModel& model, std::span<const Shape> shapes) {
  if (shapes.size() != 1 || shapes[0].size() != 4 || !may_be(shapes[0][1], 1)) {
    return misfit(kFamily, shapes, "they need one map [batch, 1, h, w]");
  }
  if (model.classes > 1) {
    return misfit(kFamily, shapes, str_format("{} labels for 1 class", model.classes));
  }
  PENSTOCK_TRY(check_sides(model, shapes));
  // What the one collect of this reader finds, for the job to ask for the turned boxes later.
  const auto boxes = std::make_shared<std::vector<RotatedRecord>>();
  CollectItem collect(
      [model, boxes, shape = shapes[0]](ItemValues outputs, std::vector<Candidate>& candidates) {
        const ProbabilityMap map{.values = outputs[0],
                                 .width = static_cast<std::size_t>(shape[3]),
                                 .height = static_cast<std::size_t>(shape[2])};
        const float scale = static_cast<float>(model.width) / static_cast<float>(shape[3]);
        boxes->clear();
        std::vector<RotatedRecord> regions;
        for (const TextRegion& region : find_text_regions(map, model.pixel_threshold)) {
          regions.push_back(region.box);
        }
        const std::vector<float> scores = means_inside(map, regions);
        for (std::size_t i = 0; i < regions.size(); ++i) {
          const float score = scores[i];
          if (!(score >= model.threshold)) continue;
          const RotatedRecord box = scaled(grown(regions[i], model.unclip_ratio), scale);
          candidates.push_back({.record = upright_hull(box, score, 0),
                                .index = static_cast<std::int32_t>(boxes->size())});
          boxes->push_back(box);
        }
      });
  return BoxReader(std::move(collect),
                   {.rotated_of = [boxes](ItemValues, std::size_t row) { return (*boxes)[row]; }});
}

}  // namespace penstock
