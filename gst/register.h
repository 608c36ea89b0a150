// SPDX-License-Identifier: Apache-2.0
//
// Registers Penstock's elements and metadata without a plugin path: an application that links
// penstock_gst calls this once after gst_init(), with nullptr. The thin plugin libgstpenstock.so
// calls it with its own GstPlugin.
#pragma once

#include <gst/gst.h>

namespace penstock::gst {

/// Idempotent. False when GStreamer refused a registration.
__attribute__((visibility("default"))) bool register_elements(GstPlugin* plugin);

}  // namespace penstock::gst
