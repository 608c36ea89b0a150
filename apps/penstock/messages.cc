// SPDX-License-Identifier: Apache-2.0
#include "apps/penstock/messages.h"

#include <cstdio>

#include "penstock/base/exit_code.h"
#include "penstock/base/printable.h"

namespace penstock {

void say(std::string_view text) { std::printf("%s\n", printable(text).c_str()); }

int report(const Error& error, int code) {
  std::fprintf(stderr, "penstock: %s\n", printable(error.message()).c_str());
  return code;
}

int report(const Error& error) { return report(error, exit_code(error.kind())); }

int report(const OutputError& error) { return report(error, exit_code(error)); }

}  // namespace penstock
