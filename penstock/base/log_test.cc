// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { set_log_level("warn"); }
};

TEST_F(LogTest, GivenTheDefaultLevel_WhenLogging_ThenWarningsReachStderrAndInfoDoesNot) {
  testing::internal::CaptureStderr();
  log("room-a").info("quiet");
  log("room-a").warn("queue of '{}' is full", "cam");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("queue of 'cam' is full"));
  EXPECT_THAT(text, HasSubstr("room-a"));
  EXPECT_THAT(text, Not(HasSubstr("quiet")));
}

TEST_F(LogTest, GivenANewLevel_WhenLogging_ThenOldAndNewLoggersFollow) {
  spdlog::logger& old_logger = log("room-b");
  ASSERT_TRUE(set_log_level("debug"));
  EXPECT_TRUE(old_logger.should_log(spdlog::level::debug));
  EXPECT_TRUE(log("room-c").should_log(spdlog::level::debug));
  ASSERT_TRUE(set_log_level("off"));
  EXPECT_FALSE(old_logger.should_log(spdlog::level::critical));
}

TEST_F(LogTest, GivenAnUnknownLevel_WhenSet_ThenItIsRefusedAndNothingChanges) {
  EXPECT_FALSE(set_log_level("loud"));
  EXPECT_FALSE(set_log_level(""));
  EXPECT_TRUE(log("room-d").should_log(spdlog::level::warn));
  EXPECT_FALSE(log("room-d").should_log(spdlog::level::info));
}

TEST_F(LogTest, GivenALogger_WhenTheHostUsesSpdlogToo_ThenTheGlobalRegistryIsUntouched) {
  spdlog::logger& logger = log("room-e");
  EXPECT_EQ(spdlog::get("room-e"), nullptr);
  spdlog::set_level(spdlog::level::trace);
  EXPECT_FALSE(logger.should_log(spdlog::level::trace));
  EXPECT_EQ(&log("room-e"), &logger);
}

}  // namespace
}  // namespace penstock
