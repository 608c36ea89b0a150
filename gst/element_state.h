// SPDX-License-Identifier: Apache-2.0
//
// Properties that may change in NULL and READY only (contract L01).
#pragma once

#include <gst/gst.h>

#include <functional>

namespace penstock::gst {

/// Flags of such a property.
inline constexpr auto kReadyProperty =
    static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY);

/// What set_property() of such properties does: under the object lock calls `set`, which answers
/// false to an id that it does not know; a running element keeps what it has, and that is said.
void set_in_ready(GstElement* element, guint id, GParamSpec* property,
                  const std::function<bool()>& set);

}  // namespace penstock::gst
