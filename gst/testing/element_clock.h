// SPDX-License-Identifier: Apache-2.0
//
// For tests that move an element's clock themselves.
#pragma once

#include "gst/element_clock.h"

namespace penstock::gst {

/// From the next start on, `element` goes by `clock`, which must outlive it.
void set_element_clock(GstElement* element, Clock& clock);

}  // namespace penstock::gst
