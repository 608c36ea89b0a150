// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/geometry.h"

#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <limits>
#include <random>

namespace penstock {
namespace {

// V10 -------------------------------------------------------------------------------------------

TEST(V10, GivenAnyRegion_WhenGrown_ThenItIsTheSmallestEvenCoverOfWhatLiesInside) {
  std::mt19937 random(7);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  int inside = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const int width = 2 * pick(1, 40);
    const int height = 2 * pick(1, 40);
    const RectI roi{pick(-20, 90), pick(-20, 90), pick(-2, 60), pick(-2, 60)};
    // Oracle: pixel by pixel. A 2 x 2 block belongs to the cover when any of its pixels is in the
    // region and in the frame.
    int left = INT_MAX, top = INT_MAX, right = INT_MIN, bottom = INT_MIN;
    for (int y = std::max(0, roi.y); y < std::min(height, roi.y + roi.height); ++y) {
      for (int x = std::max(0, roi.x); x < std::min(width, roi.x + roi.width); ++x) {
        left = std::min(left, x / 2 * 2);
        top = std::min(top, y / 2 * 2);
        right = std::max(right, x / 2 * 2 + 2);
        bottom = std::max(bottom, y / 2 * 2 + 2);
      }
    }
    const auto grown = grow_to_chroma(roi, width, height);
    if (left == INT_MAX) {
      ASSERT_FALSE(grown) << trial;
      EXPECT_EQ(grown.error().kind(), ErrorKind::kInvalidArgument);
      continue;
    }
    ++inside;
    ASSERT_TRUE(grown) << grown.error().message();
    ASSERT_EQ(*grown, (RectI{left, top, right - left, bottom - top})) << "trial " << trial;
  }
  EXPECT_GT(inside, 1000);
}

TEST(V10, GivenARegionThatOverflows_WhenGrown_ThenItIsClippedOrRefused) {
  EXPECT_EQ(*grow_to_chroma({1, 1, INT_MAX, INT_MAX}, 64, 48), (RectI{0, 0, 64, 48}));
  EXPECT_FALSE(grow_to_chroma({INT_MIN, INT_MIN, INT_MAX, INT_MAX}, 64, 48));
  EXPECT_FALSE(grow_to_chroma({INT_MAX, 0, INT_MAX, 4}, 64, 48));
  EXPECT_FALSE(grow_to_chroma({0, 0, INT_MIN, 4}, 64, 48));
}

TEST(V10, GivenAGrownRegion_WhenPlanned_ThenTheWayBackRecordsTheGrownRectangle) {
  const auto crop = grow_to_chroma({101, 51, 37, 21}, 640, 480);
  ASSERT_TRUE(crop);
  ASSERT_EQ(*crop, (RectI{100, 50, 38, 22}));
  const auto box = Letterbox::plan(*crop, 640, 480, 38, 22, Fit::kStretch);
  ASSERT_TRUE(box);
  EXPECT_EQ(box->crop, *crop);
  const auto back = box->to_source({0, 0, 38, 22});
  ASSERT_TRUE(back);
  EXPECT_FLOAT_EQ(back->x, 100);
  EXPECT_FLOAT_EQ(back->y, 50);
  EXPECT_FLOAT_EQ(back->width, 38);
  EXPECT_FLOAT_EQ(back->height, 22);
}

// P05 -------------------------------------------------------------------------------------------

TEST(P05, GivenManySizes_WhenBoxesGoThereAndBack_ThenTheyAreTheSame) {
  std::mt19937 random(11);
  const auto even = [&](int high) {
    return 2 * std::uniform_int_distribution<int>(1, high / 2)(random);
  };
  std::uniform_real_distribution<double> unit(0, 1);
  for (int trial = 0; trial < 5000; ++trial) {
    const int width = even(4096);
    const int height = even(4096);
    const RectI crop{0, 0, width, height};
    const int input = even(1280);
    const auto fit = static_cast<Fit>(trial % 3);
    const auto box = Letterbox::plan(crop, width, height, input, input, fit);
    ASSERT_TRUE(box);
    // Forward in the test's own words: rounded scaled size, then padding.
    const double x0 = unit(random) * width * 0.9;
    const double y0 = unit(random) * height * 0.9;
    const double w = (width - x0) * (0.1 + 0.8 * unit(random));
    const double h = (height - y0) * (0.1 + 0.8 * unit(random));
    const double scale_x = double(box->scaled_width) / width;
    const double scale_y = double(box->scaled_height) / height;
    const RectF there{static_cast<float>(box->pad_x + x0 * scale_x),
                      static_cast<float>(box->pad_y + y0 * scale_y),
                      static_cast<float>(w * scale_x), static_cast<float>(h * scale_y)};
    const auto back = box->to_source(there);
    ASSERT_TRUE(back) << "trial " << trial;
    // Floats of a 1280 input carry 2^-13; a 4096 source over a 2 pixel input magnifies that.
    const double tolerance = 4e-4 * std::max(1 / scale_x, 1 / scale_y) + 1e-3;
    ASSERT_NEAR(back->x, x0, tolerance);
    ASSERT_NEAR(back->y, y0, tolerance);
    ASSERT_NEAR(back->width, w, tolerance);
    ASSERT_NEAR(back->height, h, tolerance);
  }
}

TEST(P05, GivenAScaleThatRounds_WhenInverted_ThenEachAxisUsesItsOwnRoundedScale) {
  // 768 x 576 into 416 x 416: 416 x 312 exactly. 1366 x 768 into 416: 416 x 233.88 -> 234.
  const auto box = Letterbox::plan({0, 0, 1366, 768}, 1366, 768, 416, 416, Fit::kLetterboxCenter);
  ASSERT_TRUE(box);
  EXPECT_EQ(box->scaled_width, 416);
  EXPECT_EQ(box->scaled_height, 234);
  EXPECT_EQ(box->pad_y, 91);
  const auto back = box->to_source({0, 91, 416, 234});
  ASSERT_TRUE(back);
  EXPECT_FLOAT_EQ(back->x, 0);
  EXPECT_FLOAT_EQ(back->y, 0);
  EXPECT_FLOAT_EQ(back->width, 1366);
  EXPECT_FLOAT_EQ(back->height, 768);  // one gain for both axes would give 768.4
  const auto lower_half = box->to_source({0, 91 + 117, 416, 117});
  ASSERT_TRUE(lower_half);
  EXPECT_FLOAT_EQ(lower_half->y, 384);
}

TEST(P05, GivenACrop_WhenInverted_ThenBoxesAreOffsetByItAndClippedToTheSource) {
  const auto box = Letterbox::plan({200, 100, 100, 50}, 400, 300, 200, 100, Fit::kStretch);
  ASSERT_TRUE(box);
  const auto inside = box->to_source({20, 10, 40, 20});
  ASSERT_TRUE(inside);
  EXPECT_FLOAT_EQ(inside->x, 210);
  EXPECT_FLOAT_EQ(inside->y, 105);
  EXPECT_FLOAT_EQ(inside->width, 20);
  EXPECT_FLOAT_EQ(inside->height, 10);
  const auto clipped = box->to_source({-1000, -1000, 5000, 5000});
  ASSERT_TRUE(clipped);
  EXPECT_FLOAT_EQ(clipped->x, 0);
  EXPECT_FLOAT_EQ(clipped->y, 0);
  EXPECT_FLOAT_EQ(clipped->width, 400);
  EXPECT_FLOAT_EQ(clipped->height, 300);
}

TEST(P05, GivenABoxThatIsEmptyOrNotFinite_WhenInverted_ThenNothingComesBack) {
  const auto box = Letterbox::plan({0, 0, 640, 480}, 640, 480, 416, 416, Fit::kLetterboxCenter);
  ASSERT_TRUE(box);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(box->to_source({10, 200, 0, 5}));
  EXPECT_FALSE(box->to_source({10, 200, 5, 0}));
  EXPECT_FALSE(box->to_source({10, 200, -5, 5}));
  EXPECT_FALSE(box->to_source({-50, 200, 50, 5})) << "left of the source";
  EXPECT_FALSE(box->to_source({0, 0, 416, 52})) << "only padding";
  EXPECT_FALSE(box->to_source({kNan, 200, 5, 5}));
  EXPECT_FALSE(box->to_source({10, 200, kNan, 5}));
  EXPECT_FALSE(box->to_source({10, kInf, 5, 5}));
  EXPECT_FALSE(box->to_source({10, 200, 5, kInf}));
  EXPECT_FALSE(box->to_source({-kInf, 200, kInf, 5}));
}

// Letterbox::plan -------------------------------------------------------------------------------

TEST(Letterbox, GivenHalfPixels_WhenRounded_ThenHalfGoesToEven) {
  // 2 x 8 into 5 x 10: ratio 1.25, width 2.5 -> 2. 6 x 8 into 15 x 10: 7.5 -> 8.
  EXPECT_EQ(Letterbox::plan({0, 0, 2, 8}, 2, 8, 5, 10, Fit::kLetterboxCenter)->scaled_width, 2);
  EXPECT_EQ(Letterbox::plan({0, 0, 6, 8}, 6, 8, 15, 10, Fit::kLetterboxCenter)->scaled_width, 8);
}

TEST(Letterbox, GivenOddPadding_WhenCentred_ThenTheSmallerHalfIsLeftAndAbove) {
  const auto box = Letterbox::plan({0, 0, 4, 8}, 4, 8, 9, 8, Fit::kLetterboxCenter);
  EXPECT_EQ(box->scaled_width, 4);
  EXPECT_EQ(box->pad_x, 2);
  EXPECT_EQ(Letterbox::plan({0, 0, 4, 8}, 4, 8, 9, 8, Fit::kLetterboxTopLeft)->pad_x, 0);
}

TEST(Letterbox, GivenASliver_WhenScaledDown_ThenNoSideBecomesZero) {
  for (const Fit fit : {Fit::kStretch, Fit::kLetterboxCenter, Fit::kLetterboxTopLeft}) {
    const auto box = Letterbox::plan({0, 0, 32766, 2}, 32766, 2, 416, 416, fit);
    ASSERT_TRUE(box);
    EXPECT_GE(box->scaled_height, 1);
    EXPECT_LE(box->pad_y + box->scaled_height, 416);
  }
}

TEST(V03, GivenSizesBeyondTheLimit_WhenPlanned_ThenTheyAreRefused) {
  EXPECT_TRUE(Letterbox::plan({0, 0, 32766, 32766}, 32766, 32766, 416, 416, Fit::kStretch));
  EXPECT_FALSE(Letterbox::plan({0, 0, 32768, 2}, 32768, 2, 416, 416, Fit::kStretch));
  EXPECT_FALSE(Letterbox::plan({0, 0, 2, 32768}, 2, 32768, 416, 416, Fit::kStretch));
  EXPECT_FALSE(Letterbox::plan({0, 0, 64, 48}, 64, 48, 32767, 416, Fit::kStretch));
  EXPECT_FALSE(Letterbox::plan({0, 0, 64, 48}, 64, 48, 416, 0, Fit::kStretch));
  EXPECT_FALSE(grow_to_chroma({0, 0, 4, 4}, 32768, 4));
}

TEST(Letterbox, GivenACropOutsideTheFrameOrOdd_WhenPlanned_ThenItIsRefused) {
  for (const RectI crop : {RectI{-2, 0, 4, 4}, RectI{62, 0, 4, 4}, RectI{0, 46, 4, 4},
                           RectI{1, 0, 4, 4}, RectI{0, 0, 3, 4}, RectI{0, 0, 0, 4},
                           RectI{INT_MAX - 1, 0, 4, 4}, RectI{0, 0, INT_MAX - 1, 4}}) {
    EXPECT_FALSE(Letterbox::plan(crop, 64, 48, 32, 32, Fit::kStretch))
        << crop.x << "," << crop.y << " " << crop.width << "x" << crop.height;
  }
}

}  // namespace
}  // namespace penstock
