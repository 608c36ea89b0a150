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
  Time time{pts, duration};
  if (!given) time.pts = GST_CLOCK_TIME_IS_VALID(previous_) ? previous_ + length : start_;
  if (!GST_CLOCK_TIME_IS_VALID(duration) || duration == 0) time.duration = length;
  previous_ = time.pts;
  previous_given_ = given;
  return time;
}

}  // namespace penstock
