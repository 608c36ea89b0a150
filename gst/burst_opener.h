// SPDX-License-Identifier: Apache-2.0
//
// Inference in another process for peninfer: a device whose tensors cross to it, and the session
// that stands for its engine (penstock/burst/burst_session.h).
#pragma once

#include <gst/gst.h>

#include <string>

#include "penstock/base/error.h"
#include "penstock/exec/frame_inference.h"
#include "penstock/memory/device.h"

namespace penstock::gst {

struct BurstChoice {
  std::string path;
  std::string model;  ///< Empty: the manifest's name.
  bool reconnect = false;
};

/// `cpu` with memory that other processes can map. kUnsupported for other devices: their memory
/// does not cross yet.
Result<DevicePtr> find_burst_device(const std::string& name);

/// For InferenceOptions::open_session. The server must have the manifest's artefact, by its hash.
/// When the server is lost and `reconnect` is wanted, `element` posts one warning.
decltype(InferenceOptions::open_session) burst_opener(GstElement* element, BurstChoice choice);

}  // namespace penstock::gst
