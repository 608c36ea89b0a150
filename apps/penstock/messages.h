// SPDX-License-Identifier: Apache-2.0
//
// What the commands say. Names, labels and licences come from files that anybody may have written,
// so everything goes through printable().
#pragma once

#include <string>
#include <string_view>

#include "penstock/base/error.h"
#include "penstock/base/output_error.h"

namespace penstock {

/// A line on stdout.
void say(std::string_view text);
/// The closing table of a run, to stdout or to stderr where stdout has an output. The exit code:
/// kExitIo, and a message, instead of kExitOk when it did not arrive, also because its reader is
/// gone.
int show_table(const std::string& table, bool to_stderr, int code);
/// "penstock: ..." on stderr; answers the exit code.
int report(const Error& error);
int report(const OutputError& error);
int report(const Error& error, int code);

}  // namespace penstock
