// SPDX-License-Identifier: Apache-2.0
//
// A clip that comes out of its container as NV12. No software decoder and no muxer of the userland
// gives or takes that format; qtdemux reads it from an MP4 with uncompressed video (ISO/IEC
// 23001-17), so the tests write one.
#pragma once

#include <filesystem>

namespace penstock::e2e {

/// The square clip of clips.h at 25/s, not compressed.
void make_nv12_mp4(const std::filesystem::path& path, int frames);

}  // namespace penstock::e2e
