// SPDX-License-Identifier: Apache-2.0
//
// The plugin "penstock": a thin door to penstock_gst, which holds elements and metadata so that an
// application and the plugin share one set of types.
#include <gst/gst.h>

#include "gst/latency_tracer.h"
#include "gst/register.h"

namespace {
gboolean plugin_init(GstPlugin* plugin) {
  return penstock::gst::register_elements(plugin) && penstock::gst::register_tracers(plugin);
}
}  // namespace

#define PACKAGE "penstock"
GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, penstock,
                  "Video analytics under a memory contract", plugin_init, PENSTOCK_VERSION,
                  "Apache 2.0", "Penstock", "https://penstock.invalid/")
