// SPDX-License-Identifier: Apache-2.0
//
// The edge where an Error becomes a GStreamer error message (contract L02): the text names element,
// device, operation and cause; domain and code follow from the kind.
#pragma once

#include <gst/gst.h>

#include <string_view>

#include "penstock/base/error.h"

namespace penstock::gst {

void post_error(GstElement* element, std::string_view device, std::string_view operation,
                const Error& error);
/// The same as a warning, after which the element goes on.
void post_warning(GstElement* element, std::string_view device, std::string_view operation,
                  const Error& error);

}  // namespace penstock::gst
