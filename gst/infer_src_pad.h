// SPDX-License-Identifier: Apache-2.0
//
// peninfer's source pad: its task sends on what leaves the InferStream, and its queries say what
// the element adds to latency and caps.
#pragma once

#include <gst/gst.h>

#include "gst/infer_stream.h"
#include "gst/peninfer.h"

namespace penstock::gst {

/// A source pad from `pad_template`; floating, to be added to the element.
GstPad* new_src_pad(GstStaticPadTemplate* pad_template);

/// Starts the stream's next generation and the task that sends on what leaves it. Sticky events
/// that were dropped on the way are stored on the pad first, and so go before its first frame.
void resume_src(PenInfer* self, InferStream& stream, InferStream::After what);

}  // namespace penstock::gst
