// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

TEST(Printable, GivenText_WhenMadePrintable_ThenNothingChanges) {
  for (const char* text : {"", "output0 [1,84,8400]", "C:\\x1b", "Straße", "猫", "🚗", "a b~"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_TRUE(is_printable(text)) << text;
  }
}

TEST(Printable, GivenControlCharacters_WhenMadePrintable_ThenTheyAreEscaped) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(printable("a\nb\r\t"), "a\\x0ab\\x0d\\x09");
  EXPECT_EQ(printable(std::string("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J");  // C1 in UTF-8.
  EXPECT_FALSE(is_printable("\n"));
}

TEST(Printable, GivenBytesThatAreNoUtf8_WhenMadePrintable_ThenTheyAreEscaped) {
  EXPECT_EQ(printable("\x9b"
                      "2J"),
            "\\x9b2J");
  EXPECT_EQ(printable("\xc1\x9b"), "\\xc1\\x9b");           // Overlong.
  EXPECT_EQ(printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");  // Likewise.
  EXPECT_EQ(printable("\xe7\x8c"), "\\xe7\\x8c");           // Cut short.
}

}  // namespace
}  // namespace penstock
