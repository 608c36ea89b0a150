// SPDX-License-Identifier: Apache-2.0
//
// Closing a pipeline whose input may hang: a camera's element waits for its server where nothing
// reaches it, and whoever takes it to NULL waits with it.
#pragma once

#include <gst/gst.h>

#include "penstock/base/clock.h"

namespace penstock {

/// Inputs that a process may have left to their threads at once; a session beyond does not begin.
inline constexpr int kMaxLeftInputs = 16;

/// Takes `pipeline` to NULL: `input`, an element of it, on a thread of its own. True when all is
/// there. False when the input is not after `limit`: it is out of the pipeline then, linked to
/// nothing, and its thread frees it when it ever can. What its signals and probes use must be its
/// own or live as long as the process.
bool close_with_input(GstElement* pipeline, GstElement* input, Clock& clock, Nanoseconds limit);

/// Inputs of this process that are not closed yet. Any thread.
int left_inputs();

}  // namespace penstock
