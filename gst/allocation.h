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
/// replaced. Of a container's caps the number is that of each stream's frames, without a pool: its
/// frames have pools of their own. A video meta is promised only if downstream reads it, since
/// buffers go on as they are.
///
/// For system memory, measured by `./dev bench allocation`: with a video meta and only the number
/// of buffers, libav's decoders decode into a pool of their own, padded as the codec needs, and
/// copy no frame. Into anybody's pool the H.264 decoder copies every one, and so do all of them
/// without a video meta. So no pool is offered where the meta is read, and one where it is not (a
/// copy is due anyway).
void add_held_frames(GstQuery* query, guint held, DeviceKind device);

}  // namespace penstock::gst
