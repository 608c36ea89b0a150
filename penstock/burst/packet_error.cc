// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/packet_error.h"

#include <string_view>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

std::string_view text_of(PacketFault fault) {
  switch (fault) {
    case PacketFault::kEmpty:
      return "a packet without datums";
    case PacketFault::kNoPacketInfo:
      return "a packet that does not begin with its information";
    case PacketFault::kWrongSize:
      return "a packet of another size than it says";
    case PacketFault::kTooManyParts:
      return "more parts are announced than datums are left";
    case PacketFault::kUnexpectedKind:
      return "another kind of datum is due here";
    case PacketFault::kTrailing:
      return "datums after the packet's end";
    case PacketFault::kBadBoolean:
      return "a boolean that is neither 0 nor 1";
    case PacketFault::kBadMeasure:
      return "a timing choice that is neither 0 nor 1";
    case PacketFault::kBadStatus:
      return "an unknown status";
  }
  return "an unknown fault";
}

}  // namespace

std::string message_of(const PacketError& error) {
  return str_format("datum {}: {}", error.datum, text_of(error.fault));
}

}  // namespace penstock
