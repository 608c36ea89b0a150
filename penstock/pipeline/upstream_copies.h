// SPDX-License-Identifier: Apache-2.0
//
// UpstreamCopies counts the frames that a libav decoder copies before handing them on. It decodes
// straight into the buffers of its pool, or into its own and then copies, as the ALLOCATION reply
// has it; no property or message tells which. GStreamer's debug log does: the function that copies
// logs its entry. Messages are counted by function name (about 25 messages a frame, under 10 us).
//
// The log has no levels for one reader alone: what is raised for counting, GStreamer's own log
// function prints. So it is wrapped, which takes the stream that it prints to. When GST_DEBUG_FILE
// names a file, nobody can ask for that stream; then nothing is touched, and frames are counted
// only if GST_DEBUG asks for libav's LOG level anyway. Nothing more is ever printed than GST_DEBUG
// asked for.
//
// Process-wide, as the debug log is. One at a time; between gst_init() and gst_deinit().
#pragma once

#include <cstdint>

namespace penstock {

class UpstreamCopies {
 public:
  UpstreamCopies();
  ~UpstreamCopies();
  UpstreamCopies(const UpstreamCopies&) = delete;
  UpstreamCopies& operator=(const UpstreamCopies&) = delete;

  /// Frames a libav decoder has decoded and copied since construction; any thread. Decoded 0 with
  /// frames seen means that another decoder worked, or that none could be counted: the copies are
  /// not known.
  std::uint64_t decoded() const;
  std::uint64_t copied() const;
};

}  // namespace penstock
