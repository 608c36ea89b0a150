// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/video_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "penstock/media/test_frames.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

// A frame whose planes are claimed to lie in a few bytes; nothing reads them.
VideoFrame frame_of(int width, int height, PixelFormat format, std::size_t bytes) {
  static std::vector<std::byte> memory(1 << 20);
  VideoFrame frame;
  frame.format = format;
  frame.width = width;
  frame.height = height;
  const auto storage = wrap_host_memory(std::span(memory).first(bytes), nullptr);
  for (int p = 0; p < plane_count(format); ++p) {
    const int row = p == 0 || format == PixelFormat::kNv12 ? width : width / 2;
    frame.planes[static_cast<std::size_t>(p)] = {
        .storage = storage, .offset = 0, .stride = static_cast<std::size_t>(row)};
  }
  return frame;
}

std::string refusal(const VideoFrame& frame) {
  const auto result = validate(frame);
  return result ? "accepted" : result.error().message();
}

TEST(V02, GivenEvenSizes_WhenValidated_ThenBothFormatsAreAccepted) {
  for (const PixelFormat format : {PixelFormat::kNv12, PixelFormat::kI420}) {
    EXPECT_EQ(refusal(frame_of(64, 48, format, 64 * 48)), "accepted");
    EXPECT_EQ(refusal(frame_of(2, 2, format, 4)), "accepted");
  }
}

TEST(V02, GivenOddSizes_WhenValidated_ThenTheyAreRefusedByName) {
  EXPECT_THAT(refusal(frame_of(63, 48, PixelFormat::kNv12, 64 * 48)), HasSubstr("63x48 is odd"));
  EXPECT_THAT(refusal(frame_of(64, 47, PixelFormat::kI420, 64 * 48)), HasSubstr("64x47 is odd"));
  const auto odd = validate(frame_of(64, 47, PixelFormat::kI420, 64 * 48));
  EXPECT_EQ(odd.error().kind(), ErrorKind::kUnsupported);
}

TEST(V02, GivenAnUndeclaredColour_WhenTheFrameIsMade_ThenItIsBt709LimitedLeft) {
  const VideoFrame frame;
  EXPECT_EQ(frame.color.matrix, ColorMatrix::kBt709);
  EXPECT_EQ(frame.color.range, ColorRange::kLimited);
  EXPECT_EQ(frame.color.site, ChromaSite::kLeft);
}

TEST(V02, GivenAnUnknownFormat_WhenValidated_ThenItIsRefused) {
  VideoFrame frame = frame_of(64, 48, PixelFormat::kNv12, 64 * 48);
  frame.format = static_cast<PixelFormat>(7);
  EXPECT_THAT(refusal(frame), HasSubstr("neither NV12 nor I420"));
}

TEST(V03, GivenTheLargestWidth_WhenValidated_ThenItIsAcceptedAndTwoMoreAreNot) {
  EXPECT_EQ(refusal(frame_of(32766, 2, PixelFormat::kNv12, 32766 * 2)), "accepted");
  EXPECT_THAT(refusal(frame_of(32768, 2, PixelFormat::kNv12, 32768 * 2)), HasSubstr("32768x2"));
  EXPECT_THAT(refusal(frame_of(2, 32768, PixelFormat::kNv12, 32768 * 2)), HasSubstr("2x32768"));
  EXPECT_THAT(refusal(frame_of(0, 0, PixelFormat::kNv12, 4)), HasSubstr("0x0"));
  EXPECT_THAT(refusal(frame_of(-2, 2, PixelFormat::kNv12, 4)), HasSubstr("-2x2"));
}

TEST(VideoFrame, GivenPlanesThatDoNotFit_WhenValidated_ThenThePlaneIsNamed) {
  EXPECT_THAT(refusal(frame_of(64, 48, PixelFormat::kNv12, 64 * 48 - 1)), HasSubstr("plane 0"));
  VideoFrame frame = frame_of(64, 48, PixelFormat::kI420, 64 * 48);
  frame.planes[2].offset = 64 * 48 - 32 * 24 + 1;
  EXPECT_THAT(refusal(frame), HasSubstr("plane 2"));
  frame.planes[2].offset -= 1;
  EXPECT_EQ(refusal(frame), "accepted");
  frame.planes[1].stride = 31;
  EXPECT_THAT(refusal(frame), HasSubstr("stride of 31"));
  frame.planes[1].storage = nullptr;
  EXPECT_THAT(refusal(frame), HasSubstr("plane 1 has no memory"));
}

TEST(VideoFrame, GivenStridesThatOverflow_WhenValidated_ThenTheyAreRefused) {
  VideoFrame frame = frame_of(64, 48, PixelFormat::kNv12, 64 * 48);
  frame.planes[0].stride = std::numeric_limits<std::size_t>::max() / 2;
  EXPECT_THAT(refusal(frame), HasSubstr("does not fit"));
  frame.planes[0].stride = 64;
  frame.planes[1].offset = std::numeric_limits<std::size_t>::max() - 8;
  EXPECT_THAT(refusal(frame), HasSubstr("plane 1"));
}

TEST(VideoFrame, GivenALastRowWithoutItsPadding_WhenValidated_ThenItIsAccepted) {
  VideoFrame frame = frame_of(64, 48, PixelFormat::kNv12, 47 * 100 + 64);
  frame.planes[0].stride = 100;
  EXPECT_EQ(refusal(frame), "accepted");
}

TEST(VideoFrame, GivenPlanesOnTwoDevices_WhenValidated_ThenBothAreNamed) {
  const auto sim = testing::make_device("sim");
  VideoFrame frame = frame_of(16, 16, PixelFormat::kNv12, 256);
  frame.planes[1].storage = *sim->allocate(256);
  EXPECT_THAT(refusal(frame), HasSubstr("'sim'"));
  EXPECT_THAT(refusal(frame), HasSubstr("'cpu'"));
}

}  // namespace
}  // namespace penstock
