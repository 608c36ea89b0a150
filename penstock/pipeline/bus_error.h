// SPDX-License-Identifier: Apache-2.0
//
// Turns a GStreamer ERROR message into an Error a user can act on, and the part of the run it came
// from.
#pragma once

#include <gst/gst.h>

#include "penstock/base/error.h"
#include "penstock/pipeline/run_job.h"

namespace penstock {

struct BusError {
  Error error;
  RunPart part;
};

/// `source` is the run's source as the user gave it, `video` its MP4 output.
BusError read_bus_error(GstMessage* message, const std::string& source, const std::string& video);

}  // namespace penstock
