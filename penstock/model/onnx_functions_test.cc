// SPDX-License-Identifier: Apache-2.0
//
// Contract M06 for a model's local functions, before an engine puts them in the place of their
// calls.
#include "penstock/model/onnx_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/model/onnx_reader.h"
#include "penstock/model/testing/onnx_builder.h"

namespace penstock {
namespace {

using model_testing::OnnxBuilder;
using testing::HasSubstr;

std::string refusal(const std::string& onnx) {
  const auto summary = read_onnx_summary(std::as_bytes(std::span(onnx)));
  if (summary) return "was read";
  EXPECT_EQ(summary.error().kind(), ErrorKind::kCorrupt);
  return summary.error().message();
}

/// A field of protobuf wire type 2.
std::string field(int number, const std::string& bytes) {
  std::string out;
  const auto varint = [&](std::size_t value) {
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
    out.push_back(static_cast<char>(value));
  };
  varint(static_cast<std::size_t>(number) << 3 | 2);
  varint(bytes.size());
  return out + bytes;
}

/// A node (input 1, output 2, operation 4, domain 7) that calls a function of the domain "own".
std::string call(const std::string& function, const std::string& from, const std::string& to) {
  return field(1, from) + field(2, to) + field(4, function) + field(7, "own");
}

/// A function (name 1, input 4, output 5, nodes 7, domain 10, overload 13).
std::string function_of(const std::string& name, const std::vector<std::string>& nodes,
                        const std::string& overload = {}, const std::string& domain = "own") {
  std::string out = field(1, name) + field(4, "x") + field(5, "y");
  for (const std::string& node : nodes) out += field(7, node);
  out += field(10, domain);
  return field(25, overload.empty() ? out : out + field(13, overload));
}

std::string relu() { return field(1, "x") + field(2, "y") + field(4, "Relu"); }

/// Functions f0 to f38, of which each calls the one before twice.
std::string doublings() {
  std::string out = function_of("f0", {relu()});
  for (int i = 1; i < 39; ++i) {
    const std::string before = str_format("f{}", i - 1);
    out += function_of(str_format("f{}", i), {call(before, "x", "h"), call(before, "h", "y")});
  }
  return out;
}
/// The nodes of the next one.
std::vector<std::string> next_doubling() { return {call("f38", "x", "h"), call("f38", "h", "y")}; }

TEST(M06, GivenFunctionsThatGrowWithoutBound_WhenRead_ThenTheyAreRefusedAtOnce) {
  OnnxBuilder model;
  model.node("f39", {"a"}, {"y"}, {}, "own");
  const std::string calls = model.build();
  EXPECT_THAT(refusal(calls + doublings() + function_of("f39", next_doubling())),
              HasSubstr("more than 2000000 nodes"));
  EXPECT_THAT(refusal(calls + function_of("f39", {call("g", "x", "y")}) +
                      function_of("g", {call("f39", "x", "y")})),
              HasSubstr("calls itself"));
}

TEST(M06, GivenSeveralFunctionsOfOneName_WhenRead_ThenTheLargestOverloadCountsAndTwinsAreNamed) {
  OnnxBuilder model;
  model.node("f39", {"a"}, {"y"}, {}, "own");
  const std::string start = model.build() + doublings();
  const std::string large = function_of("f39", next_doubling());
  const std::string small = function_of("f39", {relu()});
  for (const std::string& twins : {large + small, small + large}) {
    EXPECT_THAT(refusal(start + twins), HasSubstr("function 'f39' of domain 'own' is there twice"));
  }
  // Whichever of them an engine takes, and wherever it stands.
  const std::string large_overload = function_of("f39", next_doubling(), "large");
  for (const std::string& overloads : {large_overload + small, small + large_overload,
                                       large_overload + function_of("f39", {relu()}, "small")}) {
    EXPECT_THAT(refusal(start + overloads), HasSubstr("more than 2000000 nodes"));
  }
  EXPECT_THAT(refusal(start + small + function_of("f39", {call("f39", "x", "y")}, "other")),
              HasSubstr("another overload"));
  EXPECT_EQ(refusal(start + small + function_of("f39", {relu()}, "other")), "was read");
}

TEST(M06, GivenDeepFunctionsThatAreKnownAlready_WhenCalledFromDeepOnes_ThenTheDepthIsTheWhole) {
  const auto chain = [](char name, int length, const std::string& last) {
    std::string out;
    for (int i = 0; i < length; ++i) {
      const std::string next = i + 1 < length ? str_format("{}{}", name, i + 1) : last;
      out +=
          function_of(str_format("{}{}", name, i), {next.empty() ? relu() : call(next, "x", "y")});
    }
    return out;
  };
  OnnxBuilder model;
  model.node("a0", {"a"}, {"h"}, {}, "own").node("b0", {"h"}, {"y"}, {}, "own");
  const std::string start = model.build() + chain('a', 200, "");
  EXPECT_EQ(refusal(start + chain('b', 56, "a0")), "was read");
  EXPECT_THAT(refusal(start + chain('b', 57, "a0")), HasSubstr("deeper than 256"));
}

TEST(M06, GivenAFunctionOfTheDefaultDomain_WhenRead_ThenItsTwoNamesAreOne) {
  OnnxBuilder model;
  model.node("f39", {"a"}, {"y"});
  const std::string start = model.build() + doublings();
  EXPECT_THAT(refusal(start + function_of("f39", next_doubling(), "", "ai.onnx")),
              HasSubstr("more than 2000000 nodes"));
}

}  // namespace
}  // namespace penstock
