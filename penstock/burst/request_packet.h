// SPDX-License-Identifier: Apache-2.0
//
// A request as the datums that cross the queue:
//
//   packetInformation {inputOperandInformation dimension*}* {outputOperandInformation dimension*}*
//   poolIdentifier* measureTiming
#pragma once

#include <span>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/burst/burst_types.h"
#include "penstock/burst/datum.h"
#include "penstock/burst/packet_error.h"

namespace penstock {

/// 2 + inputs + outputs + pools + all dimensions; every byte without a meaning is zero. May be
/// longer than a queue holds. An argument without a value is written with no location and no
/// dimensions.
std::vector<FmqRequestDatum> serialise(const BurstRequest& request);
/// The same instead of what `packet` had, whose room is used again.
void serialise_into(const BurstRequest& request, std::vector<FmqRequestDatum>& packet);

/// Checks the grammar and each value's range, not whether operands lie in their pools. `datums` is
/// private memory; padding is ignored.
Result<BurstRequest, PacketError> parse_request(std::span<const FmqRequestDatum> datums);
/// The same instead of what `request` had, whose room is used again. On an error it has anything.
Result<void, PacketError> parse_request_into(std::span<const FmqRequestDatum> datums,
                                             BurstRequest& request);

}  // namespace penstock
