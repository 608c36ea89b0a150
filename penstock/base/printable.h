// SPDX-License-Identifier: Apache-2.0
//
// Text from outside, for terminals: a tensor's name or a label may hold what moves the cursor,
// starts a line that looks like ours or asks the terminal to do something.
//
//   printable("a\x1b[2Jb") == "a\\x1b[2Jb"
#pragma once

#include <string>
#include <string_view>

namespace penstock {

/// Every control character (C0, DEL, C1, line ends) and every byte that is not UTF-8 as \xNN.
std::string printable(std::string_view text);

/// True when printable() would change nothing.
bool is_printable(std::string_view text);

}  // namespace penstock
