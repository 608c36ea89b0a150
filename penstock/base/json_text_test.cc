// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/json_text.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <cstdlib>
#include <limits>
#include <random>

namespace penstock {
namespace {

std::string as_json(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

template <typename T>
std::string number(T value) {
  std::string out;
  append_json_number(out, value);
  return out;
}

TEST(JsonString, GivenPlainText_WhenWritten_ThenItIsOnlyQuoted) {
  EXPECT_EQ(as_json(""), R"("")");
  EXPECT_EQ(as_json("traffic light"), R"("traffic light")");
  EXPECT_EQ(as_json("a/b"), R"("a/b")");
  EXPECT_EQ(as_json("\x7f"), "\"\x7f\"");
}

TEST(JsonString, GivenSpecialCharacters_WhenWritten_ThenTheyAreEscaped) {
  EXPECT_EQ(as_json(R"(say "hi" \o/)"), R"("say \"hi\" \\o/")");
  EXPECT_EQ(as_json("\b\f\n\r\t"), R"("\b\f\n\r\t")");
  EXPECT_EQ(as_json(std::string_view("\0\x01\x1f", 3)), "\"\\u0000\\u0001\\u001f\"");
}

TEST(JsonString, GivenValidUtf8_WhenWritten_ThenItIsKept) {
  for (const char* text :
       {"\u00e9", "\u7fd2", "\u07ff\u0800\ud7fb\ue000\uffff", "\U0001f600\U00010000\U0010ffff"}) {
    EXPECT_EQ(as_json(text), "\"" + std::string(text) + "\"");
  }
}

TEST(JsonString, GivenInvalidUtf8_WhenWritten_ThenEachMaximalPartIsReplaced) {
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(as_json("a\x80z"), "\"a" + r + "z\"");
  EXPECT_EQ(as_json("\xc0\xaf"), "\"" + r + r + "\"") << "overlong";
  EXPECT_EQ(as_json("\xe0\x80\xaf"), "\"" + r + r + r + "\"") << "overlong";
  EXPECT_EQ(as_json("\xed\xa0\x80"), "\"" + r + r + r + "\"") << "surrogate";
  EXPECT_EQ(as_json("\xf4\x90\x80\x80"), "\"" + r + r + r + r + "\"") << "beyond U+10FFFF";
  EXPECT_EQ(as_json("\xf5"), "\"" + r + "\"");
  // Truncated sequences count once; the example is the Unicode standard's, table 3-8 and after.
  EXPECT_EQ(as_json("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"), "\"" + r + r + r + r + "A\"");
  EXPECT_EQ(as_json("\xe2\x82"), "\"" + r + "\"");
  EXPECT_EQ(as_json("\xe2\x82\""), "\"" + r + "\\\"\"") << "a quote must not hide in a sequence";
}

TEST(JsonString, GivenRandomBytes_WhenWritten_ThenAnotherParserReadsThem) {
  std::mt19937 random(5);
  std::uniform_int_distribution<int> any(0, 255);
  simdjson::dom::parser parser;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string bytes(static_cast<std::size_t>(trial % 40), '\0');
    for (char& byte : bytes) byte = static_cast<char>(any(random));
    const std::string text = "[" + as_json(bytes) + "]";
    simdjson::dom::array array;
    ASSERT_EQ(parser.parse(text).get(array), simdjson::SUCCESS) << text;
    std::string_view back;
    ASSERT_EQ(array.at(0).get(back), simdjson::SUCCESS);
    if (simdjson::validate_utf8(bytes)) {
      ASSERT_EQ(back, bytes);
    }
  }
}

TEST(JsonNumber, GivenNumbers_WhenWritten_ThenTheyArePlainDecimals) {
  EXPECT_EQ(number(0.5f), "0.5");
  EXPECT_EQ(number(0.1f), "0.1");
  EXPECT_EQ(number(-0.25), "-0.25");
  EXPECT_EQ(number(416.0f), "416");
  EXPECT_EQ(number(1e-7f), "0.0000001");
  EXPECT_EQ(number(1e20), "100000000000000000000");
  EXPECT_EQ(number(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(number(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(number(-1), "-1");
}

TEST(JsonNumber, GivenTheExtremes_WhenWritten_ThenTheyReadBackExactly) {
  for (const double value :
       {std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min(),
        -std::numeric_limits<double>::min(), double{std::numeric_limits<float>::max()}}) {
    EXPECT_EQ(std::strtod(number(value).c_str(), nullptr), value);
    EXPECT_EQ(number(value).find('e'), std::string::npos);
  }
}

TEST(JsonNumber, GivenWhatIsNotFinite_WhenWritten_ThenItIsNull) {
  EXPECT_EQ(number(std::numeric_limits<float>::quiet_NaN()), "null");
  EXPECT_EQ(number(-std::numeric_limits<double>::infinity()), "null");
}

}  // namespace
}  // namespace penstock
