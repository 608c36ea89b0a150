// SPDX-License-Identifier: Apache-2.0
//
// A tracker's view of a frame's metadata: objects are read from it, and their tracks written beside
// them as GstAnalytics records that stock elements read (contract G01, G04).
#pragma once

#include <gst/gst.h>

#include <optional>

#include "penstock/base/error.h"
#include "penstock/records/records.h"
#include "penstock/track/tracker.h"

namespace penstock::gst {

/// What track_records() keeps from frame to frame of one stream.
struct TrackedStream {
  /// What the last frame's Analysis was about, without its findings, where the objects come with
  /// one.
  std::optional<FrameResult> about;
};

/// Gives the objects of `buffer`, whose metadata is writable, to `tracker` and adds to its relation
/// meta:
/// - a tracking record for each object with a track, and a relation RELATE_TO from the object to
/// it;
/// - for each track that is told without a detection an object record at its predicted place, with
///   the same. Its tracking record was last seen before `picture.time`.
/// A buffer without a relation meta is one that nobody looked for objects in: it gets predicted
/// objects only, and no relation meta if there are none.
///
/// Where the buffer has an Analysis whose objects' the records are, those are tracked in its full
/// precision, and the buffer gets a copy of it whose objects have the ids. Predicted
/// objects behind such a frame come with an Analysis, too, which is `predicted`.
/// kExhausted: the relation meta takes no more records.
Result<void> track_records(Tracker& tracker, TrackedStream& stream, GstBuffer* buffer,
                           const TrackedPicture& picture);

}  // namespace penstock::gst
