// SPDX-License-Identifier: Apache-2.0
//
// LatencyHistogram: fixed-size log-linear histogram of durations (1 us .. 1000 s, <= 1 % relative
// error of percentiles, constant memory). Thread-safe for concurrent record().
//
// StageTimes is what one frame spent in each stage, on the monotonic clock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "penstock/base/clock.h"

namespace penstock {

struct StageTimes {
  Nanoseconds queue{};       ///< Waiting for a worker.
  Nanoseconds preprocess{};  ///< Frame to tensor.
  Nanoseconds infer{};       ///< Engine run.
  Nanoseconds decode{};      ///< Output tensors to records.
};

class LatencyHistogram {
 public:
  void record(Nanoseconds value);
  std::uint64_t count() const;
  /// `quantile` in 0..1; zero when empty. Upper edge of the bucket that holds the quantile.
  Nanoseconds percentile(double quantile) const;
  struct Bucket {
    Nanoseconds upper;
    std::uint64_t count;
  };
  /// Non-empty buckets in ascending order.
  std::vector<Bucket> buckets() const;

 private:
  static constexpr int kBuckets = 128 * 31;
  std::array<std::atomic<std::uint64_t>, kBuckets> counts_{};
};

}  // namespace penstock
