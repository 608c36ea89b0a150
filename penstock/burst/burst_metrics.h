// SPDX-License-Identifier: Apache-2.0
//
// What a service counts over all of its bursts. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "penstock/burst/burst_types.h"
#include "penstock/observe/latency.h"

namespace penstock {

struct BurstMetrics {
  std::atomic<std::uint64_t> bursts{0};                   ///< Configured, ever.
  std::atomic<std::int64_t> live_bursts{0};               ///< Now.
  std::atomic<std::uint64_t> refused_bursts{0};           ///< Not configured.
  std::atomic<std::uint64_t> malformed{0};                ///< Packets that were no request.
  std::atomic<std::uint64_t> direct{0};                   ///< Requests by the direct path.
  std::array<std::atomic<std::uint64_t>, 9> by_status{};  ///< Answers, by ErrorStatus.
  LatencyHistogram execution;  ///< From taking a request to having its result, of all answers.

  void count(ErrorStatus status) {
    by_status.at(static_cast<std::size_t>(status)).fetch_add(1, std::memory_order_relaxed);
  }
};

}  // namespace penstock
