// SPDX-License-Identifier: Apache-2.0
#include <gst/gst.h>

#include "gst/sim/sim_elements.h"

namespace {
gboolean plugin_init(GstPlugin* plugin) { return penstock::gst::register_sim_elements(plugin); }
}  // namespace

#define PACKAGE "penstock"
GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, penstocksim,
                  "Simulated device memory for tests of Penstock", plugin_init, PENSTOCK_VERSION,
                  "Apache 2.0", "Penstock", "https://penstock.invalid/")
