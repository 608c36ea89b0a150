// SPDX-License-Identifier: Apache-2.0
//
// The clips that benchmarks play.
#pragma once

#include <filesystem>

#include "penstock/base/error.h"

namespace penstock::bench {

/// Debian's opencv-doc: 795 frames of pedestrians, 768x576, MS MPEG-4 in AVI.
inline constexpr const char* kDefaultClip = "/usr/share/doc/opencv-doc/examples/data/vtest.avi";

/// `clip` as H.264 in MP4, made once in `folder` (which is created).
Result<std::filesystem::path> h264_of(const std::filesystem::path& clip,
                                      const std::filesystem::path& folder);

}  // namespace penstock::bench
