// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/printable.h"

#include <cstddef>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

/// Bytes of the character at the start of `text`, or 0 when it is to be escaped. Overlong forms
/// are refused where they could hide a control character.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  const std::size_t length = lead >= 0xc2 && lead <= 0xdf   ? 2
                             : lead >= 0xe0 && lead <= 0xef ? 3
                             : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool is_c1 = lead == 0xc2 && byte(1) < 0xa0;
  const bool is_overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  return is_c1 || is_overlong ? 0 : length;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length > 0) {
      out += text.substr(0, length);
    } else {
      out += str_format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(text[0])));
    }
    text.remove_prefix(length > 0 ? length : 1);
  }
  return out;
}

bool is_printable(std::string_view text) { return printable(text) == text; }

}  // namespace penstock
