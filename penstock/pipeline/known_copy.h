// SPDX-License-Identifier: Apache-2.0
//
// A decoded picture of which it is known that the libav decoder copied it, to see whether copies
// are noticed.
#pragma once

namespace penstock {

/// Decodes one picture of 2 x 2 pixels with a libav decoder that may not decode into downstream's
/// memory, and so copies. False when there is no such decoder or nothing came out of it. On the
/// caller's thread, well under a millisecond; gst_init() comes before.
bool decode_with_a_copy();

}  // namespace penstock
