// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/protobuf_wire.h"

namespace penstock {

bool WireReader::read_varint(std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (rest_.empty()) return false;
    const auto byte = std::to_integer<std::uint64_t>(rest_.front());
    rest_ = rest_.subspan(1);
    // The tenth byte holds bit 63 only.
    if (shift == 63 && byte > 1) return false;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool WireReader::read_fixed(std::size_t size) {
  if (rest_.size() < size) return false;
  value_ = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value_ |= std::to_integer<std::uint64_t>(rest_[i]) << (8 * i);
  }
  rest_ = rest_.subspan(size);
  return true;
}

bool WireReader::next() {
  if (!ok_ || rest_.empty()) return false;
  std::uint64_t key = 0;
  ok_ = read_varint(key) && key >> 3 != 0 && key >> 3 <= 0x1fffffff;
  field_ = key >> 3;
  type_ = static_cast<unsigned>(key & 7);
  bytes_ = {};
  std::uint64_t size = 0;
  switch (type_) {
    case 0:
      ok_ = ok_ && read_varint(value_);
      break;
    case 1:
      ok_ = ok_ && read_fixed(8);
      break;
    case 5:
      ok_ = ok_ && read_fixed(4);
      break;
    case 2:
      ok_ = ok_ && read_varint(size) && size <= rest_.size();
      if (ok_) {
        bytes_ = rest_.first(static_cast<std::size_t>(size));
        rest_ = rest_.subspan(static_cast<std::size_t>(size));
      }
      break;
    default:
      ok_ = false;
  }
  return ok_;
}

}  // namespace penstock
