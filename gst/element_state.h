// SPDX-License-Identifier: Apache-2.0
//
// Properties that may change in NULL and READY only (contract L01).
#pragma once

#include <gst/gst.h>

namespace penstock::gst {

/// Flags of such a property.
inline constexpr auto kReadyProperty =
    static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY);

/// Above READY, or on the way there. Needs the element's object lock.
bool is_running(GstElement* element);

/// Says that the property stays as it is, since the element runs.
void warn_unchanged(GstElement* element, const GParamSpec* property);

}  // namespace penstock::gst
