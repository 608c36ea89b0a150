// SPDX-License-Identifier: Apache-2.0
//
// peninfer's source pad: its task sends on what leaves the InferStream, and its queries say what
// the element adds to latency and caps.
#pragma once

#include <gst/gst.h>

#include "gst/peninfer.h"

namespace penstock::gst {

/// A source pad from `pad_template`; floating, to be added to the element.
GstPad* new_src_pad(GstStaticPadTemplate* pad_template);

/// Starts the task that sends on what leaves the stream.
gboolean start_src_task(PenInfer* self);

}  // namespace penstock::gst
