// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace penstock::testing {

/// Executions of a burst_peer that frees. Its test counts them.
inline constexpr int kFreeingExecutions = 400;

}  // namespace penstock::testing
