// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/back_off.h"

#include <algorithm>

namespace penstock {

Nanoseconds BackOff::jittered(Nanoseconds step) {
  const double factor = 1 - kJitter + 2 * kJitter * random_();
  last_ = Nanoseconds(Nanoseconds::rep(double(step.count()) * factor));
  return last_;
}

Nanoseconds BackOff::next() {
  const Nanoseconds wait = jittered(step_);
  step_ = std::min(step_ * 2, kMost);
  return wait;
}

Nanoseconds BackOff::slowest() {
  step_ = kMost;
  return jittered(kMost);
}

void BackOff::lived(Nanoseconds time) {
  if (time > last_) step_ = kFirst;
}

}  // namespace penstock
