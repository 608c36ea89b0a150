// SPDX-License-Identifier: Apache-2.0
//
// What `penstock model try` does with the picture itself: it is turned as its EXIF says, and what
// is written shows masks and classes.
#include <gmock/gmock.h>
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "penstock/model/testing/picture_readers.h"
#include "penstock/model/testing/square_finders.h"
#include "tests/e2e/clips.h"
#include "tests/e2e/model_folder.h"
#include "tests/e2e/penstock_process.h"

namespace penstock::e2e {
namespace {

using testing::HasSubstr;

class TryPictureTest : public ModelFolder {
 protected:
  /// The first picture of the square clip.
  std::string photo(const std::string& name, const std::string& encoder) const {
    const auto path = folder_ / name;
    make_square_clip(path, 1, "videoconvert ! video/x-raw,format=RGB ! " + encoder);
    return path.string();
  }
  std::string png() const { return photo("photo.png", "pngenc snapshot=false"); }

  static int luma(const Decoded& picture, int x, int y) {
    return static_cast<unsigned char>(picture.last_frame[std::size_t(y * picture.width + x)]);
  }
  /// Low in the square, away from a label.
  static int luma_of_square(const Decoded& picture) {
    return luma(picture, square_left(0) + kSquare / 2, kSquareTop + 3 * kSquare / 4);
  }
  /// Luma as BT.601 has it, limited.
  static double luma_of(double red, double green, double blue) {
    return 16 + (65.481 * red + 128.553 * green + 24.966 * blue) / 255;
  }
};

TEST_F(TryPictureTest, GivenAModelWithMasks_WhenTried_ThenTheMasksPixelsHaveTheClassesColour) {
  write(model_testing::BoxLayout::kYolov8Seg);
  const std::string plain = png(), out = (folder_ / "out.png").string();
  const Ended tried = prepare({"--family", "yolov8-seg", "--try", plain, "--out", out});
  ASSERT_EQ(tried.code, 0) << tried.err;
  const Decoded before = decode_file(plain), after = decode_file(out);
  ASSERT_EQ(after.error, "");
  // Half of the square's red, half of (230, 25, 75).
  EXPECT_NEAR(luma_of_square(before), luma_of(255, 0, 0), 2);
  EXPECT_NEAR(luma_of_square(after), luma_of(242.5, 12.5, 37.5), 3);
  // The box reaches beyond the square, and the mask does not.
  EXPECT_EQ(luma(after, 180, 180), luma(before, 180, 180));
  EXPECT_EQ(luma(after, square_left(0) + kSquare / 2, kSquareTop + kSquare + 2),
            luma(before, square_left(0) + kSquare / 2, kSquareTop + kSquare + 2));
}

TEST_F(TryPictureTest, GivenAClassMap_WhenTried_ThenClassesAreColouredAndTheBackgroundIsNot) {
  const std::string plain = png(), out = (folder_ / "out.png").string();
  const auto segmenter = model_testing::write_model_folder(
      model_testing::make_picture_reader(model_testing::PictureReader::kColorScores, kSide),
      folder_ / "segmenter");
  const Ended tried = model({"try", segmenter.string(), plain, "--out", out});
  ASSERT_EQ(tried.code, 0) << tried.err;
  const Decoded before = decode_file(plain), after = decode_file(out);
  ASSERT_EQ(after.error, "");
  // Class 1: half of (60, 180, 75).
  EXPECT_NEAR(luma_of_square(after), luma_of(157.5, 90, 37.5), 3);
  for (const auto& [x, y] : {std::pair(180, 180), std::pair(4, 4), std::pair(100, 88)}) {
    EXPECT_EQ(luma(after, x, y), luma(before, x, y));
  }
}

TEST_F(TryPictureTest, GivenAPhotoThatWasTakenTurned_WhenTried_ThenItIsAnalysedUpright) {
  const std::string jpeg = read_text(photo("photo.jpg", "jpegenc quality=100"));
  // An EXIF segment with nothing but the orientation: 6, "turn by 90 degrees clockwise".
  constexpr std::string_view kExif(
      "\xff\xe1\x00\x22"
      "Exif\0\0"
      "MM\0*\0\0\0\x08"
      "\0\x01"
      "\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"
      "\0\0\0\0",
      36);
  const auto turned = folder_ / "turned.jpg";
  std::ofstream(turned, std::ios::binary) << jpeg.substr(0, 2) << kExif << jpeg.substr(2);
  ASSERT_EQ(prepare().code, 0);
  const Ended upright = model({"try", "squares", (folder_ / "photo.jpg").string()});
  EXPECT_THAT(upright.out, HasSubstr("at 16,64, 48 x 48")) << upright.err;
  const Ended tried = model({"try", "squares", turned.string()});
  ASSERT_EQ(tried.code, 0) << tried.err;
  // (x, y) comes to (192 - y, x).
  EXPECT_THAT(tried.out, HasSubstr("at 80,16, 48 x 48"));
}

}  // namespace
}  // namespace penstock::e2e
