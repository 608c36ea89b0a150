// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/video_caps.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

Result<Intake> intake(const std::string& text) {
  gst_init(nullptr, nullptr);
  GstCaps* caps = gst_caps_from_string(text.c_str());
  auto result = intake_of(caps);
  gst_caps_unref(caps);
  return result;
}

TEST(Intake, GivenDecoders420_WhenAsked_ThenItIsTakenAsItIs) {
  for (const char* format : {"I420", "NV12"}) {
    auto way = intake(std::string("video/x-raw, format=") + format +
                      ", width=768, height=576, framerate=10/1, interlace-mode=progressive");
    ASSERT_TRUE(way) << way.error().message();
    EXPECT_EQ(*way, Intake::kDirect);
  }
}

TEST(Intake, GivenOther8BitFormats_WhenAsked_ThenOnlyAConvertStageHelps) {
  for (const char* format : {"Y42B", "Y444", "RGB", "BGRx", "YUY2", "GRAY8"}) {
    auto way = intake(std::string("video/x-raw, format=") + format + ", width=64, height=64");
    ASSERT_TRUE(way) << way.error().message();
    EXPECT_EQ(*way, Intake::kConvert) << format;
  }
}

struct Refused {
  const char* caps;
  const char* reason;
};
class IntakeRefusal : public testing::TestWithParam<Refused> {};

TEST_P(IntakeRefusal, GivenUnsupportedVideo_WhenAsked_ThenTheReasonIsNamed) {
  auto way = intake(GetParam().caps);
  ASSERT_FALSE(way);
  EXPECT_EQ(way.error().kind(), ErrorKind::kUnsupported);
  EXPECT_NE(way.error().message().find(GetParam().reason), std::string::npos)
      << way.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    , IntakeRefusal,
    testing::Values(
        Refused{"video/x-raw, format=I420, width=769, height=576", "769x576"},
        Refused{"video/x-raw, format=I420, width=768, height=575", "must be even"},
        Refused{"video/x-raw, format=I420, width=768, height=576, interlace-mode=interleaved",
                "interlaced"},
        Refused{"video/x-raw, format=I420, width=768, height=576, interlace-mode=mixed",
                "interlaced"},
        Refused{"video/x-raw, format=P010_10LE, width=768, height=576", "10 bits"},
        Refused{"video/x-raw, format=I420_12LE, width=768, height=576", "12 bits"},
        Refused{"video/x-raw, format=I420, width=768, height=576, colorimetry=bt2100-pq", "HDR"},
        Refused{"video/x-raw, format=NV12, width=768, height=576, colorimetry=bt2100-hlg", "HDR"},
        Refused{"video/x-raw(memory:VAMemory), format=NV12, width=768, height=576", "VAMemory"},
        Refused{"audio/x-raw, format=S16LE", "no raw video"}));

}  // namespace
}  // namespace penstock
