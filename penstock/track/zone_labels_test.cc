// SPDX-License-Identifier: Apache-2.0
#include "penstock/track/zone_labels.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace penstock {
namespace {

std::string refusal(std::string_view zones, std::string_view lines,
                    const std::vector<std::string>& labels) {
  const auto outcome = check_place_labels(zones, lines, labels);
  return outcome ? "" : std::string(outcome.error().message());
}

const std::vector<std::string> kLabels{"person", "traffic light", "car"};

TEST(ZoneLabels, GivenLabelsThatTheModelHas_WhenChecked_ThenTheyAreTaken) {
  EXPECT_EQ(refusal("a: 0,0 1,0 1,1 @ person, traffic light; b: 0,0 1,0 1,1", "gate: 0,0 1,1 @ car",
                    kLabels),
            "");
}

TEST(ZoneLabels, GivenAMisspeltLabel_WhenChecked_ThenPlaceLabelAndTheNearestAreNamed) {
  EXPECT_EQ(refusal("a: 0,0 1,0 1,1 @ car; door: 0,0 1,0 1,1 @ person, persn", "", kLabels),
            "zone 'door': no model here finds 'persn'; did you mean 'person'?");
  EXPECT_EQ(refusal("", "gate: 0,0 1,1 @ Car", kLabels),
            "line 'gate': no model here finds 'Car'; did you mean 'car'?");
}

TEST(ZoneLabels, GivenALabelLikeNone_WhenChecked_ThenTheLabelsAreTold) {
  EXPECT_EQ(refusal("a: 0,0 1,0 1,1 @ zeppelin", "", kLabels),
            "zone 'a': no model here finds 'zeppelin'; there are person, traffic light, car");
  std::vector<std::string> many;
  for (char c = 'a'; c <= 'z'; ++c) many.emplace_back(3, c);
  EXPECT_EQ(refusal("a: 0,0 1,0 1,1 @ " + std::string(300, 'x'), "", many),
            "zone 'a': no model here finds '" + std::string(300, 'x') +
                "'; there are aaa, bbb, ccc, ddd, eee, fff, ggg, hhh, iii, jjj, ...");
}

TEST(ZoneLabels, GivenAModelWithoutLabels_WhenChecked_ThenAnyMayBe) {
  EXPECT_EQ(refusal("a: 0,0 1,0 1,1 @ whatever", "", {}), "");
}

TEST(ZoneLabels, GivenPlacesThatCannotBeRead_WhenChecked_ThenThatIsSaid) {
  EXPECT_NE(refusal("a: 0,zero 1,0 1,1", "", {}), "");
  EXPECT_NE(refusal("", "gate: 0,0", kLabels), "");
}

}  // namespace
}  // namespace penstock
