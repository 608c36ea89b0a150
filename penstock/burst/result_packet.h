// SPDX-License-Identifier: Apache-2.0
//
// A result as the datums that cross the queue:
//
//   packetInformation {operandInformation dimension*}* executionTiming
#pragma once

#include <span>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/burst/burst_types.h"
#include "penstock/burst/datum.h"
#include "penstock/burst/packet_error.h"

namespace penstock {

/// 2 + shapes + all dimensions, of sanitised(result); every byte without a meaning is zero.
std::vector<FmqResultDatum> serialise(const BurstResult& result);

/// Checks the grammar and each value's range; returns it sanitised. `datums` is private memory.
Result<BurstResult, PacketError> parse_result(std::span<const FmqResultDatum> datums);

}  // namespace penstock
