// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/output_flag.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

std::string refusal(std::string_view text) {
  RunOptions options;
  const auto taken = take_output(text, options);
  EXPECT_TRUE(options.video.empty() && options.json.empty() && options.report.empty()) << text;
  if (taken) return "";
  EXPECT_EQ(taken.error().kind(), ErrorKind::kInvalidArgument);
  return taken.error().message();
}

TEST(OutputFlag, GivenOneOfEachKind_WhenTaken_ThenEachHasItsPath) {
  RunOptions options;
  ASSERT_TRUE(take_output("video=a,b.mp4", options));
  ASSERT_TRUE(take_output("json=c=d.jsonl", options));
  ASSERT_TRUE(take_output("report=e.html", options));
  EXPECT_EQ(options.video, "a,b.mp4");
  EXPECT_EQ(options.json, "c=d.jsonl");
  EXPECT_EQ(options.report, "e.html");
  EXPECT_FALSE(take_output("json=other", options));
  EXPECT_EQ(options.json, "c=d.jsonl");
}

TEST(OutputFlag, GivenADash_WhenTaken_ThenItIsStdoutAndNoFileOfThatName) {
  RunOptions options;
  ASSERT_TRUE(take_output("json=-", options));
  EXPECT_EQ(options.json, "/dev/stdout");
  ASSERT_TRUE(take_output("report=-", options));
  EXPECT_EQ(options.report, "/dev/stdout");
  EXPECT_NE(refusal("video=-").find("stdout"), std::string::npos);
}

TEST(OutputFlag, GivenANameOfAnotherContainer_WhenTakenAsVideo_ThenItIsRefusedByName) {
  for (const char* extension : {".avi", ".mkv", ".webm", ".MOV", ".ts"}) {
    const std::string message = refusal(std::string("video=x") + extension);
    EXPECT_NE(message.find(".mp4"), std::string::npos) << message;
  }
  RunOptions options;
  EXPECT_TRUE(take_output("video=x", options));
  options = {};
  EXPECT_TRUE(take_output("video=x.m4v", options));
  EXPECT_TRUE(take_output("json=x.mkv", options));
}

TEST(OutputFlag, GivenSeveralOutputsInOneValue_WhenTaken_ThenItSaysThatTheFlagIsRepeated) {
  for (const char* text :
       {"json=a.jsonl,video=b.mp4", "video=b.mp4,report=c.html", "report=c.html,json=a.jsonl"}) {
    EXPECT_NE(refusal(text).find("give --out again"), std::string::npos) << text;
  }
}

TEST(OutputFlag, GivenNoKindOrPath_WhenTaken_ThenTheKindsAreNamed) {
  for (const char* text : {"", "x.mp4", "json", "json=", "xml=a"}) {
    EXPECT_NE(refusal(text).find("report=FILE.html"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace penstock
