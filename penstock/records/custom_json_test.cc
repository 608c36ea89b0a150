// SPDX-License-Identifier: Apache-2.0
#include "penstock/records/custom_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock {
namespace {

std::string joined(std::vector<std::string> values) {
  const auto all = join_custom(values);
  return all ? *all : "error: " + all.error().message();
}

TEST(G03, GivenDistinctCustomValues_WhenJoined_ThenEachIsAmongTheBranchesOnce) {
  EXPECT_EQ(joined({}), "");
  EXPECT_EQ(joined({"", ""}), "");
  EXPECT_EQ(joined({"", R"({ "door" : "open" })", ""}), R"({"door":"open"})");
  EXPECT_EQ(joined({"7", R"({"a": [1, 2]})", " 7 ", "", R"({"a":[1,2]})", "\"7\""}),
            R"({"branches":[7,{"a":[1,2]},"7"]})");
}

TEST(G03, GivenBlanksInTexts_WhenMadeCompact_ThenOnlyThoseBetweenPartsGo) {
  const auto compact = compact_json("{\n  \"a b\" : \" x \\n y\",\t\"c\":-1.50e2 }\n");
  ASSERT_TRUE(compact);
  EXPECT_EQ(*compact, R"({"a b":" x \n y","c":-1.50e2})");
}

TEST(G03, GivenWhatIsNoJson_WhenJoined_ThenItIsRefusedByItsNumber) {
  for (const char* text : {"{", "{}{}", "nul", "{\"a\":}", "\"\x01\"", "\"\xff\"", "'a'"}) {
    const auto all = join_custom(std::vector<std::string>{"1", text});
    ASSERT_FALSE(all) << text;
    EXPECT_EQ(all.error().kind(), ErrorKind::kCorrupt) << text;
    EXPECT_TRUE(all.error().message().starts_with("value 1: a custom value is no JSON"))
        << all.error().message();
  }
}

TEST(G03, GivenMoreThanTheLimit_WhenJoined_ThenItIsRefused) {
  const std::string half = '"' + std::string(kMostCustomBytes / 2, 'a') + '"';
  const std::string other = '"' + std::string(kMostCustomBytes / 2, 'b') + '"';
  EXPECT_TRUE(join_custom(std::vector<std::string>{half}));
  const auto both = join_custom(std::vector<std::string>{half, other});
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().kind(), ErrorKind::kExhausted);
  const auto one = compact_json(std::string(kMostCustomBytes + 1, ' '));
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().kind(), ErrorKind::kExhausted);
}

TEST(JsonLine, GivenACustomValue_WhenWritten_ThenItIsTheLastKey) {
  FrameResult result;
  result.source = "a";
  const std::string head =
      R"({"source":"a","frame":0,"pts_ns":-1,"width":0,"height":0,"objects":[])";
  EXPECT_EQ(to_json_line(result, ""), head + "}");
  EXPECT_EQ(to_json_line(result, R"({"branches":[1,2]})"),
            head + R"(,"custom":{"branches":[1,2]}})");
}

}  // namespace
}  // namespace penstock
