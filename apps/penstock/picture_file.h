// SPDX-License-Identifier: Apache-2.0
//
// Pictures as files, for trying a model on one: read by whatever GStreamer decodes, written as JPEG
// or PNG with what was found drawn in. gst_init() comes first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/output_error.h"
#include "penstock/media/video_frame.h"
#include "penstock/records/records.h"

namespace penstock {

struct Picture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  ///< 3 x width x height, no padding.
  /// As the decoder left it, where peninfer takes that and nothing turns it; else null.
  FramePtr decoded{};
};

/// The first picture of the file, turned as its EXIF says. kNotFound; kInvalidArgument: a
/// folder; kCorrupt when nothing decodes it; kUnsupported above 2^27 pixels.
Result<Picture> read_picture(const std::filesystem::path& path);

/// What `run` would analyse: the decoder's own frame, where there is one. Else I420 in host memory,
/// full range as JPEG has it; an odd side gets one more row or column, which repeats the last.
FramePtr to_frame(const Picture& picture);

/// kInvalidArgument: a name that ends in neither .jpg, .jpeg nor .png.
Result<void> check_picture_name(const std::filesystem::path& path);

/// Boxes with labels, turned boxes, and a dot a keypoint whose confidence is at least half. The
/// file appears whole or not at all, and until then the one that was there stays.
Result<void, OutputError> write_picture(const std::filesystem::path& path, Picture picture,
                                        const Findings& findings);

}  // namespace penstock
