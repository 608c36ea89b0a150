// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/exit_code.h"

namespace penstock {

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
      return kExitUsage;
    case ErrorKind::kNotFound:
      return kExitNoInput;
    case ErrorKind::kPermission:
      return kExitPermission;
    case ErrorKind::kCorrupt:
      return kExitData;
    case ErrorKind::kUnsupported:
    case ErrorKind::kCancelled:
    case ErrorKind::kDeadline:
    case ErrorKind::kDevice:
      return kExitUnavailable;
    case ErrorKind::kExhausted:
      return kExitSystem;
    case ErrorKind::kIo:
      return kExitIo;
    case ErrorKind::kInternal:
      return kExitSoftware;
  }
  return kExitSoftware;
}

int exit_code(const OutputError& error) {
  switch (error.step()) {
    case OutputError::Step::kOther:
      return exit_code(error.kind());
    case OutputError::Step::kCreate:
      return kExitCannotCreate;
    case OutputError::Step::kWrite:
      return kExitIo;
  }
  return kExitSoftware;
}

}  // namespace penstock
