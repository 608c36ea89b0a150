// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/error.h"

#include <ranges>

namespace penstock {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
      return "invalid-argument";
    case ErrorKind::kNotFound:
      return "not-found";
    case ErrorKind::kPermission:
      return "permission";
    case ErrorKind::kCorrupt:
      return "corrupt";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kExhausted:
      return "exhausted";
    case ErrorKind::kCancelled:
      return "cancelled";
    case ErrorKind::kDeadline:
      return "deadline";
    case ErrorKind::kIo:
      return "io";
    case ErrorKind::kDevice:
      return "device";
    case ErrorKind::kInternal:
      return "internal";
  }
  return "unknown";
}

std::string Error::message() const {
  std::string text;
  for (const std::string& what : context_ | std::views::reverse) {
    text += what;
    text += ": ";
  }
  text += message_;
  return text;
}

}  // namespace penstock
