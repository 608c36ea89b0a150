// SPDX-License-Identifier: Apache-2.0
//
// The source pad of penaggregate and its task, which joins what leaves.
#pragma once

#include <vector>

#include "gst/gst_ptr.h"
#include "gst/penaggregate.h"

namespace penstock::gst {

GstPad* new_aggregate_src_pad(GstStaticPadTemplate* pad_template);
/// Stores sticky events that were dropped, and starts the task.
void resume_src(PenAggregate* self, const std::vector<EventPtr>& events);

}  // namespace penstock::gst
