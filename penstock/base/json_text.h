// SPDX-License-Identifier: Apache-2.0
//
// JSON text (RFC 8259) appended to a string, for the lines and reports that Penstock writes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock {

/// `text` quoted and escaped. Bytes that are not UTF-8 become U+FFFD, one for each maximal
/// ill-formed part, so that the result is always valid.
void append_json_string(std::string& out, std::string_view text);

/// Shortest decimal that reads back as the same value, without an exponent; `null` when not finite.
void append_json_number(std::string& out, float value);
void append_json_number(std::string& out, double value);

void append_json_number(std::string& out, std::int64_t value);
void append_json_number(std::string& out, std::uint64_t value);
inline void append_json_number(std::string& out, int value) {
  append_json_number(out, static_cast<std::int64_t>(value));
}

}  // namespace penstock
