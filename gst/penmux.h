// SPDX-License-Identifier: Apache-2.0
//
// penmux: frames of several streams into batch containers, one frame of each at most, without
// waiting for sources that deliver nothing. Streams come and go while it runs. docs/elements.md
// describes it.
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS
#define PEN_TYPE_MUX (pen_mux_get_type())
G_DECLARE_FINAL_TYPE(PenMux, pen_mux, PEN, MUX, GstElement)
G_END_DECLS
