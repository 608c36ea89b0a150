// SPDX-License-Identifier: Apache-2.0
//
// Why an element refuses caps (contract L02): the pad's own check asks ACCEPT_CAPS, and on refusal
// says no more than "not-negotiated".
#pragma once

#include <gst/gst.h>

#include <functional>

#include "penstock/base/error.h"

namespace penstock::gst {

struct CapsRefusal {
  /// Nothing when the caps will do.
  std::function<Result<void>(const GstCaps*)> accept;
  /// Caps are sticky: refused ones come again with every frame, and the element says so once.
  std::function<void(const Error&)> refuse;
};

/// Looks at every caps event before the pad's own check does, on the streaming thread.
void name_refused_caps(GstPad* pad, CapsRefusal refusal);

}  // namespace penstock::gst
