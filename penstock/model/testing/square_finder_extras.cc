// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/testing/square_finder_extras.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace penstock::model_testing {
namespace {

constexpr std::int64_t kMaskStride = 4;

/// Joins boxes, scores and `extra` [N, rows, width] as the layout's head.
void add_head(FinderGraph& finder, bool end_to_end, const std::string& extra, std::int64_t width) {
  if (end_to_end) {
    finder.add_best();
    finder.join({"boxes", "score", "class", extra}, "output0");
    return finder.add_output("output0", {-1, finder.rows(), 6 + width});
  }
  finder.join({"boxes", "rows", extra}, "joined");
  finder.graph().node("Transpose", {"joined"}, {"output0"},
                      {{"perm", std::vector<std::int64_t>{0, 2, 1}}});
  finder.add_output("output0", {-1, 4 + kSquareClasses + width, finder.rows()});
}

/// The keypoints of each cell's square, `values` of each: x, y and a confidence, in pixels.
std::vector<float> keypoints_of_cells(int size, int keypoints, std::size_t values) {
  std::vector<float> all;
  for (const FinderCell& cell : finder_cells(size)) {
    for (int k = 0; k < keypoints; ++k) {
      const KeypointPlace place = keypoint_place(keypoints, k);
      all.push_back(cell.x + (place.x - 0.5f) * cell.side);
      all.push_back(cell.y + (place.y - 0.5f) * cell.side);
      if (values == 3) all.push_back(kKeypointConfidence);
    }
  }
  return all;
}

}  // namespace

// Prototypes: how much of each colour there is, and ones. An object's logit is 20 x its colour
// - 10.
void add_mask_outputs(FinderGraph& finder, BoxLayout layout, int size) {
  const std::int64_t side = size / kMaskStride;
  const std::vector<std::int64_t> square{kMaskStride, kMaskStride};
  const auto pixels = static_cast<std::size_t>(side * side);
  finder.graph()
      .node("AveragePool", {"color"}, {"color_small"},
            {{"kernel_shape", square}, {"strides", square}})
      .constant("plane_once", {1, 1, side, side}, std::vector<float>(pixels, 1.0f))
      .constant("three_ones", {3}, std::vector<std::int64_t>{1, 1, 1})
      .node("Concat", {"batch", "three_ones"}, {"plane_shape"}, {{"axis", std::int64_t{0}}})
      .node("Expand", {"plane_once", "plane_shape"}, {"plane"})
      .node("Concat", {"color_small", "plane"}, {"output1"}, {{"axis", std::int64_t{1}}})
      .constant("mask_gain", {}, std::vector<float>{20.0f})
      .node("Mul", {"rows", "mask_gain"}, {"color_weights_of_rows"});
  finder.add("bias", 1, std::vector<float>(static_cast<std::size_t>(finder.rows()), -10.0f));
  finder.join({"color_weights_of_rows", "bias"}, "mask_weights");
  add_head(finder, layout == BoxLayout::kEndToEndSeg, "mask_weights", kSquareClasses + 1);
  finder.add_output("output1", {-1, kSquareClasses + 1, side, side});
}

void add_pose_output(FinderGraph& finder, BoxLayout layout, int size) {
  const bool end_to_end = layout == BoxLayout::kEndToEndPose;
  const int keypoints = keypoints_of(layout);
  const std::int64_t width = keypoints * (end_to_end ? 2 : 3);
  finder.add("keypoints", width, keypoints_of_cells(size, keypoints, end_to_end ? 2 : 3));
  add_head(finder, end_to_end, "keypoints", width);
}

void add_turned_output(FinderGraph& finder, BoxLayout layout) {
  finder.add("angle", 1, std::vector<float>(static_cast<std::size_t>(finder.rows()), 0.0f));
  add_head(finder, layout == BoxLayout::kEndToEndObb, "angle", 1);
}

// The best cells' constants, picked by TopK.
void add_movenet_output(FinderGraph& finder, BoxLayout layout, int size) {
  const bool multi = layout == BoxLayout::kMovenetMulti;
  const std::int64_t people = multi ? 6 : 1;
  const std::int64_t keypoints = keypoints_of(layout);
  std::vector<float> points = keypoints_of_cells(size, static_cast<int>(keypoints), 2);
  for (std::size_t i = 0; i < points.size(); i += 2) std::swap(points[i], points[i + 1]);  // y, x
  for (float& value : points) value /= static_cast<float>(size);
  finder.add_best();
  finder.graph()
      .constant("people", {1}, std::vector<std::int64_t>{people})
      .node("TopK", {"score", "people"}, {"top_score", "top_row"}, {{"axis", std::int64_t{1}}})
      .constant("points", {finder.rows(), 2 * keypoints}, points)
      .node("Gather", {"points", "top_row"}, {"top_points"}, {{"axis", std::int64_t{0}}})
      .constant("point_shape", {4}, std::vector<std::int64_t>{0, people, keypoints, 2})
      .node("Reshape", {"top_points", "point_shape"}, {"places"})
      .constant("three", {1}, std::vector<std::int64_t>{3})
      .node("Unsqueeze", {"top_score", "three"}, {"score_once"})
      .constant("score_shape", {4}, std::vector<std::int64_t>{1, 1, keypoints, 1})
      .node("Expand", {"score_once", "score_shape"}, {"point_scores"})
      .node("Concat", {"places", "point_scores"}, {multi ? "all_points" : "output_0"},
            {{"axis", std::int64_t{3}}});
  if (!multi) return finder.add_output("output_0", {-1, 1, keypoints, 3});
  finder.graph()
      .constant("flat_points", {3}, std::vector<std::int64_t>{0, people, 3 * keypoints})
      .node("Reshape", {"all_points", "flat_points"}, {"person_points"})
      .constant("no_batch", {2}, std::vector<std::int64_t>{finder.rows(), 4})
      .node("Reshape", {"boxes_once", "no_batch"}, {"cell_boxes"})
      .node("Gather", {"cell_boxes", "top_row"}, {"top_boxes"}, {{"axis", std::int64_t{0}}})
      .constant("box_shape", {3}, std::vector<std::int64_t>{0, people, 4})
      .node("Reshape", {"top_boxes", "box_shape"}, {"person_boxes"});
  finder.join({"person_points", "person_boxes", "top_score"}, "output_0");
  finder.add_output("output_0", {-1, people, 3 * keypoints + 5});
}

}  // namespace penstock::model_testing
