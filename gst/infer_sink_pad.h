// SPDX-License-Identifier: Apache-2.0
//
// peninfer's sink pad: takes frames, events and queries, and hands what has a place between frames
// to the InferStream.
#pragma once

#include <gst/gst.h>

#include "gst/peninfer.h"

namespace penstock::gst {

/// The sink pad of `self`, from `pad_template`; floating, to be added to it.
GstPad* new_sink_pad(PenInfer* self, GstStaticPadTemplate* pad_template);

}  // namespace penstock::gst
