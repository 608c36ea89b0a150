// SPDX-License-Identifier: Apache-2.0
//
// Contract P02 from frame to box: each family's network finds a coloured square on frames of
// several sizes, through preprocessing, engine, decoder and inverse geometry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <tuple>

#include "penstock/base/str_format.h"
#include "penstock/exec/frame_inference.h"
#include "penstock/media/test_frames.h"
#include "penstock/model/testing/square_finders.h"

namespace penstock {
namespace {

using model_testing::BoxLayout;
using testing::make_device;
using testing::make_frame;
using testing::Picture;

constexpr int kModelSize = 160;

/// Full red, green and blue in BT.709 limited.
constexpr std::uint8_t kLevels[3][3] = {{63, 102, 240}, {173, 42, 26}, {32, 240, 118}};

struct Placed {
  int class_id, x, y, side;
};

Picture draw(int width, int height, const Placed& square) {
  const auto& level = kLevels[square.class_id];
  Picture picture(width, height, 126);
  for (int row = square.y; row < square.y + square.side; ++row) {
    for (int column = square.x; column < square.x + square.side; ++column) {
      picture.y_at(column, row) = level[0];
      const auto chroma = static_cast<std::size_t>(row / 2) * static_cast<std::size_t>(width / 2) +
                          static_cast<std::size_t>(column / 2);
      picture.u[chroma] = level[1];
      picture.v[chroma] = level[2];
    }
  }
  return picture;
}

class FamilySquares : public ::testing::TestWithParam<std::tuple<const char*, BoxLayout>> {
 protected:
  Manifest load() {
    const auto folder =
        std::filesystem::path(::testing::TempDir()) /
        str_format("penstock-family-{}-{}", to_string(std::get<1>(GetParam())), getpid());
    const auto model = model_testing::make_square_finder(std::get<1>(GetParam()), kModelSize);
    auto manifest = load_manifest(model_testing::write_model_folder(model, folder));
    std::error_code ignored;
    EXPECT_TRUE(manifest) << manifest.error().message();
    return manifest.value_or(Manifest{});
  }
};
class P02 : public FamilySquares {};

TEST_P(P02, GivenSquaresOnFramesOfManySizes_WhenInferred_ThenBoxesLandOnThemWithinAPixel) {
  const DevicePtr device = make_device(std::get<0>(GetParam()));
  InferenceOptions options;
  options.workers = 1;
  auto inference = FrameInference::open(device, load(), options);
  ASSERT_TRUE(inference) << inference.error().message();
  struct Size {
    int width, height, scale;  ///< Frame pixels a model pixel.
  };
  int n = 0;
  for (const Size size :
       {Size{160, 160, 1}, {320, 240, 2}, {240, 320, 2}, {640, 360, 4}, {480, 480, 3}}) {
    for (const int stride : {8, 16}) {
      const int grid = stride * size.scale;
      // Where padding shifts the picture off the model's grid, the square starts off the frame's by
      // as much.
      const int left = (kModelSize - size.width / size.scale) / 2 % stride;
      const int top = (kModelSize - size.height / size.scale) / 2 % stride;
      const Placed square{.class_id = n % 3,
                          .x = grid * (1 + n % 2) - left * size.scale,
                          .y = grid * (1 + n % 2) - top * size.scale,
                          .side = 3 * grid};
      if (square.x + square.side > size.width || square.y + square.side > size.height) continue;
      SCOPED_TRACE(str_format("{}x{} stride {}", size.width, size.height, stride));
      auto future = (*inference)
                        ->executor()
                        .submit({.frame = make_frame(*device, draw(size.width, size.height, square),
                                                     {.format = PixelFormat::kNv12}),
                                 .roi = {},
                                 .source = {"camera"},
                                 .generation = 0},
                                WhenFull::kWait);
      ASSERT_TRUE(future);
      const auto result = future->get();
      ASSERT_TRUE(result) << result.error().message();
      ASSERT_EQ(result->objects.size(), 1u);
      const Detection& found = result->objects.front();
      EXPECT_EQ(found.class_id, square.class_id);
      EXPECT_NEAR(found.x, static_cast<float>(square.x), 1.0f);
      EXPECT_NEAR(found.y, static_cast<float>(square.y), 1.0f);
      EXPECT_NEAR(found.width, static_cast<float>(square.side), 1.0f);
      EXPECT_NEAR(found.height, static_cast<float>(square.side), 1.0f);
      ++n;
    }
  }
  EXPECT_GE(n, 7);
}

std::string layout_name(const ::testing::TestParamInfo<std::tuple<const char*, BoxLayout>>& info) {
  return std::string(to_string(std::get<1>(info.param)));
}
const auto kLayouts = ::testing::Values(
    BoxLayout::kYolov5, BoxLayout::kYolov8, BoxLayout::kEndToEnd, BoxLayout::kYolox,
    BoxLayout::kRtdetr, BoxLayout::kRtdetrLogits, BoxLayout::kSsdList, BoxLayout::kSsdFour);
INSTANTIATE_TEST_SUITE_P(cpu, P02, ::testing::Combine(::testing::Values("cpu"), kLayouts),
                         layout_name);
INSTANTIATE_TEST_SUITE_P(sim, P02, ::testing::Combine(::testing::Values("sim"), kLayouts),
                         layout_name);

}  // namespace
}  // namespace penstock
