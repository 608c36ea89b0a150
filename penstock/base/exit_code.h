// SPDX-License-Identifier: Apache-2.0
//
// Exit codes of the command line: sysexits(3), so that a script or a service manager can tell a
// wrong flag from a missing file from a broken device.
//
//   std::cerr << "penstock: " << error.message() << '\n';
//   return exit_code(error.kind());
#pragma once

#include "penstock/base/error.h"
#include "penstock/base/output_error.h"

namespace penstock {

inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 64;         ///< Wrong flag, value or combination.
inline constexpr int kExitData = 65;          ///< Malformed input, or a hash that does not match.
inline constexpr int kExitNoInput = 66;       ///< A file, model or name does not exist.
inline constexpr int kExitUnavailable = 69;   ///< A device, engine or feature cannot serve this.
inline constexpr int kExitSoftware = 70;      ///< A broken invariant: a bug to report.
inline constexpr int kExitSystem = 71;        ///< A resource or budget is exhausted.
inline constexpr int kExitCannotCreate = 73;  ///< An output file cannot be created.
inline constexpr int kExitIo = 74;            ///< Reading or writing failed.
inline constexpr int kExitPermission = 77;    ///< The operating system refused access.
inline constexpr int kExitConfig = 78;        ///< A configuration file is wrong.

/// The code for a kind of error. kExitCannotCreate and kExitConfig depend on what was being done,
/// so only the caller can choose them.
int exit_code(ErrorKind kind);
/// kExitCannotCreate and kExitIo for what befell an output, else the code of its kind.
int exit_code(const OutputError& error);

}  // namespace penstock
