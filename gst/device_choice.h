// SPDX-License-Identifier: Apache-2.0
//
// The device that an element's property names.
#pragma once

#include <gst/gst.h>

#include <string>

#include "penstock/base/error.h"
#include "penstock/memory/device.h"

namespace penstock::gst {

/// By GstContext where one of that id is offered, and else opened. kUnsupported: a device that this
/// build has not got.
Result<DevicePtr> find_device(GstElement* element, const std::string& name);

}  // namespace penstock::gst
