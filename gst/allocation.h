// SPDX-License-Identifier: Apache-2.0
//
// The ALLOCATION reply of an element that passes buffers on and holds some of them (contract L05):
// downstream's reply, with room for the held frames on top.
#pragma once

#include <gst/gst.h>

#include "penstock/memory/device_id.h"

namespace penstock::gst {

/// Adapts `query` after downstream has, or has not, answered it. Every pool asks for `held` more
/// buffers; a pool with an upper limit is withdrawn, since upstream could not fill it further, and
/// replaced. For system memory a pool is always proposed: libav decoders are said to
/// copy every frame otherwise (not measured here yet). A video meta is promised only if downstream
/// reads it, since buffers go on as they are.
void add_held_frames(GstQuery* query, guint held, DeviceKind device);

}  // namespace penstock::gst
