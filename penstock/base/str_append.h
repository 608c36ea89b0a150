// SPDX-License-Identifier: Apache-2.0
//
// str_format onto the end of a text that grows line by line.
#pragma once

#include <format>
#include <string>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {

/// Appends to `out`; else as str_format.
template <typename... Args>
void str_append(std::string& out, std::format_string<Args...> format, Args&&... args) {
  out += str_format(format, std::forward<Args>(args)...);
}

}  // namespace penstock
