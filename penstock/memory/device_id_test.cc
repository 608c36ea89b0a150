// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/device_id.h"

#include <gtest/gtest.h>

#include "penstock/memory/device.h"

namespace penstock {
namespace {

TEST(DeviceId, GivenKnownNames_WhenParsed_ThenTheyRoundTrip) {
  EXPECT_EQ(parse_device_id("cpu"), (DeviceId{DeviceKind::kCpu, 0}));
  EXPECT_EQ(parse_device_id("sim"), (DeviceId{DeviceKind::kSim, 0}));
  EXPECT_EQ(parse_device_id("cuda"), (DeviceId{DeviceKind::kCuda, 0}));
  EXPECT_EQ(parse_device_id("cuda:1"), (DeviceId{DeviceKind::kCuda, 1}));
  EXPECT_EQ(parse_device_id("hip:12"), (DeviceId{DeviceKind::kHip, 12}));
  EXPECT_EQ(to_string(DeviceId{DeviceKind::kCpu, 0}), "cpu");
  EXPECT_EQ(to_string(DeviceId{DeviceKind::kSim, 0}), "sim");
  EXPECT_EQ(to_string(DeviceId{DeviceKind::kCuda, 1}), "cuda:1");
  EXPECT_EQ(to_string(DeviceId{DeviceKind::kHip, 0}), "hip:0");
}

TEST(DeviceId, GivenAnythingElse_WhenParsed_ThenItIsRefusedByName) {
  for (const char* text : {"", "CPU", "gpu", "cpu:0", "sim:1", "cuda:", "cuda:-1", "cuda:+1",
                           "cuda:01", "cuda:1x", "cuda:1000", "cuda :1", "hip:0:0", ":1"}) {
    const auto id = parse_device_id(text);
    ASSERT_FALSE(id) << text;
    EXPECT_EQ(id.error().kind(), ErrorKind::kInvalidArgument);
    EXPECT_NE(id.error().message().find("'" + std::string(text) + "'"), std::string::npos);
  }
}

TEST(OpenDevice, GivenEachKind_WhenOpened_ThenOnlyCpuIsInThisBuild) {
  const auto cpu = open_device({DeviceKind::kCpu, 0});
  ASSERT_TRUE(cpu);
  EXPECT_EQ((*cpu)->id(), (DeviceId{DeviceKind::kCpu, 0}));
  for (const DeviceKind kind : {DeviceKind::kSim, DeviceKind::kCuda, DeviceKind::kHip}) {
    const auto device = open_device({kind, 0});
    ASSERT_FALSE(device);
    EXPECT_EQ(device.error().kind(), ErrorKind::kUnsupported);
    EXPECT_NE(device.error().message().find(to_string(DeviceId{kind, 0})), std::string::npos);
  }
}

}  // namespace
}  // namespace penstock
