// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/source_address.h"

namespace penstock {

bool is_rtsp_address(std::string_view text) {
  return text.starts_with("rtsp://") || text.starts_with("rtsps://");
}

PasswordSpan password_in(std::string_view address) {
  const std::size_t scheme = address.find("://");
  if (scheme == std::string_view::npos) return {};
  const std::size_t begin = scheme + 3;
  const std::size_t colon = address.find(':', begin);
  std::size_t authority = address.find_first_of("/?#", begin);
  if (authority == std::string_view::npos) authority = address.size();
  std::size_t at = address.substr(0, authority).rfind('@');
  if (at == std::string_view::npos || at < begin) {
    // "user:pass/word@host": a "/" that should have been written as %2F. Told from "host:554/a@b"
    // by what follows the colon.
    if (colon >= authority) return {};
    const std::string_view port = address.substr(colon + 1, authority - colon - 1);
    const bool is_port =
        !port.empty() && port.find_first_not_of("0123456789") == std::string_view::npos;
    if (is_port || address[begin] == '[') return {};
    at = address.rfind('@');
    if (at == std::string_view::npos || at < authority) return {};
  }
  return colon < at ? PasswordSpan{colon + 1, at} : PasswordSpan{};
}

std::string without_password(std::string_view address) {
  std::string text(address);
  const PasswordSpan password = password_in(address);
  if (password.end > password.begin)
    text.replace(password.begin, password.end - password.begin, "***");
  return text;
}

}  // namespace penstock
