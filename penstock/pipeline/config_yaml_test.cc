// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/config_yaml.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

/// "LINE:COLUMN: what" of the only problem that `text` must have.
std::string refusal(std::string_view text) {
  ConfigProblems problems;
  const auto node = parse_yaml(text, problems);
  EXPECT_FALSE(node.has_value()) << text;
  if (problems.size() != 1) return std::to_string(problems.size()) + " problems";
  return to_string(problems[0], "p");
}

TEST(ConfigYamlTest, GivenAMap_WhenParsed_ThenValuesHaveTheirPlacesAndKinds) {
  ConfigProblems problems;
  const auto node = parse_yaml("a: 1\nb:\n  - x\n  - \"2\"\nc: ~\n", problems);
  ASSERT_TRUE(node.has_value());
  EXPECT_TRUE(problems.empty());
  ASSERT_EQ(node->kind, ConfigNode::Kind::kMap);
  ASSERT_EQ(node->entries.size(), 3u);
  EXPECT_EQ(node->entries[0].name, "a");
  EXPECT_EQ(node->entries[0].value.text, "1");
  EXPECT_FALSE(node->entries[0].value.quoted);
  EXPECT_EQ(node->entries[0].value.place, (TextPlace{1, 4}));
  const ConfigNode& list = node->entries[1].value;
  ASSERT_EQ(list.kind, ConfigNode::Kind::kList);
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_EQ(list.items[1].text, "2");
  EXPECT_TRUE(list.items[1].quoted);
  EXPECT_EQ(list.items[1].place, (TextPlace{4, 5}));
  EXPECT_EQ(node->entries[2].value.kind, ConfigNode::Kind::kNull);
}

TEST(ConfigYamlTest, GivenWhatAConfigurationDoesNotNeed_WhenParsed_ThenItIsRefusedAtItsPlace) {
  EXPECT_EQ(refusal("a: &x 1\n"), "p:1:4: anchors (&name) are not taken");
  EXPECT_EQ(refusal("a: !!int 1\n"), "p:1:4: tags (!name) are not taken");
  EXPECT_EQ(refusal("a: 1\n---\nb: 2\n"),
            "p:2:1: there is a second document; one is all that is read");
  EXPECT_EQ(refusal("a: 1\na: 2\n"), "p:2:1: the key 'a' is told twice");
  EXPECT_EQ(refusal("[1]: 2\n"), "p:1:1: a key must be text");
}

TEST(ConfigYamlTest, GivenAnAlias_WhenParsed_ThenItIsRefusedBeforeAnythingGrows) {
  // The "billion laughs": each line would be ten of the one before.
  std::string text = "a: [x,x,x,x,x,x,x,x,x,x]\n";
  text += "b: [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n";
  EXPECT_NE(refusal(text).find("p:2:"), std::string::npos);
}

TEST(ConfigYamlTest, GivenMoreThanTheLimits_WhenParsed_ThenItIsRefused) {
  EXPECT_NE(refusal(std::string(kMaxConfigBytes + 1, ' ')).find("larger than"), std::string::npos);
  EXPECT_NE(refusal(std::string(40, '[') + std::string(40, ']')).find("nested more than 16 deep"),
            std::string::npos);
  EXPECT_NE(refusal(std::string(100'000, '[')).find("p:"), std::string::npos);
  std::string many = "[";
  for (std::size_t i = 0; i <= kMaxConfigNodes; ++i) many += "1,";
  EXPECT_NE(refusal(many + "1]").find("more than 20000 values"), std::string::npos);
}

TEST(ConfigYamlTest, GivenNoYaml_WhenParsed_ThenTheLineIsTold) {
  EXPECT_NE(refusal("a: 1\nb: [1, 2\n").find("p:3:"), std::string::npos) << refusal("a: [1\n");
  EXPECT_NE(refusal("a: 1\n\tb: 2\n").find("p:2:"), std::string::npos);
}

TEST(ConfigYamlTest, GivenAMegabyteThatIsWrong_WhenParsed_ThenTheMessageIsShort) {
  EXPECT_LT(refusal(std::string(500'000, '*')).size(), 1100u);
}

TEST(ConfigYamlTest, GivenNothing_WhenParsed_ThenItIsNothing) {
  ConfigProblems problems;
  const auto node = parse_yaml("# only a comment\n", problems);
  ASSERT_TRUE(node.has_value());
  EXPECT_EQ(node->kind, ConfigNode::Kind::kNull);
}

}  // namespace
}  // namespace penstock
