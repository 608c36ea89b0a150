// SPDX-License-Identifier: Apache-2.0
//
// What was found in overlapping tiles of a frame, as the frame's objects:
//
// 1. An object's edge is cut where it lies on its tile's edge (within kTileEdge of the tile's
// side), and
//    the tile's edge is inside the frame. What has more cut edges than an object of its class in
//    another tile that covers kTileCovered of it, is a part of that, and dropped.
// 2. Objects of a class whose cut edges face each other across a border (the left tile's right edge
//    and the right tile's left edge, or the upper's lower and the lower's upper), that touch there
//    and agree along the border (intersection over union of their extents at least kTileAgree), are
//    parts of one, over any number of tiles. It is the box around them, as sure as the surest.
// 3. Non-maximum suppression, class-aware, over all that is left (contract P01).
#pragma once

#include <vector>

#include "penstock/media/geometry.h"
#include "penstock/records/records.h"
#include "penstock/task/output_decoder.h"

namespace penstock {

struct TileFindings {
  RectI tile;                      ///< In the frame.
  std::vector<Detection> objects;  ///< In pixels of the frame, without keypoints, masks and angles.
};

inline constexpr float kTileEdge = 0.02f;
inline constexpr float kTileCovered = 0.75f;
inline constexpr float kTileAgree = 0.5f;
inline constexpr int kMaxTilePieces = 4096;  ///< Of more the surest are looked at.

/// Score descending, at most options.max_objects; of equal score in the order of the tiles.
std::vector<Detection> merge_tiles(const std::vector<TileFindings>& tiles, int frame_width,
                                   int frame_height, const DecodeOptions& options);

}  // namespace penstock
