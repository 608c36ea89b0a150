// SPDX-License-Identifier: Apache-2.0
//
// Which objects of a frame a second stage looks at, and where (contract V10).
#pragma once

#include <gst/gst.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gst/object_records.h"
#include "gst/track_table.h"
#include "penstock/media/geometry.h"
#include "penstock/records/records.h"

namespace penstock::gst {

struct ObjectFilter {
  std::vector<std::string> classes{};  ///< Labels; empty: all.
  int min_size = 0;                    ///< Least width and height, pixels.
  guint64 reinfer_interval = 1;        ///< Frames until a tracked object is due again; 0: never.
  std::size_t max_objects = 1;         ///< Looked at in a frame.
};

struct ObjectChoice {
  struct LookedAt {
    std::size_t object;  ///< Its place among the frame's.
    RectI region;        ///< Grown to chroma boundaries, inside the frame.
  };
  std::vector<LookedAt> looked_at;  ///< By place.
  std::vector<std::size_t> kept;    ///< Tracked ones of the filter that are not looked at.
  std::size_t not_due = 0;          ///< Of kept, those that were looked at a short while ago.
  std::size_t left_out = 0;         ///< Due, but more than the limit.
};

/// When the tracked objects of one stream were last looked at.
class ObjectSchedule {
 public:
  explicit ObjectSchedule(ObjectFilter filter) : filter_(std::move(filter)) {}

  /// For the next frame of the stream, its `number`-th. Due is what has no track or was looked at
  /// reinfer_interval frames ago, but nothing that is only predicted: nobody has seen it there. Of
  /// more than the limit the surest are looked at, of equally sure ones the largest.
  ObjectChoice choose(const FrameObjects& objects, guint64 number, int width, int height);
  std::size_t tracks() const { return looked_at_.size(); }

 private:
  bool passes(const Detection& object) const;
  bool is_due(std::optional<guint64> looked_at, guint64 number) const;

  const ObjectFilter filter_;
  TrackTable<std::optional<guint64>> looked_at_;  ///< By track: in which frame.
};

/// The object's box, grown outward to whole pixels and chroma boundaries. Nothing when it has no
/// pixel inside the frame: anybody may have written it.
std::optional<RectI> region_of(const Detection& object, int frame_width, int frame_height);

}  // namespace penstock::gst
