// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/drawn_labels.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

TEST(DrawnLabels, GivenAPlainLabel_WhenDrawn_ThenItStays) {
  EXPECT_EQ(drawn_label("traffic light"), "traffic light");
  EXPECT_EQ(drawn_label("\u00e9tag\u00e8re"), "\u00e9tag\u00e8re");
}

TEST(DrawnLabels, GivenMarkup_WhenDrawn_ThenItIsShownAsItIs) {
  EXPECT_EQ(drawn_label("salt & pepper"), "salt &amp; pepper");
  EXPECT_EQ(drawn_label("<span size='99999'>"), "&lt;span size=&apos;99999&apos;&gt;");
}

TEST(DrawnLabels, GivenControlCharactersAndBadBytes_WhenDrawn_ThenTheyAreReplaced) {
  EXPECT_EQ(drawn_label("a\nb\tc\x1b[0m"), "a b c [0m");
  EXPECT_EQ(drawn_label("a\xff"
                        "b"),
            "a\ufffd"
            "b");
}

TEST(DrawnLabels, GivenALongLabel_WhenDrawn_ThenItEndsInAnEllipsis) {
  EXPECT_EQ(drawn_label(std::string(64, 'x')), std::string(64, 'x'));
  EXPECT_EQ(drawn_label(std::string(100000, 'x')), std::string(64, 'x') + "\u2026");
}

}  // namespace
}  // namespace penstock
