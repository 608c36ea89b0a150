// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/config_json.h"

#include <gtest/gtest.h>

#include <string>

#include "penstock/pipeline/config_yaml.h"
#include "penstock/pipeline/pipeline_schema.h"

namespace penstock {
namespace {

std::string refusal(std::string_view text) {
  ConfigProblems problems;
  EXPECT_FALSE(parse_json(text, problems).has_value()) << text;
  return problems.size() == 1 ? problems[0].what : std::to_string(problems.size()) + " problems";
}

TEST(ConfigJsonTest, GivenASource_WhenParsed_ThenTheSchemaReadsItAsFromYaml) {
  ConfigProblems problems;
  const auto node = parse_json(
      R"({"name":"a","test":{"width":320,"live":false,"pattern":"red"},"loop":null})", problems);
  ASSERT_TRUE(node.has_value());
  const PipelineSource source = read_source(*node, "source", problems);
  EXPECT_EQ(source.name, "a");
  EXPECT_EQ(source.test.width, 320);
  EXPECT_FALSE(source.test.live);
  EXPECT_EQ(source.test.pattern, "red");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(to_string(problems[0], ""), "source.loop: must be true or false, is nothing");
}

TEST(ConfigJsonTest, GivenTextWhereANumberBelongs_WhenRead_ThenItIsAProblem) {
  ConfigProblems problems;
  const auto node = parse_json(R"({"name":"a","test":{"width":"320"}})", problems);
  ASSERT_TRUE(node.has_value());
  read_source(*node, "source", problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(to_string(problems[0], ""),
            "source.test.width: must be a whole number from 2 to 8192, is text in quotes");
}

TEST(ConfigJsonTest, GivenHostileText_WhenParsed_ThenItIsRefused) {
  EXPECT_NE(refusal("").find("is not JSON"), std::string::npos);
  EXPECT_NE(refusal("{\"a\":1").find("is not JSON"), std::string::npos);
  EXPECT_NE(refusal("{\"a\":\"\xff\"}").find("is not JSON"), std::string::npos);
  EXPECT_NE(refusal(std::string(50'000, '[')).find("is not JSON"), std::string::npos);
  EXPECT_NE(refusal(std::string(40, '[') + std::string(40, ']')).find("is not JSON"),
            std::string::npos);
  EXPECT_EQ(refusal("{\"a\":1,\"a\":2}"), "the key 'a' is told twice");
  std::string many = "[1";
  for (std::size_t i = 0; i <= kMaxConfigNodes; ++i) many += ",1";
  EXPECT_EQ(refusal(many + "]"), "there are more than 20000 values");
  std::string keys = "{\"k\":1";
  for (int i = 0; i < 200; ++i) keys += ",\"k" + std::to_string(i) + "\":1";
  EXPECT_EQ(refusal(keys + "}"), "a map has more than 100 keys");
}

}  // namespace
}  // namespace penstock
