// SPDX-License-Identifier: Apache-2.0
//
// What a sequence of datums that is no packet has wrong. The receiver answers all of them alike,
// with kGeneralFailure; the difference is for logs and tests.
#pragma once

#include <cstddef>
#include <string>

namespace penstock {

enum class PacketFault {
  kEmpty,           ///< No datum at all.
  kNoPacketInfo,    ///< The first datum is not the packet's information.
  kWrongSize,       ///< The packet says another number of datums than came.
  kTooManyParts,    ///< It announces more operands, pools or dimensions than datums are left.
  kUnexpectedKind,  ///< Another datum stands where the grammar wants one.
  kTrailing,        ///< Datums are left at the end.
  kBadBoolean,      ///< A boolean is neither 0 nor 1.
  kBadMeasure,      ///< measureTiming is neither NO nor YES.
  kBadStatus,       ///< No status has this number.
};

struct PacketError {
  PacketFault fault;
  std::size_t datum = 0;  ///< Index of the datum that it was found at.
  bool operator==(const PacketError&) const = default;
};

/// "datum 3: a boolean that is neither 0 nor 1".
std::string message_of(const PacketError& error);

}  // namespace penstock
