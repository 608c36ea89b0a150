// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/letterbox_scale.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(G03, GivenAWholeFrame_WhenToldAtAnotherSize_ThenPlacesScaleExactly) {
  // 640x360 letterboxed into 320x320: scale 1/2, 70 rows of padding above.
  const auto way = Letterbox::plan({0, 0, 640, 360}, 640, 360, 320, 320, Fit::kLetterboxCenter);
  ASSERT_TRUE(way);
  const Letterbox large = at_frame_size(*way, 1920, 1080);
  EXPECT_EQ(large.crop, (RectI{0, 0, 1920, 1080}));
  EXPECT_EQ(large.frame_width, 1920);
  EXPECT_EQ(large.frame_height, 1080);
  EXPECT_EQ(large.pad_y, 70);
  const auto point = large.to_source(PointF{160, 160});
  ASSERT_TRUE(point);
  EXPECT_FLOAT_EQ(point->x, 960);
  EXPECT_FLOAT_EQ(point->y, 540);
}

TEST(G03, GivenACropThatDoesNotFit_WhenToldInSmallerPixels_ThenEdgesAreRoundedAndAPixelStays) {
  Letterbox way{.crop = {100, 50, 31, 1},
                .scaled_width = 31,
                .scaled_height = 1,
                .input_width = 31,
                .input_height = 1,
                .frame_width = 1920,
                .frame_height = 1080};
  const Letterbox small = at_frame_size(way, 640, 360);
  // 100 / 3 = 33.3, 131 / 3 = 43.7; 50 / 3 = 16.7, 51 / 3 = 17.
  EXPECT_EQ(small.crop, (RectI{33, 17, 11, 1}));
  way.crop = {1918, 1078, 2, 2};
  const Letterbox corner = at_frame_size(way, 64, 36);
  EXPECT_EQ(corner.crop, (RectI{63, 35, 1, 1})) << "inside the frame";
}

TEST(G03, GivenNoFrame_WhenToldAtASize_ThenNothingIsInvented) {
  const Letterbox none = at_frame_size({}, 640, 360);
  EXPECT_EQ(none.frame_width, 0);
  EXPECT_EQ(none.crop, (RectI{}));
}

}  // namespace
}  // namespace penstock
