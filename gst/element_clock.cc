// SPDX-License-Identifier: Apache-2.0
#include "gst/element_clock.h"

namespace penstock::gst {

Clock& element_clock(GstElement*) { return Clock::system(); }

}  // namespace penstock::gst
