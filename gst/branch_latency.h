// SPDX-License-Identifier: Apache-2.0
//
// What penaggregate answers to LATENCY queries (contract L05).
#pragma once

#include <gst/gst.h>

namespace penstock::gst {

struct BranchLatency {
  GstPad* primary = nullptr;  ///< Lent; null: there is none.
  /// How long frames wait for branches at most; NONE: as long as the slowest branch says it takes.
  GstClockTime wait = GST_CLOCK_TIME_NONE;
  guint queue_depth = 1;  ///< Frames of a pad that may wait.
};

/// Asks what is before each sink pad of `element`. Live if one of them is. The minimum is the
/// largest of theirs, or the primary pad's and `wait`; the maximum the smallest that a pad can
/// buffer. Returns whether it is live.
bool answer_branch_latency(GstElement* element, GstQuery* query, const BranchLatency& own);

}  // namespace penstock::gst
