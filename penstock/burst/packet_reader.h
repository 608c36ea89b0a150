// SPDX-License-Identifier: Apache-2.0
//
// A checked walk over the datums of a packet, in private memory: every access is bounded, every
// announced count is compared with what is left before anything is reserved for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/burst/packet_error.h"

namespace penstock {

template <typename Datum>
class PacketReader {
 public:
  explicit PacketReader(std::span<const Datum> datums) : datums_(datums) {}

  /// The first datum, whose packet size must be that of all that came.
  Result<const Datum*, PacketError> begin() {
    if (datums_.empty()) return failed(PacketFault::kEmpty);
    if (datums_[0].kind != Datum::kPacketInformation) return failed(PacketFault::kNoPacketInfo);
    if (datums_[0].packet_information.packet_size != datums_.size()) {
      return failed(PacketFault::kWrongSize);
    }
    return &datums_[next_++];
  }

  /// The next datum, which must be of this kind.
  Result<const Datum*, PacketError> take(typename Datum::Kind kind) {
    if (left() == 0 || datums_[next_].kind != kind) return failed(PacketFault::kUnexpectedKind);
    return &datums_[next_++];
  }

  /// `count` dimensions instead of what `dimensions` had.
  Result<void, PacketError> take_dimensions(typename Datum::Kind kind, std::uint32_t count,
                                            std::vector<std::uint32_t>& dimensions) {
    PENSTOCK_TRY(expect(count));
    dimensions.resize(count);
    for (std::uint32_t& dimension : dimensions) {
      const auto datum = take(kind);
      if (!datum) return std::unexpected(datum.error());
      dimension = (*datum)->dimension_value;
    }
    return {};
  }

  /// That many datums more must be there. Counts are of 32 bits, their sum is taken in 64.
  Result<void, PacketError> expect(std::uint64_t count) const {
    if (count > left()) return failed_at_last(PacketFault::kTooManyParts);
    return {};
  }

  Result<bool, PacketError> boolean(std::uint8_t value) const {
    if (value > 1) return failed_at_last(PacketFault::kBadBoolean);
    return value == 1;
  }

  Result<void, PacketError> end() const {
    if (left() > 0) return failed(PacketFault::kTrailing);
    return {};
  }

  /// Of the datum that take() gave last.
  std::unexpected<PacketError> failed_at_last(PacketFault fault) const {
    return std::unexpected(PacketError{fault, next_ > 0 ? next_ - 1 : 0});
  }

 private:
  std::size_t left() const { return datums_.size() - next_; }
  std::unexpected<PacketError> failed(PacketFault fault) const {
    return std::unexpected(PacketError{fault, next_});
  }

  std::span<const Datum> datums_;
  std::size_t next_ = 0;
};

}  // namespace penstock
