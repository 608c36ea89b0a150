// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/tile_merge.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>

#include "penstock/task/nms.h"

namespace penstock {
namespace {

struct Extent {
  float low = 0, high = 0;
  float length() const { return high - low; }
};

Extent common(Extent a, Extent b) { return {std::max(a.low, b.low), std::min(a.high, b.high)}; }

/// Along one axis: where the object is, and at which of its tile's edges it is cut.
struct Side {
  Extent object;
  Extent tile;
  bool cut_low = false, cut_high = false;

  float reach() const { return kTileEdge * tile.length(); }
};

Side side_of(float start, float length, int tile_start, int tile_length, int frame) {
  Side side{.object = {start, start + length},
            .tile = {static_cast<float>(tile_start), static_cast<float>(tile_start + tile_length)}};
  side.cut_low = tile_start > 0 && side.object.low <= side.tile.low + side.reach();
  side.cut_high =
      tile_start + tile_length < frame && side.object.high >= side.tile.high - side.reach();
  return side;
}

struct Piece {
  const Detection* object;
  std::size_t tile;
  Side x, y;

  int cuts() const { return int{x.cut_low} + int{x.cut_high} + int{y.cut_low} + int{y.cut_high}; }
};

bool is_other(const Piece& a, const Piece& b) {
  return a.tile != b.tile && a.object->class_id == b.object->class_id;
}

bool covers(const Piece& whole, const Piece& part) {
  const float width = common(whole.x.object, part.x.object).length();
  const float height = common(whole.y.object, part.y.object).length();
  const float area = part.x.object.length() * part.y.object.length();
  return width > 0 && height > 0 && width * height >= kTileCovered * area;
}

/// `low` ends at its tile's border where `high` begins.
bool face(const Side& low, const Side& high, const Side& along_low, const Side& along_high) {
  if (!low.cut_high || !high.cut_low || low.tile.low >= high.tile.low) return false;
  if (high.object.low > low.object.high + low.reach() + high.reach()) return false;
  const float both = common(along_low.object, along_high.object).length();
  const float either = std::max(along_low.object.high, along_high.object.high) -
                       std::min(along_low.object.low, along_high.object.low);
  return both >= kTileAgree * either;
}

bool are_parts(const Piece& a, const Piece& b) {
  return face(a.x, b.x, a.y, b.y) || face(b.x, a.x, b.y, a.y) || face(a.y, b.y, a.x, b.x) ||
         face(b.y, a.y, b.x, a.x);
}

std::vector<Piece> pieces_of(const std::vector<TileFindings>& tiles, int width, int height) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const RectI& tile = tiles[i].tile;
    for (const Detection& object : tiles[i].objects) {
      pieces.push_back({.object = &object,
                        .tile = i,
                        .x = side_of(object.x, object.width, tile.x, tile.width, width),
                        .y = side_of(object.y, object.height, tile.y, tile.height, height)});
    }
  }
  if (pieces.size() <= kMaxTilePieces) return pieces;
  std::ranges::stable_sort(pieces, std::ranges::greater{},
                           [](const Piece& piece) { return piece.object->confidence; });
  pieces.erase(pieces.begin() + kMaxTilePieces, pieces.end());
  return pieces;
}

std::vector<Piece> without_covered(const std::vector<Piece>& pieces) {
  std::vector<Piece> left;
  for (const Piece& piece : pieces) {
    const bool covered = std::ranges::any_of(pieces, [&](const Piece& other) {
      return piece.cuts() > other.cuts() && is_other(piece, other) && covers(other, piece);
    });
    if (!covered) left.push_back(piece);
  }
  return left;
}

/// Of each piece the first of those that it belongs together with.
std::vector<std::size_t> groups_of(const std::vector<Piece>& pieces) {
  std::vector<std::size_t> group(pieces.size());
  std::iota(group.begin(), group.end(), std::size_t{0});
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (std::size_t k = i + 1; k < pieces.size(); ++k) {
      if (group[i] == group[k] || !is_other(pieces[i], pieces[k])) continue;
      if (!are_parts(pieces[i], pieces[k])) continue;
      const auto [first, second] = std::minmax(group[i], group[k]);
      std::ranges::replace(group, std::size_t{second}, std::size_t{first});
    }
  }
  return group;
}

Detection joined(const std::vector<Piece>& pieces, const std::vector<std::size_t>& group,
                 std::size_t first) {
  Extent x = pieces[first].x.object, y = pieces[first].y.object;
  const Detection* surest = pieces[first].object;
  for (std::size_t i = first + 1; i < pieces.size(); ++i) {
    if (group[i] != first) continue;
    x = {std::min(x.low, pieces[i].x.object.low), std::max(x.high, pieces[i].x.object.high)};
    y = {std::min(y.low, pieces[i].y.object.low), std::max(y.high, pieces[i].y.object.high)};
    if (pieces[i].object->confidence > surest->confidence) surest = pieces[i].object;
  }
  Detection object = *surest;
  object.x = x.low;
  object.y = y.low;
  object.width = x.length();
  object.height = y.length();
  return object;
}

}  // namespace

std::vector<Detection> merge_tiles(const std::vector<TileFindings>& tiles, int frame_width,
                                   int frame_height, const DecodeOptions& options) {
  const std::vector<Piece> pieces = without_covered(pieces_of(tiles, frame_width, frame_height));
  const std::vector<std::size_t> group = groups_of(pieces);
  std::vector<Detection> objects;
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (group[i] != i) continue;
    const Detection& object = objects.emplace_back(joined(pieces, group, i));
    candidates.push_back({.record = {object.x, object.y, object.x + object.width,
                                     object.y + object.height, object.confidence, object.class_id},
                          .index = static_cast<std::int32_t>(objects.size() - 1)});
  }
  non_maximum_suppression(candidates, options);
  std::vector<Detection> merged;
  for (const Candidate& candidate : candidates) {
    merged.push_back(std::move(objects[static_cast<std::size_t>(candidate.index)]));
  }
  return merged;
}

}  // namespace penstock
