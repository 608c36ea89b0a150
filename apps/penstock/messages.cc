// SPDX-License-Identifier: Apache-2.0
#include "apps/penstock/messages.h"

#include <cstdio>

#include "penstock/base/exit_code.h"
#include "penstock/base/printable.h"

namespace penstock {

void say(std::string_view text) { std::printf("%s\n", printable(text).c_str()); }

int show_table(const std::string& table, bool to_stderr, int code) {
  std::FILE* const to = to_stderr ? stderr : stdout;
  std::fputs(table.c_str(), to);
  if (std::fflush(to) == 0 && std::ferror(to) == 0) return code;
  if (code != kExitOk) return code;
  return report(Error(ErrorKind::kIo,
                      "cannot write to the standard output; the closing table did not arrive"),
                kExitIo);
}

int report(const Error& error, int code) {
  std::fprintf(stderr, "penstock: %s\n", printable(error.message()).c_str());
  return code;
}

int report(const Error& error) { return report(error, exit_code(error.kind())); }

int report(const OutputError& error) { return report(error, exit_code(error)); }

}  // namespace penstock
