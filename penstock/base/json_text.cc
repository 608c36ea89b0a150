// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/json_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>

namespace penstock {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// Length of the well-formed UTF-8 sequence at the start of `text` (Unicode table 3-7), or 0; then
// `ill_formed` is the length of the maximal part to replace.
std::size_t sequence_length(std::string_view text, std::size_t& ill_formed) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  ill_formed = 1;
  const unsigned lead = byte(0);
  std::size_t length;
  unsigned low = 0x80;
  unsigned high = 0xbf;
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    if (lead == 0xe0) low = 0xa0;   // overlong
    if (lead == 0xed) high = 0x9f;  // surrogates
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    if (lead == 0xf0) low = 0x90;   // overlong
    if (lead == 0xf4) high = 0x8f;  // beyond U+10FFFF
  } else {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i, low = 0x80, high = 0xbf) {
    if (i >= text.size() || byte(i) < low || byte(i) > high) return 0;
    if (i + 1 < length) ill_formed = i + 1;
  }
  return length;
}

void append_escape(std::string& out, unsigned char control) {
  switch (control) {
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      constexpr std::string_view kHex = "0123456789abcdef";
      out += "\\u00";
      out += kHex[control >> 4];
      out += kHex[control & 15];
  }
}

// 400 characters hold the longest plain decimal of a double (1.8e308, or 4.9e-324 written out).
template <typename T>
void append_number(std::string& out, T value, auto... format) {
  std::array<char, 400> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format...);
  out.append(text.data(), end.ptr);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t plain = 0;  // start of what can be appended as it is
  std::size_t i = 0;
  const auto flush = [&] { out.append(text.substr(plain, i - plain)); };
  while (i < text.size()) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\') {
      ++i;
      continue;
    }
    std::size_t consumed = 1;
    if (byte >= 0x80) {
      std::size_t ill_formed = 0;
      if (const std::size_t length = sequence_length(text.substr(i), ill_formed); length > 0) {
        i += length;
        continue;
      }
      flush();
      out += kReplacement;
      consumed = ill_formed;
    } else {
      flush();
      if (byte < 0x20) {
        append_escape(out, byte);
      } else {
        out += '\\';
        out += text[i];
      }
    }
    i += consumed;
    plain = i;
  }
  flush();
  out += '"';
}

void append_json_number(std::string& out, float value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  append_number(out, value, std::chars_format::fixed);
}

void append_json_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  append_number(out, value, std::chars_format::fixed);
}

void append_json_number(std::string& out, std::int64_t value) { append_number(out, value); }
void append_json_number(std::string& out, std::uint64_t value) { append_number(out, value); }

}  // namespace penstock
