// SPDX-License-Identifier: Apache-2.0
//
// The clock by which an element tells how long something takes.
#pragma once

#include <gst/gst.h>

#include "penstock/base/clock.h"

namespace penstock::gst {

/// The process's, in everything that is installed. The library that tests link has its own
/// definition (testing/element_clock.h).
Clock& element_clock(GstElement* element);

}  // namespace penstock::gst
