// SPDX-License-Identifier: Apache-2.0
//
// V17: the kernel against the float oracle, over everything that caps and manifests can say. The
// clause allows 1 level at 1:1 and 2 after scaling; the kernel is held to a tenth, so that a
// weight or siting that is a little wrong shows.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>

#include "penstock/media/preprocessor.h"
#include "penstock/media/test_frames.h"

namespace penstock {
namespace {

using testing::FrameLayout;
using testing::Picture;

constexpr double kTolerance = 0.1;

struct Geometry {
  int width, height, input_width, input_height;
  Fit fit;
  std::optional<RectI> roi;
};

class V17 : public ::testing::TestWithParam<const char*> {
 protected:
  void expect_close(const Picture& picture, const FrameLayout& layout, const PreprocessSpec& spec,
                    std::optional<RectI> roi, const std::string& what) {
    const auto frame = testing::make_frame(*device_, picture, layout);
    const auto preprocessor = Preprocessor::create(device_, spec);
    ASSERT_TRUE(preprocessor) << preprocessor.error().message();
    const auto result = (*preprocessor)->run(frame, roi);
    ASSERT_TRUE(result) << result.error().message();
    const auto values = testing::read_tensor(*device_, result->tensor);
    const auto expected = testing::preprocess_oracle(picture, layout.color, spec, roi);
    ASSERT_EQ(values.size(), expected.size());
    double worst = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double error = std::abs(values[i] - expected[i]);
      if (error > worst || !(error == error)) worst = error, at = i;
    }
    EXPECT_LE(worst, kTolerance) << what << ", element " << at << ": " << values[at] << " for "
                                 << expected[at];
  }

  // Every matrix x range x siting x format x layout x order.
  void expect_close_everywhere(const Picture& picture, const Geometry& geometry) {
    int combination = 0;
    for (const auto matrix : {ColorMatrix::kBt601, ColorMatrix::kBt709}) {
      for (const auto range : {ColorRange::kLimited, ColorRange::kFull}) {
        for (const auto site : {ChromaSite::kLeft, ChromaSite::kCenter}) {
          for (const auto format : {PixelFormat::kNv12, PixelFormat::kI420}) {
            for (const auto tensor : {TensorLayout::kNchw, TensorLayout::kNhwc}) {
              for (const auto order : {ChannelOrder::kRgb, ChannelOrder::kBgr}) {
                PreprocessSpec spec;
                spec.width = geometry.input_width;
                spec.height = geometry.input_height;
                spec.fit = geometry.fit;
                spec.layout = tensor;
                spec.order = order;
                const std::string what = "combination " + std::to_string(combination++);
                expect_close(picture,
                             {.format = format,
                              .extra_stride = static_cast<std::size_t>(combination % 7),
                              .offset = static_cast<std::size_t>(combination % 5),
                              .color = {matrix, range, site}},
                             spec, geometry.roi, what);
              }
            }
          }
        }
      }
    }
    EXPECT_EQ(combination, 64);
  }

  const DevicePtr device_ = testing::make_device(GetParam());
};
INSTANTIATE_TEST_SUITE_P(cpu, V17, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, V17, ::testing::Values("sim"));

TEST_P(V17, GivenColourBars_WhenOneToOne_ThenWithinTheTolerance) {
  expect_close_everywhere(testing::color_bars(64, 16), {64, 16, 64, 16, Fit::kStretch, {}});
}

TEST_P(V17, GivenOneChromaSample_WhenOneToOne_ThenItSpreadsByItsSiting) {
  expect_close_everywhere(testing::chroma_impulse(32, 24, 5, 6),
                          {32, 24, 32, 24, Fit::kStretch, {}});
}

TEST_P(V17, GivenOneChromaSample_WhenScaledUp_ThenItSpreadsByItsSiting) {
  expect_close_everywhere(testing::chroma_impulse(16, 16, 3, 4),
                          {16, 16, 50, 37, Fit::kStretch, {}});
}

TEST_P(V17, GivenAGrayRamp_WhenScaledDown_ThenWithinTheTolerance) {
  expect_close_everywhere(testing::gray_ramp(220, 12), {220, 12, 93, 31, Fit::kStretch, {}});
}

TEST_P(V17, GivenOutOfRangeLevels_WhenOneToOneAndScaled_ThenTheyAreClamped) {
  expect_close_everywhere(testing::extremes(38, 26, 1), {38, 26, 38, 26, Fit::kStretch, {}});
  expect_close_everywhere(testing::extremes(38, 26, 2), {38, 26, 29, 17, Fit::kStretch, {}});
}

TEST_P(V17, GivenNoise_WhenLetterboxed_ThenWithinTheTolerance) {
  expect_close_everywhere(testing::noise(96, 54, 3), {96, 54, 41, 41, Fit::kLetterboxCenter, {}});
  expect_close_everywhere(testing::noise(54, 96, 4), {54, 96, 65, 65, Fit::kLetterboxTopLeft, {}});
}

TEST_P(V17, GivenRegions_WhenCropped_ThenTheyLookLikeFramesOfTheirOwn) {
  expect_close_everywhere(testing::noise(80, 60, 5),
                          {80, 60, 32, 32, Fit::kStretch, RectI{22, 14, 36, 30}});
  expect_close_everywhere(testing::noise(80, 60, 6),
                          {80, 60, 24, 32, Fit::kLetterboxCenter, RectI{64, 50, 16, 10}});
}

TEST_P(V17, GivenEveryWidth_WhenPreprocessed_ThenNoVectorTailIsWrong) {
  for (int width = 2; width <= 140; width += 2) {
    const Picture picture = testing::noise(width, 4, static_cast<std::uint32_t>(width));
    for (const auto format : {PixelFormat::kNv12, PixelFormat::kI420}) {
      for (const auto tensor : {TensorLayout::kNchw, TensorLayout::kNhwc}) {
        PreprocessSpec spec;
        spec.width = 1 + width * 7 / 5;
        spec.height = 3;
        spec.layout = tensor;
        expect_close(picture, {.format = format}, spec, {}, "width " + std::to_string(width));
      }
    }
  }
}

TEST_P(V17, GivenAnyShrinkage_WhenPreprocessed_ThenWithinTheTolerance) {
  // From pixels that are neighbours to pixels that are far apart, of wide and of narrow regions.
  const Picture picture = testing::noise(512, 6, 9);
  for (const auto format : {PixelFormat::kNv12, PixelFormat::kI420}) {
    for (const int width : {1, 2, 3, 5, 8, 19, 32, 36, 40, 45, 52, 70, 110, 130, 200, 300}) {
      for (const int crop : {512, 206, 40, 30, 14, 2}) {
        PreprocessSpec spec;
        spec.width = width;
        spec.height = 5;
        expect_close(picture, {.format = format}, spec, RectI{512 - crop, 0, crop, 6},
                     std::to_string(crop) + " to " + std::to_string(width));
      }
    }
  }
}

TEST_P(V17, GivenA1080pFrame_WhenLetterboxedTo416_ThenWithinTheTolerance) {
  PreprocessSpec spec;
  spec.width = spec.height = 416;
  spec.fit = Fit::kLetterboxCenter;
  expect_close(testing::noise(1920, 1080, 7), {}, spec, {}, "1080p");
}

TEST_P(V17, GivenOneFrame_WhenPreprocessedHereAndOnCpu_ThenEveryBitIsTheSame) {
  PreprocessSpec spec;
  spec.width = 83;
  spec.height = 61;
  spec.fit = Fit::kLetterboxCenter;
  spec.mean = {1, 2, 3};
  spec.std = {57, 58, 59};
  std::vector<std::vector<float>> values;
  for (const DevicePtr& device : {device_, testing::make_device("cpu")}) {
    const auto frame = testing::make_frame(*device, testing::noise(150, 90, 8));
    const auto preprocessor = Preprocessor::create(device, spec);
    ASSERT_TRUE(preprocessor);
    const auto result = (*preprocessor)->run(frame);
    ASSERT_TRUE(result);
    values.push_back(testing::read_tensor(*device, result->tensor));
  }
  EXPECT_EQ(values[0], values[1]);
}

}  // namespace
}  // namespace penstock
