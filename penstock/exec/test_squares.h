// SPDX-License-Identifier: Apache-2.0
//
// For tests of whole stages: frames with one coloured square where the square finder
// (model/testing) finds it, and the model to find it. Frames are 320x240, scaled by a half and
// letterboxed to 160x160: 20 rows of padding above.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "penstock/media/test_frames.h"
#include "penstock/model/manifest.h"
#include "penstock/model/testing/test_models.h"

namespace penstock::testing {

inline constexpr int kModelSize = 160;
inline constexpr int kSquareSide = 48;

/// Class as the square finder's: 0 red, 1 green, 2 blue.
struct Square {
  int class_id = 0;
  int x = 0;
  int y = 0;
};

/// The n-th of the positions whose edges fall on the finder's grid.
inline Square nth_square(int n) {
  return {.class_id = n % 3, .x = 16 * (n % 17), .y = 8 + 16 * (n / 17 % 11)};
}

inline Picture draw(const Square& square) {
  // Full red, green and blue in BT.709 limited.
  constexpr std::uint8_t kLevels[3][3] = {{63, 102, 240}, {173, 42, 26}, {32, 240, 118}};
  const auto& level = kLevels[square.class_id];
  Picture picture(320, 240, 126);
  for (int row = square.y; row < square.y + kSquareSide; ++row) {
    for (int column = square.x; column < square.x + kSquareSide; ++column) {
      picture.y_at(column, row) = level[0];
      const std::size_t chroma =
          static_cast<std::size_t>(row / 2) * 160 + static_cast<std::size_t>(column / 2);
      picture.u[chroma] = level[1];
      picture.v[chroma] = level[2];
    }
  }
  return picture;
}

inline std::shared_ptr<VideoFrame> square_frame(Device& device, const Square& square,
                                                PixelFormat format = PixelFormat::kNv12) {
  return make_frame(device, draw(square), {.format = format, .extra_stride = 32});
}

inline Manifest square_finder(const std::string& name) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / ("penstock-" + name);
  return load_manifest(model_testing::write_model_folder(
                           model_testing::make_square_finder_nanodet(kModelSize), folder))
      .value();
}

}  // namespace penstock::testing
