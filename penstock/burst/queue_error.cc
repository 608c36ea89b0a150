// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/queue_error.h"

namespace penstock {

std::string_view to_string(QueueError error) {
  switch (error) {
    case QueueError::kEmpty:
      return "empty";
    case QueueError::kFull:
      return "full";
    case QueueError::kTooMany:
      return "too-many";
    case QueueError::kOverflow:
      return "overflow";
    case QueueError::kDeadline:
      return "deadline";
    case QueueError::kNoDeadline:
      return "no-deadline";
    case QueueError::kNoBits:
      return "no-bits";
    case QueueError::kPeerGone:
      return "peer-gone";
    case QueueError::kStopped:
      return "stopped";
    case QueueError::kCorrupt:
      return "corrupt";
    case QueueError::kUnsettled:
      return "unsettled";
    case QueueError::kNotBegun:
      return "not-begun";
  }
  return "unknown";
}

}  // namespace penstock
