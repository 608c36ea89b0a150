// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace penstock::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

BenchReport below_the_bar() {
  BenchReport report("test");
  report.add({.name = "a case",
              .unit = "frames/s",
              .ours = 9,
              .peer_name = "peer",
              .peer = 10,
              .ratio = 0.9,
              .bar = 1.0});
  return report;
}

std::filesystem::path json_file() {
  return std::filesystem::path(testing::TempDir()) / "bench_report_test.json";
}

TEST(BenchReport, GivenAFullRun_WhenABarIsMissed_ThenItFails) {
  BenchReport report = below_the_bar();
  report.set_run({.pairs = 15, .frames = 120, .engine = "1.29.0", .peer_engine = "1.23.2"});
  EXPECT_FALSE(report.finish(json_file()));
  EXPECT_THAT(report.to_table(), HasSubstr("BELOW THE BAR"));
  EXPECT_THAT(report.to_table(), HasSubstr("15 pairs of 120 frames"));
  EXPECT_THAT(report.to_table(), HasSubstr("ONNX Runtime: ours 1.29.0, peer 1.23.2"));
  EXPECT_THAT(report.to_json(), HasSubstr("\"ok\":false"));
  EXPECT_THAT(report.to_json(),
              HasSubstr("\"run\":{\"pairs\":15,\"frames\":120,\"engine\":\"1.29.0\","
                        "\"peer_engine\":\"1.23.2\",\"trial\":false}"));
}

TEST(BenchReport, GivenTooFewPairsOrFrames_WhenABarIsMissed_ThenItIsATrialThatSaysNothing) {
  for (const auto& [pairs, frames] : {std::pair{14, 120}, std::pair{15, 119}}) {
    BenchReport report = below_the_bar();
    report.set_run({.pairs = pairs, .frames = frames, .engine = "1.29.0", .peer_engine = "1.23.2"});
    EXPECT_TRUE(report.finish(json_file()));
    EXPECT_THAT(report.to_table(), Not(HasSubstr("BELOW THE BAR")));
    EXPECT_THAT(report.to_table(), HasSubstr("a trial"));
    EXPECT_THAT(report.to_json(), HasSubstr("\"ok\":null"));
    EXPECT_THAT(report.to_json(), HasSubstr("\"trial\":true"));
  }
}

TEST(BenchReport, GivenARowWithoutABar_WhenReported_ThenItIsOkAndShowsNone) {
  BenchReport report("test");
  BenchRow row;
  row.name = "a case with a name longer than the others";
  row.ratio = 0.1;
  report.add(row);
  EXPECT_TRUE(report.finish(json_file()));
  EXPECT_THAT(report.to_table(), HasSubstr("-"));
  EXPECT_THAT(report.to_json(), HasSubstr("\"ok\":true"));
}

}  // namespace
}  // namespace penstock::bench
