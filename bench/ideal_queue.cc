// SPDX-License-Identifier: Apache-2.0
#include "bench/ideal_queue.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "penstock/observe/latency.h"

namespace penstock::bench {

Nanoseconds ideal_queue_p95(std::vector<Arrival> arrivals, std::size_t workers) {
  std::ranges::sort(arrivals, {}, &Arrival::at);
  std::vector<TimePoint> free_at(workers);
  LatencyHistogram latency;
  for (const Arrival& arrival : arrivals) {
    TimePoint& worker = *std::ranges::min_element(free_at);
    worker = std::max(worker, arrival.at) + arrival.work;
    if (arrival.counts) latency.record(worker - arrival.at);
  }
  return latency.percentile(0.95);
}

}  // namespace penstock::bench
