// SPDX-License-Identifier: Apache-2.0
#include "gst/video_caps.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

constexpr DeviceId kCpu{DeviceKind::kCpu, 0};

Result<VideoFormat> accept(const std::string& text, DeviceId device = kCpu) {
  const CapsPtr caps(gst_caps_from_string(text.c_str()));
  return accept_caps(caps.get(), device);
}

std::string nv12(const std::string& more) {
  return "video/x-raw,format=NV12,width=64,height=48,framerate=25/1" + more;
}

struct Colour {
  const char* fields;
  ColorMatrix matrix;
  ColorRange range;
  ChromaSite site;
};
/// The test's name, which else would hold addresses and differ from run to run.
void PrintTo(const Colour& colour, std::ostream* out) {
  *out << (*colour.fields == '\0' ? "undeclared" : colour.fields + 1);
}

class VideoCapsColour : public ::testing::TestWithParam<Colour> {};

// The frame is small on purpose: GstVideoInfo would say BT.601 for it when nothing is declared.
TEST_P(VideoCapsColour, GivenDeclaredColour_WhenAccepted_ThenItIsReadFromTheField) {
  const auto got = accept(nv12(GetParam().fields));
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->color.matrix, GetParam().matrix);
  EXPECT_EQ(got->color.range, GetParam().range);
  EXPECT_EQ(got->color.site, GetParam().site);
}

INSTANTIATE_TEST_SUITE_P(
    fields, VideoCapsColour,
    ::testing::Values(
        Colour{"", ColorMatrix::kBt709, ColorRange::kLimited, ChromaSite::kLeft},
        Colour{",colorimetry=bt709", ColorMatrix::kBt709, ColorRange::kLimited, ChromaSite::kLeft},
        Colour{",colorimetry=bt601", ColorMatrix::kBt601, ColorRange::kLimited, ChromaSite::kLeft},
        Colour{",colorimetry=(string)1:4:0:0", ColorMatrix::kBt601, ColorRange::kFull,
               ChromaSite::kLeft},
        Colour{",colorimetry=(string)1:3:5:1", ColorMatrix::kBt709, ColorRange::kFull,
               ChromaSite::kLeft},
        Colour{",colorimetry=(string)2:0:0:0", ColorMatrix::kBt709, ColorRange::kLimited,
               ChromaSite::kLeft},
        Colour{",chroma-site=mpeg2", ColorMatrix::kBt709, ColorRange::kLimited, ChromaSite::kLeft},
        Colour{",chroma-site=jpeg", ColorMatrix::kBt709, ColorRange::kLimited,
               ChromaSite::kCenter}));

TEST(V03, GivenTheLargestSize_WhenAccepted_ThenOneMoreStepIsRefused) {
  const auto sized = [](int width, int height) {
    return accept(str_format("video/x-raw,format=I420,width={},height={}", width, height));
  };
  EXPECT_TRUE(sized(32766, 32766));
  const auto wide = sized(32768, 16);
  ASSERT_FALSE(wide);
  EXPECT_NE(wide.error().message().find("width 32768"), std::string::npos);
  const auto tall = sized(16, 32768);
  ASSERT_FALSE(tall);
  EXPECT_NE(tall.error().message().find("height 32768"), std::string::npos);
}

TEST(VideoCaps, GivenAFrameRate_WhenAccepted_ThenTheDurationFollows) {
  EXPECT_EQ(accept(nv12(""))->frame_duration, 40 * GST_MSECOND);
  const auto variable = accept("video/x-raw,format=NV12,width=64,height=48,framerate=0/1");
  EXPECT_EQ(variable->frame_duration, GST_CLOCK_TIME_NONE);
}

TEST(VideoCaps, GivenUnfixedCaps_WhenAsked_ThenRefused) {
  EXPECT_FALSE(accept("video/x-raw,format=NV12,width=[2,64],height=48"));
  EXPECT_FALSE(accept("video/x-raw,format={NV12,I420},width=64,height=48"));
  EXPECT_FALSE(accept("video/x-raw,format=NV12,width=64"));
}

}  // namespace
}  // namespace penstock::gst
