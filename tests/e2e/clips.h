// SPDX-License-Identifier: Apache-2.0
//
// Clips that the end-to-end tests make for themselves. The square clip has what the square-finder
// model finds: one pure red square on grey, whose place in every frame is known.
#pragma once

#include <filesystem>
#include <string>

namespace penstock::e2e {

/// The clip's picture is the model's input, so that boxes are in the same pixels.
inline constexpr int kSide = 192;
inline constexpr int kSquare = 48;  ///< Three strides of 16.

/// The square's left edge in frame `n`; its top edge is kSquareTop. Both on the stride grid.
constexpr int square_left(int n) { return 16 * (1 + n % 8); }
inline constexpr int kSquareTop = 64;

/// The clip's frame `n` as I420, tightly packed.
std::string square_picture(int n, int side);

/// `frames` frames at 25/s through a gst-launch description that starts after the raw I420 video
/// and ends in a filesink of `path`, e.g. "openh264enc ! h264parse ! mp4mux". `side` is width and
/// height.
void make_square_clip(const std::filesystem::path& path, int frames, const std::string& description,
                      int side = kSide);

/// H.264 in MP4.
std::filesystem::path square_mp4(const std::filesystem::path& folder, int frames);

/// Runs "DESCRIPTION ! filesink" to its end; fails the test when it does not get there.
void make_clip(const std::filesystem::path& path, const std::string& description);

/// What a decoder makes of a file.
struct Decoded {
  int frames = 0;
  int width = 0;
  int height = 0;
  std::string error;       ///< Empty: it played to its end.
  std::string last_frame;  ///< I420 bytes, tightly packed.
};
Decoded decode_file(const std::filesystem::path& path);

}  // namespace penstock::e2e
