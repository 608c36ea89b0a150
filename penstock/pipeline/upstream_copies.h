// SPDX-License-Identifier: Apache-2.0
//
// UpstreamCopies counts the frames that a libav decoder copies before handing them on. It decodes
// straight into the buffers of its pool, or into its own and then copies, as the ALLOCATION reply
// has it; no property or message tells which. GStreamer's debug log does: the function that copies
// logs its entry. Messages are counted by function name, never formatted, and nothing more is
// printed than GST_DEBUG asked for (about 25 messages a frame, under 10 us).
//
// Process-wide, as the debug log is. One at a time.
#pragma once

#include <cstdint>

namespace penstock {

class UpstreamCopies {
 public:
  UpstreamCopies();
  ~UpstreamCopies();
  UpstreamCopies(const UpstreamCopies&) = delete;
  UpstreamCopies& operator=(const UpstreamCopies&) = delete;

  /// Frames a libav decoder has decoded and copied since construction. Decoded 0 with frames seen
  /// means that another decoder worked and its copies are not known.
  std::uint64_t decoded() const;
  std::uint64_t copied() const;
};

}  // namespace penstock
