// SPDX-License-Identifier: Apache-2.0
//
// Turns a GStreamer ERROR message into an Error a user can act on, and the part of the run it came
// from.
#pragma once

#include <gst/gst.h>

#include "penstock/base/error.h"
#include "penstock/pipeline/run_job.h"
#include "penstock/pipeline/source.h"

namespace penstock {

/// How the names of a pipeline's stages begin: "stages[0] color".
inline constexpr std::string_view kStageName = "stages[";

struct BusError {
  Error error;
  RunPart part;
};

/// `source` is the run's source, whose password is kept out of the text, `video` its MP4 output.
BusError read_bus_error(GstMessage* message, const Source& source, const std::string& video);

}  // namespace penstock
