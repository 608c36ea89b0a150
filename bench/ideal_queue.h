// SPDX-License-Identifier: Apache-2.0
//
// What the latency of paced frames would have been behind a queue without any cost of its own. What
// is measured above it is the program's; what it has itself above a run is the machine's, which was
// too slow for the load for a while.
#pragma once

#include <cstddef>
#include <vector>

#include "penstock/base/clock.h"

namespace penstock::bench {

struct Arrival {
  TimePoint at;
  Nanoseconds work{};  ///< As long as a worker was busy with it.
  bool counts = true;  ///< In the latencies; the work does in any case.
};

/// 95th percentile of the latencies, if one queue in order of arrival stood before `workers` (at
/// least 1). Zero without arrivals.
Nanoseconds ideal_queue_p95(std::vector<Arrival> arrivals, std::size_t workers);

}  // namespace penstock::bench
