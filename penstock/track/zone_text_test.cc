// SPDX-License-Identifier: Apache-2.0
#include "penstock/track/zone_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ZoneText, GivenPlaces_WhenRead_ThenNamesCornersAndLabelsAreThere) {
  const auto zones =
      parse_zones(" door: 0.125,0.25  0.5,0.25 0.5,1 @ person, big dog ;yard:0,0 1,0 1,1;");
  ASSERT_TRUE(zones) << zones.error().message();
  ASSERT_EQ(zones->size(), 2u);
  const Zone& door = (*zones)[0];
  EXPECT_EQ(door.name, "door");
  ASSERT_EQ(door.corners.size(), 3u);
  EXPECT_FLOAT_EQ(door.corners[0].x, 0.125f);
  EXPECT_FLOAT_EQ(door.corners[0].y, 0.25f);
  EXPECT_FLOAT_EQ(door.corners[2].y, 1.0f);
  EXPECT_THAT(door.labels, ElementsAre("person", "big dog"));
  EXPECT_EQ((*zones)[1].name, "yard");
  EXPECT_THAT((*zones)[1].labels, IsEmpty());
  const auto lines = parse_lines("gate: 0.5,0.9 0.5,0.1");
  ASSERT_TRUE(lines) << lines.error().message();
  ASSERT_EQ(lines->size(), 1u);
  EXPECT_FLOAT_EQ((*lines)[0].from.y, 0.9f);
  EXPECT_FLOAT_EQ((*lines)[0].to.y, 0.1f);
}

TEST(ZoneText, GivenNothing_WhenRead_ThenThereIsNothing) {
  EXPECT_THAT(parse_zones("").value(), IsEmpty());
  EXPECT_THAT(parse_lines(" ; ").value(), IsEmpty());
}

TEST(ZoneText, GivenWhatIsNoPlace_WhenRead_ThenItIsQuoted) {
  const auto refusal = [](const auto& read) {
    return read ? std::string("accepted") : read.error().message();
  };
  EXPECT_THAT(refusal(parse_zones("0.1,0.2 0.3,0.4")), HasSubstr("'0.1,0.2 0.3,0.4' is no place"));
  EXPECT_THAT(refusal(parse_zones("a: 0.1,0.2x 1,1")), HasSubstr("'a': corner '0.1,0.2x'"));
  EXPECT_THAT(refusal(parse_zones("a: 0.1 1,1")), HasSubstr("corner '0.1'"));
  EXPECT_THAT(refusal(parse_zones("a: 1,2,3")), HasSubstr("corner '1,2,3'"));
  EXPECT_THAT(refusal(parse_lines("a: 0,0 1,1 0,1")), HasSubstr("line 'a' has 3 ends"));
}

}  // namespace
}  // namespace penstock
