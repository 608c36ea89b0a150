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
/// The same instead of what `packet` had, whose room is used again.
void serialise_into(const BurstResult& result, std::vector<FmqResultDatum>& packet);

/// Checks the grammar and each value's range; returns it sanitised. `datums` is private memory.
Result<BurstResult, PacketError> parse_result(std::span<const FmqResultDatum> datums);
/// The same instead of what `result` had, whose room is used again. On an error it has anything.
Result<void, PacketError> parse_result_into(std::span<const FmqResultDatum> datums,
                                            BurstResult& result);

}  // namespace penstock
