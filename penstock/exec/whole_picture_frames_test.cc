// SPDX-License-Identifier: Apache-2.0
//
// Contract P02 from frame to result for the families of the whole picture: generated networks look
// at drawn pictures, through preprocessing, engine, decoder and the letterbox's inverse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "penstock/base/str_format.h"
#include "penstock/exec/frame_inference.h"
#include "penstock/media/test_frames.h"
#include "penstock/model/testing/picture_readers.h"

namespace penstock {
namespace {

using model_testing::PictureReader;
using testing::make_device;
using testing::make_frame;
using testing::Picture;

constexpr int kModelSize = 64;

/// Full red, green and blue in BT.709 limited, and a grey.
constexpr std::uint8_t kLevels[4][3] = {
    {63, 102, 240}, {173, 42, 26}, {32, 240, 118}, {126, 128, 128}};
constexpr int kGrey = 3;

/// `area` has even sides and place.
void paint(Picture& picture, const RectI& area, int color) {
  for (int y = area.y; y < area.y + area.height; ++y) {
    for (int x = area.x; x < area.x + area.width; ++x) {
      picture.y_at(x, y) = kLevels[color][0];
      const auto chroma =
          static_cast<std::size_t>(y / 2) * static_cast<std::size_t>(picture.width / 2) +
          static_cast<std::size_t>(x / 2);
      picture.u[chroma] = kLevels[color][1];
      picture.v[chroma] = kLevels[color][2];
    }
  }
}

Picture filled(int width, int height, int color) {
  Picture picture(width, height);
  paint(picture, {0, 0, width, height}, color);
  return picture;
}

class P02 : public ::testing::TestWithParam<const char*> {
 protected:
  /// What a network says of a picture.
  InferenceResult look(PictureReader reader, const Picture& picture, bool read_tensors = false) {
    const auto folder =
        std::filesystem::path(::testing::TempDir()) /
        str_format("penstock-picture-{}-{}-{}", to_string(reader), GetParam(), getpid());
    const auto model = model_testing::make_picture_reader(reader, kModelSize);
    const auto manifest = load_manifest(model_testing::write_model_folder(model, folder));
    InferenceResult nothing;
    EXPECT_TRUE(manifest) << manifest.error().message();
    if (!manifest) return nothing;
    InferenceOptions options;
    options.workers = 1;
    options.decode.threshold = manifest->threshold;
    options.decode.read_tensors = read_tensors;
    auto inference = FrameInference::open(device_, *manifest, options);
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    EXPECT_TRUE(inference) << inference.error().message();
    if (!inference) return nothing;
    auto future =
        (*inference)
            ->executor()
            .submit({.frame = make_frame(*device_, picture, {.format = PixelFormat::kNv12}),
                     .roi = {},
                     .source = {"camera"},
                     .generation = 0},
                    WhenFull::kWait);
    EXPECT_TRUE(future);
    if (!future) return nothing;
    auto result = future->get();
    EXPECT_TRUE(result) << result.error().message();
    return result ? std::move(*result) : nothing;
  }

  std::vector<std::uint8_t> map_of(const InferenceResult& result) {
    if (!result.device.class_map) return {};
    return testing::read_storage(*device_, result.device.class_map->data.storage);
  }

  const DevicePtr device_ = make_device(GetParam());
};
INSTANTIATE_TEST_SUITE_P(cpu, P02, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P02, ::testing::Values("sim"));

TEST_P(P02, GivenColouredPictures_WhenClassified_ThenTheirColourComesFirst) {
  const char* const names[] = {"red", "green", "blue"};
  for (const PictureReader reader :
       {PictureReader::kCenterLogits, PictureReader::kCenterProbabilities}) {
    SCOPED_TRACE(to_string(reader));
    for (int color = 0; color < 3; ++color) {
      const auto result = look(reader, filled(64, 64, color));
      ASSERT_EQ(result.classes.size(), 3u);
      EXPECT_EQ(result.classes[0].label, names[color]);
      EXPECT_EQ(result.classes[0].class_id, color);
      EXPECT_GT(result.classes[0].confidence, 0.999f);
      EXPECT_LT(result.classes[1].confidence, 1e-3f);
      EXPECT_TRUE(result.objects.empty());
    }
    // Equal logits: a third each, so the softmax is applied in neither model twice nor left out.
    const auto grey = look(reader, filled(64, 64, kGrey));
    ASSERT_EQ(grey.classes.size(), 3u);
    float sum = 0;
    for (const Classification& found : grey.classes) {
      EXPECT_NEAR(found.confidence, 1.0f / 3, 0.05f);
      sum += found.confidence;
    }
    EXPECT_NEAR(sum, 1.0f, 1e-5f);
  }
}

TEST_P(P02, GivenAWidePicture_WhenSegmented_ThenAreasAreOfThePictureAndTheMapOfTheInput) {
  // 128 x 64 becomes 64 x 32 with 16 rows of padding above and below. A quarter is red, an eighth
  // blue.
  Picture picture = filled(128, 64, kGrey);
  paint(picture, {0, 0, 32, 64}, 0);
  paint(picture, {96, 32, 32, 32}, 2);
  for (const PictureReader reader : {PictureReader::kColorScores, PictureReader::kColorScoresLast,
                                     PictureReader::kColorNumbers}) {
    SCOPED_TRACE(to_string(reader));
    const auto result = look(reader, picture);
    ASSERT_EQ(result.areas.size(), 3u);
    // Edges may take the neighbour's column of the 64 or row of the 32.
    EXPECT_EQ(result.areas[0].label, "background");
    EXPECT_NEAR(result.areas[0].fraction, 0.625f, 0.03f);
    EXPECT_EQ(result.areas[1].label, "red");
    EXPECT_NEAR(result.areas[1].fraction, 0.25f, 0.02f);
    EXPECT_EQ(result.areas[2].label, "blue");
    EXPECT_EQ(result.areas[2].class_id, 3);
    EXPECT_NEAR(result.areas[2].fraction, 0.125f, 0.02f);
    const auto map = map_of(result);
    ASSERT_GE(map.size(), 64u * 64);
    const auto at = [&](std::size_t x, std::size_t y) { return map[y * 64 + x]; };
    EXPECT_EQ(at(4, 4), 0) << "padding";
    EXPECT_EQ(at(4, 20), 1);
    EXPECT_EQ(at(4, 44), 1);
    EXPECT_EQ(at(60, 20), 0);
    EXPECT_EQ(at(60, 40), 3);
    EXPECT_EQ(at(60, 60), 0) << "padding";
  }
  const auto foreground = look(PictureReader::kRedLogits, picture);
  ASSERT_EQ(foreground.areas.size(), 2u);
  EXPECT_EQ(foreground.areas[1].label, "red");
  EXPECT_NEAR(foreground.areas[1].fraction, 0.25f, 0.02f);
}

TEST_P(P02, GivenAColouredPicture_WhenEmbedded_ThenTheVectorPointsThereWithLength1) {
  const auto result = look(PictureReader::kMeanEmbedding, filled(64, 64, 1));
  ASSERT_EQ(result.embedding.size(), 3u);
  EXPECT_NEAR(result.embedding[0], 0, 0.02);
  EXPECT_NEAR(result.embedding[1], 1, 0.001);
  EXPECT_NEAR(result.embedding[2], 0, 0.02);
  const auto grey = look(PictureReader::kMeanEmbedding, filled(64, 64, kGrey));
  ASSERT_EQ(grey.embedding.size(), 3u);
  for (const float value : grey.embedding) EXPECT_NEAR(value, 1 / std::sqrt(3.0), 0.01);
}

TEST_P(P02, GivenATextInAWidePicture_WhenFound_ThenItsGrownBoxIsInTheFrame) {
  // 128 x 64 becomes 64 x 32 below 16 rows of padding: the text is 24 x 8 at 8, 24 there. It grows
  // by 24 x 8 x 1.5 / 64 = 4.5 on each side, 9 in the frame.
  Picture picture = filled(128, 64, kGrey);
  paint(picture, {16, 16, 48, 16}, 0);
  paint(picture, {96, 40, 24, 20}, 2);
  const auto result = look(PictureReader::kRedTexts, picture);
  ASSERT_EQ(result.objects.size(), 1u);
  const Detection& text = result.objects[0];
  EXPECT_EQ(text.label, "text");
  EXPECT_GT(text.confidence, 0.9f);
  ASSERT_TRUE(text.rotated);
  EXPECT_EQ(text.rotated->angle, 0);
  EXPECT_NEAR(text.rotated->center_x, 40, 1);
  EXPECT_NEAR(text.rotated->center_y, 24, 1);
  EXPECT_NEAR(text.rotated->width, 66, 2);
  EXPECT_NEAR(text.rotated->height, 34, 2);
  EXPECT_NEAR(text.x, 7, 1);
  EXPECT_NEAR(text.y, 7, 1);
  EXPECT_NEAR(text.x + text.width, 73, 1);
  EXPECT_NEAR(text.y + text.height, 41, 1);
  EXPECT_TRUE(look(PictureReader::kRedTexts, filled(128, 64, kGrey)).objects.empty());
}

TEST_P(P02, GivenColouredStripes_WhenRead_ThenTheyAreALineOfLetters) {
  // Eighths of the width: r r g, nothing, g b b r. Equal neighbours are one letter, parted ones
  // two.
  Picture picture = filled(64, 64, kGrey);
  const int stripes[] = {0, 0, 1, kGrey, 1, 2, 2, 0};
  for (int i = 0; i < 8; ++i) paint(picture, {8 * i, 0, 8, 64}, stripes[i]);
  const auto result = look(PictureReader::kColorLetters, picture);
  ASSERT_EQ(result.texts.size(), 1u);
  EXPECT_EQ(result.texts[0].text, "rggbr");
  EXPECT_GT(result.texts[0].confidence, 0.9f);
  EXPECT_TRUE(look(PictureReader::kColorLetters, filled(64, 64, kGrey)).texts.empty());
}

TEST_P(P02, GivenRedCells_WhenFacesAreSought_ThenBoxesAndKeypointsLieOnThem) {
  // Cells of the fine grid are 4 x 4 in the model's 64 x 64, 8 x 8 in the frame; 16 rows of
  // padding.
  Picture picture = filled(128, 64, kGrey);
  paint(picture, {24, 16, 8, 8}, 0);
  paint(picture, {80, 48, 8, 8}, 0);
  paint(picture, {48, 16, 8, 8}, 1);
  const auto result = look(PictureReader::kRedFaces, picture);
  ASSERT_EQ(result.objects.size(), 2u);
  const bool swapped = result.objects[0].x > 50;
  for (const int i : {0, 1}) {
    const Detection& face = result.objects[static_cast<std::size_t>(swapped ? 1 - i : i)];
    const float x = i == 0 ? 24 : 80, y = i == 0 ? 16 : 48;
    EXPECT_EQ(face.label, "face");
    EXPECT_NEAR(face.x, x, 0.1);
    EXPECT_NEAR(face.y, y, 0.1);
    EXPECT_NEAR(face.width, 8, 0.1);
    EXPECT_NEAR(face.height, 8, 0.1);
    ASSERT_EQ(face.keypoints.size(), 6u);
    for (std::size_t k = 0; k < 6; ++k) {
      EXPECT_NEAR(face.keypoints[k].x, x + 8 * static_cast<float>(k) / 5, 0.1);
      EXPECT_NEAR(face.keypoints[k].y, y + 8 * static_cast<float>(k) / 5, 0.1);
      EXPECT_EQ(face.keypoints[k].confidence, 1);
    }
  }
  EXPECT_TRUE(look(PictureReader::kRedFaces, filled(128, 64, kGrey)).objects.empty());
}

TEST_P(P02, GivenRawOutputs_WhenAskedFor_ThenTheyComeBackAndElseStayOnTheDevice) {
  const Picture picture = filled(64, 64, 2);
  const auto kept = look(PictureReader::kRaw, picture);
  EXPECT_TRUE(kept.tensors.empty());
  ASSERT_EQ(kept.device.tensors.size(), 2u);
  EXPECT_EQ(kept.device.tensors[0].name, "mean");
  EXPECT_EQ(kept.device.letterbox.input_width, kModelSize);

  const auto read = look(PictureReader::kRaw, picture, true);
  ASSERT_EQ(read.tensors.size(), 2u);
  EXPECT_EQ(read.tensors[0].name, "mean");
  EXPECT_EQ(read.tensors[0].shape, (Shape{1, 3}));
  ASSERT_EQ(read.tensors[0].values.size(), 3u);
  EXPECT_NEAR(read.tensors[0].values[2], 1, 0.02);
  EXPECT_EQ(read.tensors[1].shape, (Shape{1, kModelSize, kModelSize}));
  EXPECT_THAT(read.tensors[1].values, ::testing::Each(3.0));
}

}  // namespace
}  // namespace penstock
