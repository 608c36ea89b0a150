// SPDX-License-Identifier: Apache-2.0
//
// How much of a video file is missing, by what its container says of its own size. Demuxers play a
// file that was cut short to the cut and call that its end.
//
//   if (const std::uint64_t missing = missing_bytes("street.mkv"); missing > 0) ...
//
// Known are AVI (every RIFF list), MP4 and QuickTime (every top-level box) and Matroska and WebM
// (the segment). MPEG-TS, bare streams, and whatever was recorded with a size "to the end" say
// nothing.
//
// The bytes are of others: the parser reads only headers of at most 16 bytes, a bounded number of
// them, and takes no size for true that does not fit a file. It needs no GStreamer
// (fuzz_container).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

namespace penstock {

/// Fills `to` with the bytes at `offset`; the number it got, less than asked for at the end or on
/// an error.
using ReadAt = std::function<std::size_t(std::uint64_t offset, std::span<unsigned char> to)>;

/// Headers that are read at most; a container of more has an unknown size.
inline constexpr int kMaxContainerHeaders = 1 << 18;

/// Bytes by which a container of `size` bytes is shorter than it says; 0 when it is complete or
/// does not say. Any thread; throws only what `read` throws.
std::uint64_t missing_bytes(const ReadAt& read, std::uint64_t size);

/// The same for a regular file; 0 for anything else and for one that can't be read.
std::uint64_t missing_bytes(const std::filesystem::path& file);

}  // namespace penstock
