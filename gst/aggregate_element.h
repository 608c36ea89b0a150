// SPDX-License-Identifier: Apache-2.0
//
// The inside of a PenAggregate, for the files that make it up.
#pragma once

#include <memory>

#include "gst/branch_join.h"
#include "gst/gst_ptr.h"
#include "gst/penaggregate.h"

namespace penstock::gst {

/// The C++ side, guarded by the object lock; what `join` does is thread-safe.
struct AggregateCore {
  guint64 max_wait = 10 * GST_SECOND;
  guint queue_depth = 16;
  guint max_records = 4096;
  BranchJoin::Missing missing = BranchJoin::Missing::kError;
  guint next_number = 0;             ///< In a pad's name.
  BranchJoin::Key next_key = 0;      ///< Never used again, as names may be.
  std::shared_ptr<BranchJoin> join;  ///< Null below PAUSED.
};

/// Whose frames go on.
inline constexpr char kPrimaryPad[] = "sink_0";

std::shared_ptr<BranchJoin> join_of(PenAggregate* self);
bool is_primary(GstPad* pad);
/// Null where there is none.
GstPtr<GstPad> primary_pad(PenAggregate* self);
BranchJoin::Key key_of(GstPad* pad);

/// Adds the frames that the element may hold of a pad to an ALLOCATION query that has been
/// answered, or not, by who is behind. FALSE: it has no caps.
gboolean add_own_frames(PenAggregate* self, GstQuery* query);
/// Answers a CAPS query of `pad` with what the peer of `across` takes, or, where that is null, with
/// what the template says.
gboolean answer_caps(GstPad* pad, GstPad* across, GstQuery* query);

}  // namespace penstock::gst

struct _PenAggregate {
  GstElement parent;
  GstPad* srcpad;
  penstock::gst::AggregateCore* core;
};
