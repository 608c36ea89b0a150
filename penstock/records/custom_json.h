// SPDX-License-Identifier: Apache-2.0
//
// What a program says of a frame itself: one JSON value, beside the records (docs/json.md).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "penstock/base/error.h"
#include "penstock/records/records.h"

namespace penstock {

/// Longest value of a frame, in bytes.
inline constexpr std::size_t kMostCustomBytes = 64 * 1024;

/// The value without blanks between its parts, so on one line. kCorrupt: `text` is no JSON value
/// (RFC 8259). kExhausted: it is longer than kMostCustomBytes.
Result<std::string> compact_json(std::string_view text);

/// The custom values of one frame's branches as one: compact, empty where none has any, the value
/// itself where all that have one agree, else {"branches":[...]} with each distinct value once, in
/// order. Errors are compact_json()'s and name the value by its number.
Result<std::string> join_custom(std::span<const std::string> values);

/// As to_json_line(result), with the key `custom` at its end if `custom` is not empty; it has to
/// be compact.
std::string to_json_line(const FrameResult& result, std::string_view custom);

}  // namespace penstock
