// SPDX-License-Identifier: Apache-2.0
//
// Addresses as text: which kind they are, and what of them anybody may see.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock {

/// rtsp:// and rtsps://.
bool is_rtsp_address(std::string_view text);

/// Where an address has its password, as offsets; empty when it has none.
struct PasswordSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
};
PasswordSpan password_in(std::string_view address);

/// An address without its password: "rtsp://user:***@host/stream". What is wrong with an address
/// may be its password, so that of a malformed one goes, too. Text without "://" stays as it is.
std::string without_password(std::string_view address);

}  // namespace penstock
