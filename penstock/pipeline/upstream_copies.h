// SPDX-License-Identifier: Apache-2.0
//
// UpstreamCopies counts the frames that a libav decoder copies before handing them on. It decodes
// straight into the buffers of its pool, or into its own and then copies, as the ALLOCATION reply
// has it; no property or message tells which. GStreamer's debug log does: the function that copies
// logs its entry. Messages are counted by function name (about 25 messages a frame, under 10 us).
// These words are libav's to change, so each UpstreamCopies first has a picture decoded that is
// certainly copied (known_copy.h): where that is not noticed, nothing is claimed of any other.
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

/// What the decoder logs once a frame: the function that does, and how its text begins.
struct CopyWords {
  const char* decoding = "gst_ffmpegviddec_video_frame";
  const char* decoded = "repeat_pict:";
  const char* copying = "get_output_buffer";
  const char* copied = "get output buffer";
};

class UpstreamCopies {
 public:
  /// `words` are literals. Others than the default are no decoder's, as far as we know.
  explicit UpstreamCopies(const CopyWords& words = {});
  ~UpstreamCopies();
  UpstreamCopies(const UpstreamCopies&) = delete;
  UpstreamCopies& operator=(const UpstreamCopies&) = delete;

  /// Frames were decoded, and copies of them are counted; any thread. False when another decoder
  /// worked, or when libav's messages are not those that are understood here: then copied() says
  /// nothing.
  bool is_known() const;
  /// Frames a libav decoder has decoded and copied since construction; any thread.
  std::uint64_t decoded() const;
  std::uint64_t copied() const;
};

}  // namespace penstock
