// SPDX-License-Identifier: Apache-2.0
//
// FrameTimes completes the times of frames on their way into a video file. An MP4 needs a time for
// every frame, later than that of the frame before, which a bare H.264 stream does not give and
// packed B-frames in an AVI share, and a length for the last one, which no next frame gives: with a
// length of zero readers leave that frame out.
//
//   FrameTimes times;
//   times.set_rate(25);                                  // what the caps say; 0: unknown
//   const FrameTimes::Time time = times.complete(pts, duration);
#pragma once

#include <gst/gst.h>

namespace penstock {

class FrameTimes {
 public:
  /// What a frame gets for a length when neither its source nor its neighbours tell.
  static constexpr GstClockTime kAssumedLength = GST_SECOND / 25;

  struct Time {
    GstClockTime pts = GST_CLOCK_TIME_NONE;
    GstClockTime duration = GST_CLOCK_TIME_NONE;
  };

  /// Frames a second, 0 when the source does not say.
  void set_rate(double rate);
  /// Where frames without times begin.
  void set_start(GstClockTime start) { start_ = start; }

  /// What is given stays; what is missing (GST_CLOCK_TIME_NONE, or no length) and a time that is
  /// not later than the one before follow the frame before at the stated rate, else at the distance
  /// of the last two frames that had times.
  Time complete(GstClockTime pts, GstClockTime duration);

 private:
  GstClockTime stated_length_ = 0;
  GstClockTime seen_length_ = kAssumedLength;
  GstClockTime start_ = 0;
  GstClockTime previous_ = GST_CLOCK_TIME_NONE;
  bool previous_given_ = false;
};

}  // namespace penstock
