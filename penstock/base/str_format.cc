// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/str_format.h"

namespace penstock {

std::string str_vformat(std::string_view format, std::format_args args) {
  return std::vformat(format, args);
}

}  // namespace penstock
