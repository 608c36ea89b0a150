// SPDX-License-Identifier: Apache-2.0
//
// A sink pad of penaggregate: the primary's buffers, events and queries go on in their order, of a
// branch's what is said with them.
#pragma once

#include "gst/branch_join.h"
#include "gst/penaggregate.h"

namespace penstock::gst {

/// Not yet active, nor the element's.
GstPad* new_aggregate_sink_pad(GstPadTemplate* pad_template, const BranchJoin::Pad& pad);

}  // namespace penstock::gst
