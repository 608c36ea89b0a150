// SPDX-License-Identifier: Apache-2.0
//
// V17 for what is drawn on: the conversion against the float oracle, which is the preprocessor's at
// 1:1. The clause allows one level; half of one is rounding, and the kernel gets a fifth besides.
#include "penstock/draw/kernels/yuv420_to_bgra.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "penstock/draw/compositor.h"
#include "penstock/media/test_frames.h"

namespace penstock {
namespace {

using testing::FrameLayout;
using testing::Picture;

constexpr double kTolerance = 0.7;

class V17 : public ::testing::TestWithParam<const char*> {
 protected:
  void expect_close(const Picture& picture, const FrameLayout& layout, const std::string& what) {
    const auto frame = testing::make_frame(*device_, picture, layout);
    const auto compositor = Compositor::create(device_);
    ASSERT_TRUE(compositor);
    auto drawing = std::make_shared<Drawing>(
        Drawing{.list = DrawList(picture.width, picture.height), .atlas = nullptr});
    const std::size_t stride = 4 * static_cast<std::size_t>(picture.width) + layout.extra_stride;
    auto output = device_->allocate(stride * static_cast<std::size_t>(picture.height));
    ASSERT_TRUE(output);
    auto done = (*compositor)->run(frame, drawing, *output, stride);
    ASSERT_TRUE(done && done->wait());
    const auto bytes = testing::read_storage(*device_, *output);

    PreprocessSpec spec;
    spec.width = picture.width;
    spec.height = picture.height;
    spec.fit = Fit::kStretch;
    spec.layout = TensorLayout::kNhwc;
    spec.order = ChannelOrder::kBgr;
    const auto expected = testing::preprocess_oracle(picture, layout.color, spec);
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::size_t pixel = i / 3;
      const std::size_t x = pixel % static_cast<std::size_t>(picture.width);
      const std::size_t y = pixel / static_cast<std::size_t>(picture.width);
      worst = std::max(worst, std::abs(bytes[y * stride + 4 * x + i % 3] - expected[i]));
      ASSERT_EQ(bytes[y * stride + 4 * x + 3], 255) << what;
    }
    EXPECT_LE(worst, kTolerance) << what;
  }

  void expect_close_everywhere(const Picture& picture) {
    int combination = 0;
    for (const auto matrix : {ColorMatrix::kBt601, ColorMatrix::kBt709}) {
      for (const auto range : {ColorRange::kLimited, ColorRange::kFull}) {
        for (const auto site : {ChromaSite::kLeft, ChromaSite::kCenter}) {
          for (const auto format : {PixelFormat::kNv12, PixelFormat::kI420}) {
            expect_close(picture,
                         {.format = format,
                          .extra_stride = static_cast<std::size_t>(combination % 7),
                          .offset = static_cast<std::size_t>(combination % 5),
                          .color = {matrix, range, site}},
                         std::to_string(picture.width) + "x" + std::to_string(picture.height) +
                             ", combination " + std::to_string(combination));
            ++combination;
          }
        }
      }
    }
    EXPECT_EQ(combination, 16);
  }

  const DevicePtr device_ = testing::make_device(GetParam());
};
INSTANTIATE_TEST_SUITE_P(cpu, V17, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, V17, ::testing::Values("sim"));

TEST_P(V17, GivenAllKindsOfSizes_WhenConverted_ThenWithinTheTolerance) {
  // Around the steps of every vector length, rows in one block and in several.
  for (const auto& [width, height] : {std::pair{2, 2},
                                      {4, 2},
                                      {6, 4},
                                      {14, 2},
                                      {16, 16},
                                      {18, 6},
                                      {30, 18},
                                      {32, 2},
                                      {34, 34},
                                      {62, 2},
                                      {64, 16},
                                      {66, 2},
                                      {98, 10}}) {
    expect_close_everywhere(testing::noise(width, height, 3));
  }
}

TEST_P(V17, GivenOnlyExtremeSamples_WhenConverted_ThenNothingWrapsAround) {
  expect_close_everywhere(testing::extremes(66, 34, 5));
}

TEST_P(V17, GivenOneColouredSample_WhenConverted_ThenItSpreadsAsItsSiteSays) {
  expect_close_everywhere(testing::chroma_impulse(32, 16, 7, 3));
  expect_close_everywhere(testing::chroma_impulse(32, 16, 0, 0));
  expect_close_everywhere(testing::chroma_impulse(32, 16, 15, 7));
}

}  // namespace
}  // namespace penstock
