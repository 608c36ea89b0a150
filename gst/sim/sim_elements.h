// SPDX-License-Identifier: Apache-2.0
//
// simupload and simdownload move NV12 frames between system memory and "PenstockSim" memory, which
// refuses every map without its own flag. Tests only; the plugin is never installed. simupload
// makes the simulated device, unless a "penstock.device" context offers one, and offers it to
// others.
#pragma once

#include <gst/gst.h>

namespace penstock::gst {

bool register_sim_elements(GstPlugin* plugin);

}  // namespace penstock::gst
