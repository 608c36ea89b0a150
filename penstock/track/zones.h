// SPDX-License-Identifier: Apache-2.0
//
// ZoneCounter says what tracked objects do with places in the picture (one stream): who is in a
// polygon, who came and went and for how long, who crossed a line and which way. An object stands
// where the middle of its box's lower edge is.
//
//   auto counter = ZoneCounter::create({.zones = {{"door", {{0.1f, 0.2f}, ...}}}, .lines = {}});
//   const ZoneFrame frame = (*counter)->update(objects, pts, width, height);
//
// Points are parts of the picture, 0..1 from its upper left corner, so that a configuration holds
// for every size. Objects without a track id are counted as inside, but neither enter nor leave.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/records/records.h"

namespace penstock {

struct ZonePoint {
  float x = 0, y = 0;
};

struct Zone {
  std::string name;
  std::vector<ZonePoint> corners;     ///< 3..256, not crossing itself.
  std::vector<std::string> labels{};  ///< Classes that count; empty: all.
};

/// Crossed forwards from the left of the way from `from` to `to` to its right, as seen.
struct CountingLine {
  std::string name;
  ZonePoint from, to;
  std::vector<std::string> labels{};
};

/// 256 zones and lines at most.
struct ZoneOptions {
  std::vector<Zone> zones;
  std::vector<CountingLine> lines;
  /// An object that was not told for as long has left, where it was last.
  Nanoseconds forget_after = std::chrono::seconds(2);
  std::size_t max_objects = 4096;  ///< Remembered at a time; further ones are only inside or not.
};

/// Of a place's first 256 labels; further ones count in its sums only.
struct LabelCount {
  std::string label;
  std::uint64_t count = 0;
};

struct ZoneState {
  std::string name;
  std::uint64_t inside = 0;   ///< Objects of this frame.
  std::uint64_t entered = 0;  ///< Since the start.
  std::uint64_t left = 0;
  Nanoseconds longest_dwell{};            ///< Of those inside now.
  Nanoseconds total_dwell{};              ///< Of those that have left.
  std::vector<LabelCount> inside_labels;  ///< By label's name.
};

struct LineState {
  std::string name;
  std::uint64_t forwards = 0;  ///< Since the start.
  std::uint64_t backwards = 0;
  std::vector<LabelCount> forward_labels, backward_labels;
};

enum class ZoneEventKind { kEntered, kLeft, kCrossedForwards, kCrossedBackwards };

struct ZoneEvent {
  ZoneEventKind kind = ZoneEventKind::kEntered;
  std::string place;  ///< The zone's or line's name.
  std::int64_t track_id = 0;
  std::string label;
  Nanoseconds dwell{};  ///< kLeft: how long it was inside.
};

struct ZoneFrame {
  std::vector<ZoneState> zones;  ///< In the order of the options.
  std::vector<LineState> lines;
  std::vector<ZoneEvent> events;  ///< Of this frame.
};

/// Not thread-safe.
class ZoneCounter {
 public:
  /// kInvalidArgument names the place and what is wrong: too few corners, a corner outside 0..1, a
  /// polygon that crosses itself, a line without length, a name that is empty or given twice.
  static Result<std::unique_ptr<ZoneCounter>> create(const ZoneOptions& options);
  virtual ~ZoneCounter() = default;

  /// `time` is the frame's, monotonic within the stream; an earlier one than before counts as the
  /// same.
  virtual ZoneFrame update(std::span<const Detection> objects, Nanoseconds time, int width,
                           int height) = 0;
  /// Forgets objects, which count as neither left nor inside, and keeps the counts (stream-start).
  virtual void reset() = 0;
};

}  // namespace penstock
