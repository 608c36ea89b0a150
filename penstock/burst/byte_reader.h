// SPDX-License-Identifier: Apache-2.0
//
// Takes little-endian values out of bytes that came from elsewhere. What is not there reads as
// zero, and the first fault stays: ask is_sound() before anything that was read is used.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <std::integral T>
  T number() {
    std::make_unsigned_t<T> bits = 0;
    const auto taken = raw(sizeof(T));
    for (std::size_t i = 0; i < taken.size(); ++i) {
      bits = static_cast<std::make_unsigned_t<T>>(
          bits | static_cast<std::make_unsigned_t<T>>(std::to_integer<std::uint64_t>(taken[i])
                                                      << (8 * i)));
    }
    return static_cast<T>(bits);
  }
  /// A length of 16 bits, then as many bytes.
  std::string text(std::size_t most) {
    const std::size_t size = number<std::uint16_t>();
    if (size > most) {
      refuse(str_format("a text of {} bytes", size));
      return {};
    }
    const auto taken = raw(size);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  /// Empty when there are not so many.
  std::span<const std::byte> raw(std::size_t size) {
    if (size > left()) {
      refuse(str_format("it is cut: {} bytes are missing", size - left()));
      return {};
    }
    const auto taken = bytes_.subspan(at_, size);
    at_ += size;
    return taken;
  }
  std::size_t left() const { return is_sound() ? bytes_.size() - at_ : 0; }

  void refuse(std::string why) {
    if (fault_.empty()) fault_ = std::move(why);
  }
  bool is_sound() const { return fault_.empty(); }
  const std::string& fault() const { return fault_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::string fault_;
};

}  // namespace penstock
