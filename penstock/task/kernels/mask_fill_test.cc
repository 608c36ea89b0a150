// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/kernels/mask_fill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace penstock {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// The level in double, one pixel at a time.
double exact_level(const std::vector<float>& prototypes, std::size_t plane, std::size_t pixel,
                   const std::vector<float>& coefficients) {
  double logit = 0;
  for (std::size_t m = 0; m < coefficients.size(); ++m) {
    logit += double(coefficients[m]) * double(prototypes[m * plane + pixel]);
  }
  return 255 / (1 + std::exp(-logit));
}

TEST(MaskFill, GivenRandomPrototypesOfManySizes_WhenFilled_ThenEachLevelIsWithinOne) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> value(-2, 2);
  for (const std::size_t width : {1, 3, 8, 31, 32, 33, 70, 160}) {
    for (const std::size_t channels : {1, 5, 32}) {
      const std::size_t height = 21, plane = width * height;  // of several strips
      std::vector<float> prototypes(channels * plane), coefficients(channels);
      for (float& v : prototypes) v = value(random);
      for (float& v : coefficients) v = value(random);
      const MaskWindow window{width / 5, 1, width - width / 7, 19};
      std::vector<std::uint8_t> mask(plane, 77);
      fill_masks({prototypes, width, height}, std::vector<MaskJob>{{coefficients, window, mask}});
      for (std::size_t y = 0; y < height; ++y) {
        for (std::size_t x = 0; x < width; ++x) {
          const std::uint8_t got = mask[y * width + x];
          if (x < window.x0 || x >= window.x1 || y < window.y0 || y >= window.y1) {
            ASSERT_EQ(got, 0) << x << "," << y;
          } else {
            ASSERT_NEAR(got, exact_level(prototypes, plane, y * width + x, coefficients), 0.51)
                << x << "," << y << " of " << width << ", " << channels << " channels";
          }
        }
      }
    }
  }
}

TEST(MaskFill, GivenSeveralObjects_WhenFilled_ThenEachMaskIsItsOwn) {
  constexpr std::size_t kWidth = 24, kHeight = 20, kPlane = kWidth * kHeight;
  const std::vector<float> prototypes(6 * kPlane, 1.0f);
  const std::vector<float> yes(6, 9.0f), no(6, -9.0f);
  std::vector<std::uint8_t> masks(3 * kPlane, 77);
  const auto mask = [&](std::size_t i) { return std::span(masks).subspan(i * kPlane, kPlane); };
  fill_masks({prototypes, kWidth, kHeight},
             std::vector<MaskJob>{{yes, {3, 2, 9, 18}, mask(0)},
                                  {no, {0, 0, kWidth, kHeight}, mask(1)},
                                  {yes, {5, 7, 20, 9}, mask(2)}});
  for (std::size_t y = 0; y < kHeight; ++y) {
    for (std::size_t x = 0; x < kWidth; ++x) {
      const std::size_t at = y * kWidth + x;
      ASSERT_EQ(masks[at], x >= 3 && x < 9 && y >= 2 && y < 18 ? 255 : 0);
      ASSERT_EQ(masks[kPlane + at], 0);
      ASSERT_EQ(masks[2 * kPlane + at], x >= 5 && x < 20 && y >= 7 && y < 9 ? 255 : 0);
    }
  }
}

TEST(MaskFill, GivenValuesBeyondMeasure_WhenFilled_ThenLevelsSaturateAndNanIsNothing) {
  const std::vector<float> prototypes{0, 1000, -1000, kInf, -kInf, kNan, 3e38f, std::log(3.0f)};
  std::vector<std::uint8_t> mask(8, 77);
  const std::vector<float> weight{1};
  fill_masks({prototypes, 8, 1}, std::vector<MaskJob>{{weight, {0, 0, 8, 1}, mask}});
  EXPECT_EQ(mask, (std::vector<std::uint8_t>{128, 255, 0, 255, 0, 0, 255, 191}));
}

TEST(MaskFill, GivenFractionalBoxes_WhenTheWindowIsTaken_ThenItHoldsThePixelsWhoseCentresAreIn) {
  const auto expect = [](MaskBox box, MaskWindow wanted) {
    const MaskWindow got = mask_window(box, 16, 8);
    EXPECT_EQ(got.x0, wanted.x0);
    EXPECT_EQ(got.y0, wanted.y0);
    EXPECT_EQ(got.x1, wanted.x1);
    EXPECT_EQ(got.y1, wanted.y1);
  };
  expect({4, 2, 8, 4}, {4, 2, 8, 4});
  expect({4.25f, 2.5f, 7.75f, 3.5f}, {4, 2, 8, 3});    // centres on the edge: in, then out
  expect({4.75f, 2.75f, 7.25f, 3.25f}, {5, 3, 7, 3});  // no row
  expect({-9, -1e30f, 900, 1e30f}, {0, 0, 16, 8});     //
  expect({-9, -9, -5, -5}, {0, 0, 0, 0});              //
  expect({20, 20, 30, 30}, {16, 8, 16, 8});            //
  std::vector<std::uint8_t> mask(128, 77);
  const std::vector<float> prototypes(128, 9.0f);
  const std::vector<float> weight{1};
  fill_masks({prototypes, 16, 8},
             std::vector<MaskJob>{{weight, mask_window({20, 20, 30, 30}, 16, 8), mask}});
  EXPECT_EQ(mask, std::vector<std::uint8_t>(128, 0));
}

}  // namespace
}  // namespace penstock
