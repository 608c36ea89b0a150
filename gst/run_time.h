// SPDX-License-Identifier: Apache-2.0
//
// RunTime is how long a frame's inference takes by measurement, for LATENCY where no frame rate
// says more (contract L05).
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>

#include "penstock/observe/latency.h"

namespace penstock::gst {

class RunTime {
 public:
  /// One more frame took `run`. True when told() has changed: that is looked at after 1, 2, 4, 8,
  /// ... frames only, and changes of less than an eighth are none, so that pipelines ask again
  /// rarely. One thread at a time.
  bool add(Nanoseconds run) {
    runs_.record(run);
    if (!std::has_single_bit(++count_)) return false;
    const std::int64_t now = runs_.percentile(0.99).count();
    const std::int64_t before = told_;
    if (before != 0 && std::abs(now - before) <= before / 8) return false;
    told_ = now;
    return true;
  }
  /// What 99 % of the frames took at most; zero before the first. Any thread.
  Nanoseconds told() const { return Nanoseconds(told_.load()); }

 private:
  LatencyHistogram runs_;
  std::uint64_t count_ = 0;
  std::atomic<std::int64_t> told_{0};
};

}  // namespace penstock::gst
