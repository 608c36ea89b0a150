// SPDX-License-Identifier: Apache-2.0
//
// The tracer "penlatency": how long frames stay in each element, by stream, containers' frames too.
// Whoever runs a program with GST_TRACERS=penlatency has it; docs/elements.md says what it tells.
#pragma once

#include <gst/gst.h>

namespace penstock::gst {

/// Tracers of the plugin, which alone can have them: GStreamer looks for them when it starts.
__attribute__((visibility("default"))) bool register_tracers(GstPlugin* plugin);

}  // namespace penstock::gst
