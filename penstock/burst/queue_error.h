// SPDX-License-Identifier: Apache-2.0
//
// Why a queue operation did nothing. Each is returned with the queue as it was before.
#pragma once

#include <string_view>

namespace penstock {

enum class QueueError {
  kEmpty,       ///< Fewer elements are there than were asked for.
  kFull,        ///< There is room for fewer elements than were given.
  kTooMany,     ///< More elements than the queue can ever hold: no later try will do.
  kOverflow,    ///< Unsynchronised reader: the writer lapped it. It now stands at the newer half.
  kDeadline,    ///< The deadline passed first.
  kNoDeadline,  ///< Deadline::never() was given: every wait has an end.
  kNoBits,      ///< A notification mask is 0: nobody could ever wake the waiter.
  kPeerGone,    ///< The lifeline says that the process at the other end is gone.
  kStopped,     ///< The lifeline was cut by this process itself.
  kCorrupt,     ///< The peer broke the protocol. This end is poisoned: all later calls say so, too.
  kUnsettled,   ///< The creator's end was described to a peer and settle() has not been called.
  kNotBegun,    ///< commit without begin, or of more than was begun.
};

/// Stable lower-case name, e.g. "peer-gone".
std::string_view to_string(QueueError error);

}  // namespace penstock
