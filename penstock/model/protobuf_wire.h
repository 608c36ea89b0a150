// SPDX-License-Identifier: Apache-2.0
//
// WireReader steps through the fields of one protobuf message in memory. Truncated fields, overlong
// varints, field number 0 and the long-deprecated groups end it with ok() == false.
//
//   WireReader reader(bytes);
//   while (reader.next()) {
//     if (reader.is_bytes(7)) nested(reader.bytes());
//   }
//   if (!reader.ok()) return fail(...);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace penstock {

class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> message) : rest_(message) {}

  /// Moves to the next field; false at the end or when the message is broken.
  bool next();
  bool ok() const { return ok_; }

  std::uint64_t field() const { return field_; }
  bool is_varint(std::uint64_t field) const { return field_ == field && type_ == 0; }
  bool is_bytes(std::uint64_t field) const { return field_ == field && type_ == 2; }

  /// Of a varint, fixed32 or fixed64 field.
  std::uint64_t value() const { return value_; }
  /// Of a length-delimited field.
  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  /// Consumes one varint of what is left: packed repeated fields.
  bool read_varint(std::uint64_t& value);
  bool at_end() const { return rest_.empty(); }

 private:
  bool read_fixed(std::size_t size);

  std::span<const std::byte> rest_;
  std::span<const std::byte> bytes_;
  std::uint64_t field_ = 0;
  std::uint64_t value_ = 0;
  unsigned type_ = 0;
  bool ok_ = true;
};

}  // namespace penstock
