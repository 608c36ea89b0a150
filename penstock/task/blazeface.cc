// SPDX-License-Identifier: Apache-2.0
//
// MediaPipe's BlazeFace of near faces (128 x 128 "front", 256 x 256 "back"). 896 anchors: two in
// each cell of a grid of 16 x 16, then six in each of 8 x 8, all in the middle of their cell.
// Outputs are [batch, 512, 1] and [batch, 384, 1] of logits with [batch, 512, 16] and [batch, 384,
// 16] of values, or both grids as one, [batch, 896, 1] and [batch, 896, 16], in any order. The
// values are centre and size and six keypoints' places, in input pixels from the anchor.
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/task/box_family.h"

namespace penstock {
namespace {

constexpr std::string_view kFamily = "blazeface";
constexpr std::size_t kKeypoints = 6;
constexpr std::size_t kValues = 4 + 2 * kKeypoints;
constexpr std::size_t kFineAnchors = 2 * 16 * 16;
constexpr std::size_t kCoarseAnchors = 6 * 8 * 8;

/// A pair of outputs, and the anchors that it is about.
struct Head {
  std::size_t scores = 0, boxes = 0;
  std::size_t first = 0, anchors = 0;
};

struct Layout {
  std::vector<Head> heads;
  float width = 0, height = 0;  ///< Of the input.

  /// The middle of the anchor's cell, in input pixels.
  KeypointRecord anchor(std::size_t row) const {
    const bool fine = row < kFineAnchors;
    const std::size_t side = fine ? 16 : 8;
    const std::size_t cell = fine ? row / 2 : (row - kFineAnchors) / 6;
    const auto part = [&](std::size_t n) {
      return (static_cast<float>(n) + 0.5f) / static_cast<float>(side);
    };
    return {.x = part(cell % side) * width, .y = part(cell / side) * height, .score = 1};
  }
};

std::optional<std::size_t> find_output(std::span<const Shape> shapes, std::size_t anchors,
                                       std::size_t values) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Shape& shape = shapes[i];
    if (shape.size() == 3 && std::cmp_equal(shape[1], anchors) &&
        std::cmp_equal(shape[2], values)) {
      return i;
    }
  }
  return std::nullopt;
}

Result<std::vector<Head>> match_heads(std::span<const Shape> shapes) {
  std::vector<Head> heads;
  if (shapes.size() == 2) {
    heads.push_back({.first = 0, .anchors = kFineAnchors + kCoarseAnchors});
  } else {
    heads.push_back({.first = 0, .anchors = kFineAnchors});
    heads.push_back({.first = kFineAnchors, .anchors = kCoarseAnchors});
  }
  for (Head& head : heads) {
    const auto scores = find_output(shapes, head.anchors, 1);
    const auto boxes = find_output(shapes, head.anchors, kValues);
    if (!scores || !boxes || shapes.size() != 2 * heads.size()) {
      return misfit(kFamily, shapes,
                    "they need [batch, 512, 1], [batch, 384, 1], [batch, 512, 16] and [batch, 384, "
                    "16], or [batch, 896, 1] and [batch, 896, 16]");
    }
    head.scores = *scores;
    head.boxes = *boxes;
  }
  return heads;
}

Result<void> check_model(const BoxModel& model, std::span<const Shape> shapes) {
  if (model.keypoints != kKeypoints) {
    return misfit(kFamily, shapes,
                  str_format("the manifest's 'postprocess.keypoints' has {} names, not {}",
                             model.keypoints, kKeypoints));
  }
  if (model.classes > 1) {
    return misfit(kFamily, shapes, str_format("{} labels for 1 class", model.classes));
  }
  if (model.width != model.height) {
    return misfit(kFamily, shapes,
                  str_format("the input is {} x {}, no square", model.width, model.height));
  }
  return {};
}

void collect_faces(const Layout& layout, float threshold, ItemValues outputs,
                   std::vector<Candidate>& candidates) {
  for (const Head& head : layout.heads) {
    for (std::size_t i = 0; i < head.anchors; ++i) {
      const float logit = outputs[head.scores][i];
      const float score = sigmoid(logit);
      if (!std::isfinite(logit) || !(score >= threshold)) continue;
      const auto v = outputs[head.boxes].subspan(i * kValues, kValues);
      const KeypointRecord anchor = layout.anchor(head.first + i);
      candidates.push_back(
          {.record = box_from_center(anchor.x + v[0], anchor.y + v[1], v[2], v[3], score, 0),
           .index = static_cast<std::int32_t>(head.first + i)});
    }
  }
}

void place_keypoints(const Layout& layout, ItemValues outputs, std::size_t row,
                     std::span<KeypointRecord> records) {
  const Head& head =
      row < layout.heads.front().anchors ? layout.heads.front() : layout.heads.back();
  const auto v = outputs[head.boxes].subspan((row - head.first) * kValues, kValues);
  const KeypointRecord anchor = layout.anchor(row);
  for (std::size_t k = 0; k < records.size(); ++k) {
    records[k] = {.x = anchor.x + v[4 + 2 * k], .y = anchor.y + v[5 + 2 * k], .score = 1};
  }
}

}  // namespace

Result<BoxReader> bind_blazeface(const BoxModel& model, std::span<const Shape> shapes) {
  PENSTOCK_TRY(check_model(model, shapes));
  auto heads = match_heads(shapes);
  if (!heads) return std::unexpected(std::move(heads).error());
  const Layout layout{.heads = *std::move(heads),
                      .width = static_cast<float>(model.width),
                      .height = static_cast<float>(model.height)};
  CollectItem collect([layout, threshold = model.threshold](ItemValues outputs,
                                                            std::vector<Candidate>& candidates) {
    collect_faces(layout, threshold, outputs, candidates);
  });
  return BoxReader(std::move(collect),
                   {.keypoints = kKeypoints,
                    .keypoints_of = [layout](ItemValues outputs, std::size_t row,
                                             std::span<KeypointRecord> records) {
                      place_keypoints(layout, outputs, row, records);
                    }});
}

}  // namespace penstock
