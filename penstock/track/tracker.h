// SPDX-License-Identifier: Apache-2.0
//
// Tracker gives the objects of one stream ids that last (contract G04). It looks at boxes, classes
// and scores only, never at pixels. ByteTrack's scheme: each track's box is predicted by a Kalman
// filter; sure detections are assigned to tracks first, unsure ones only to tracks that lack one,
// and what is still over begins tracks of its own.
//
// What it does with a detection that begins a track, and with a track that lacks one, depends on
// how such went in this stream lately: an id is given at once where new objects mostly come true,
// else after `confirm_frames`; a track is told at its predicted place where lacking detections
// mostly came back at once, so where the detector misses objects, not where they leave.
//
//   auto tracker = Tracker::create({}).value();
//   for (each frame) objects = tracker->update(std::move(objects), {width, height, running_time});
//
// One a stream; not thread-safe. Memory and time are bounded by `max_tracks`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/records/records.h"

namespace penstock {

struct TrackerOptions {
  float sure_score = 0.5f;    ///< Detections from here on may begin tracks.
  float unsure_score = 0.1f;  ///< Those below are not looked at.
  float match_iou = 0.2f;     ///< A sure detection and a predicted box overlap by as much.
  float unsure_match_iou = 0.5f;
  int confirm_frames = 2;        ///< Detections that a track needs before it gets an id; 1: none.
  int max_missed_frames = 30;    ///< A track without detections lives on for as long.
  int predicted_frames = 3;      ///< And may be told at its predicted place for as long, 0..1000.
  std::size_t max_tracks = 512;  ///< 1..4096; further detections get no id.
  std::int64_t first_id = 1;     ///< 1..2^62: where an earlier tracker of the source left off.
};

/// The frame that a call is about; `time` is told back in TrackTimes and decides nothing.
struct TrackedPicture {
  int width = 0, height = 0;  ///< Pixels.
  Nanoseconds time{};
};

/// When an object was detected.
struct TrackTimes {
  Nanoseconds first_seen{}, last_seen{};
};

class Tracker {
 public:
  /// kInvalidArgument names the option that is out of range.
  static Result<std::unique_ptr<Tracker>> create(const TrackerOptions& options);
  virtual ~Tracker() = default;

  /// Takes one frame's detections. They come back in their order, those of tracks with `track_id`;
  /// behind them come tracks without a detection at their predicted places, with `predicted` set.
  /// Boxes that are not finite or empty, and what is beyond the first `max_tracks` sure and as many
  /// unsure ones, is left alone. Predicted boxes are clipped to the picture; one that lies mostly
  /// outside is not told.
  virtual std::vector<Detection> update(std::vector<Detection> detections,
                                        const TrackedPicture& picture) = 0;

  /// For a frame that nothing looked for objects in: the tracks that were told last time, at their
  /// predicted places. Not counted as missed.
  virtual std::vector<Detection> predict(const TrackedPicture& picture) = 0;

  /// Of what update() or predict() answered last, by index; empty times for what has no track id.
  virtual std::span<const TrackTimes> times() const = 0;

  /// Forgets all but the ids, which go on, so that none is used twice (stream-start).
  virtual void reset() = 0;

  virtual std::size_t tracks() const = 0;
};

}  // namespace penstock
