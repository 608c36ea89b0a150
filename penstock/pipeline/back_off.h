// SPDX-License-Identifier: Apache-2.0
//
// BackOff: how long to wait before a camera is dialled again. 1 s after the first failure, twice as
// long after each further one, 60 s at most, each +-20 % by chance, so that a hundred cameras
// behind one switch don't come back in one moment.
//
//   BackOff back_off(random);
//   wait(back_off.next());                 // failed
//   back_off.lived(how_long);              // a connection that is over
#pragma once

#include <functional>

#include "penstock/base/clock.h"

namespace penstock {

/// 0 to less than 1, each as likely; called from the thread that uses the BackOff.
using RandomPart = std::function<double()>;

class BackOff {
 public:
  static constexpr Nanoseconds kFirst = std::chrono::seconds(1);
  static constexpr Nanoseconds kMost = std::chrono::seconds(60);
  static constexpr double kJitter = 0.2;

  explicit BackOff(RandomPart random) : random_(std::move(random)) {}

  /// The wait after one more failure; of 0.8 to 1.2 times the step.
  Nanoseconds next();
  /// The longest wait, for what only a person can mend.
  Nanoseconds slowest();
  /// A connection gave frames for as long. One that lived longer than the last wait was a good one:
  /// the steps begin anew. A shorter one counts as a failure, so that a camera that drops everybody
  /// after a moment is not dialled every second.
  void lived(Nanoseconds time);

 private:
  Nanoseconds jittered(Nanoseconds step);

  RandomPart random_;
  Nanoseconds step_ = kFirst;
  Nanoseconds last_{};
};

}  // namespace penstock
