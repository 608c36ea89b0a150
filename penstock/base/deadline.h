// SPDX-License-Identifier: Apache-2.0
//
// A Deadline is a point on a Clock by which an operation must have ended.
#pragma once

#include "penstock/base/clock.h"

namespace penstock {

class Deadline {
 public:
  /// Never passes.
  static Deadline never() { return Deadline(TimePoint::max()); }
  static Deadline after(const Clock& clock, Nanoseconds timeout) {
    return Deadline(clock.now() + timeout);
  }
  explicit Deadline(TimePoint at) : at_(at) {}

  TimePoint at() const { return at_; }
  bool passed(const Clock& clock) const { return at_ != TimePoint::max() && clock.now() >= at_; }

 private:
  TimePoint at_;
};

}  // namespace penstock
