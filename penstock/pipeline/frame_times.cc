// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/frame_times.h"

namespace penstock {

void FrameTimes::set_rate(double rate) {
  stated_length_ = rate > 0 ? GstClockTime(double(GST_SECOND) / rate) : 0;
}

FrameTimes::Time FrameTimes::complete(GstClockTime pts, GstClockTime duration) {
  const bool given = GST_CLOCK_TIME_IS_VALID(pts);
  if (given && previous_given_ && pts > previous_) seen_length_ = pts - previous_;
  const GstClockTime length = stated_length_ > 0 ? stated_length_ : seen_length_;
  const bool first = !GST_CLOCK_TIME_IS_VALID(previous_);
  Time time{pts, duration};
  if (!given && first) time.pts = start_;
  // Two frames out of one AVI packet have one time, or the second has none and the third its.
  if (!first && (!given || pts <= previous_)) time.pts = previous_ + length;
  if (!GST_CLOCK_TIME_IS_VALID(duration) || duration == 0) time.duration = length;
  previous_ = time.pts;
  previous_given_ = given && time.pts == pts;
  return time;
}

}  // namespace penstock
