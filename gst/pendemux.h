// SPDX-License-Identifier: Apache-2.0
//
// pendemux: the streams of batch containers, each on a pad of its own, as they were before penmux.
// docs/elements.md describes it.
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS
#define PEN_TYPE_DEMUX (pen_demux_get_type())
G_DECLARE_FINAL_TYPE(PenDemux, pen_demux, PEN, DEMUX, GstElement)
G_END_DECLS
