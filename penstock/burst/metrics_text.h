// SPDX-License-Identifier: Apache-2.0
//
// What a service counts, in Prometheus' text format.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penstock/burst/burst_metrics.h"
#include "penstock/burst/mapped_memory.h"
#include "penstock/burst/session_model.h"

namespace penstock {

/// Counters since the service began, and how it is now: bursts, hot models, memory that is mapped,
/// answers by status, and how long executions took.
std::string metrics_text(const BurstMetrics& metrics, const BurstQuota& quota,
                         const std::vector<std::shared_ptr<SessionModel>>& models);

}  // namespace penstock
