// SPDX-License-Identifier: Apache-2.0
//
// Finds an element of a bin whose elements may come and go meanwhile: decoders plug themselves
// together while they are looked at.
#pragma once

#include <gst/gst.h>

#include <functional>

namespace penstock {

/// The last of `elements`, which it takes, that `wanted` says yes to, with a reference for the
/// caller; null for none. A list that changes on the way is walked again from its start, so that
/// `wanted` may see an element more than once. Any thread.
GstElement* find_last(GstIterator* elements, const std::function<bool(GstElement*)>& wanted);

}  // namespace penstock
