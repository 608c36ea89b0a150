// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/run_summary.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "penstock/pipeline/run_report.h"

namespace penstock {
namespace {

FrameResult frame_with(std::vector<std::string> labels) {
  FrameResult frame;
  frame.width = 100;
  frame.height = 80;
  for (std::string& label : labels) {
    frame.objects.push_back({.class_id = 0,
                             .label = std::move(label),
                             .confidence = 0.5f,
                             .x = 10,
                             .y = 20,
                             .width = 30,
                             .height = 40});
  }
  return frame;
}

TEST(CountSeries, GivenAnyLength_WhenCounted_ThenNothingIsLostAndMemoryIsBounded) {
  for (std::uint64_t length : {1u, 255u, 256u, 257u, 1000u, 4097u}) {
    CountSeries series;
    for (std::uint64_t i = 0; i < length; ++i) {
      series.add(frame_with(i % 3 == 0 ? std::vector<std::string>{"cat", "cat"}
                                       : std::vector<std::string>{"dog"}));
    }
    EXPECT_LE(series.spans().size(), CountSeries::kMaxSpans);
    std::uint64_t frames = 0, cats = 0, dogs = 0;
    for (const CountSeries::Span& span : series.spans()) {
      EXPECT_LE(span.frames, series.frames_per_span());
      frames += span.frames;
      if (span.objects.contains("cat")) cats += span.objects.find("cat")->second;
      if (span.objects.contains("dog")) dogs += span.objects.find("dog")->second;
    }
    const std::uint64_t thirds = (length + 2) / 3;
    EXPECT_EQ(frames, length);
    EXPECT_EQ(cats, 2 * thirds);
    EXPECT_EQ(dogs, length - thirds);
  }
}

RunSummary small_run() {
  RunSummary summary;
  summary.source = "a<b>&\"c\".mp4";
  summary.model = "tiny";
  summary.running = std::chrono::seconds(2);
  for (int i = 0; i < 10; ++i) {
    summary.add(frame_with({"person", "person", "<script>"}),
                {.queue = std::chrono::milliseconds(1),
                 .preprocess = std::chrono::milliseconds(2),
                 .infer = std::chrono::milliseconds(20),
                 .decode = std::chrono::milliseconds(3)});
    summary.of(Stage::kElement).record(std::chrono::milliseconds(30));
  }
  summary.ledger = {{CopyClass::kSweep, "media/preprocess", 10, 10 * 12000},
                    {CopyClass::kReadback, "task/detections", 10, 10 * 7204}};
  summary.outside.upstream_known = true;
  summary.outside.decoder = "avdec_h264";
  summary.outside.upstream = 5;
  return summary;
}

TEST(RunTable, GivenARun_WhenPrinted_ThenTheNumbersAreThere) {
  const std::string table = to_table(small_run());
  for (const char* text :
       {"frames      10", "5.0 over 2.00 s", "30 (3.00 a frame)", "person", "2.00 a frame",
        "media/preprocess", "frame copies on this path: 0", "avdec_h264", "0.50 a frame"}) {
    EXPECT_NE(table.find(text), std::string::npos) << text << " is not in\n" << table;
  }
}

TEST(RunReport, GivenHostileNames_WhenRendered_ThenThePageIsSelfContainedAndEscaped) {
  RunSummary summary = small_run();
  ReportPicture picture;
  picture.result = frame_with({"<script>"});
  picture.jpeg = "not really";
  summary.pictures.push_back(picture);
  const std::string page = to_html(summary);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("http:"), std::string::npos);
  EXPECT_EQ(page.find("https:"), std::string::npos);
  EXPECT_EQ(page.find("<b>&\"c\""), std::string::npos);
  for (const char* text :
       {"a&lt;b&gt;&amp;&quot;c&quot;.mp4", "Objects over time", "Latency of a frame", "Stages",
        "Memory ledger", "Copies outside the analytic path", "data:image/jpeg;base64,",
        "a copy made outside the analytic path"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
}

TEST(RunReport, GivenAnEmptyRun_WhenRendered_ThenThePageSaysSo) {
  const std::string page = to_html(RunSummary{});
  EXPECT_NE(page.find("No object was found."), std::string::npos);
  EXPECT_NE(page.find("No frame was analysed."), std::string::npos);
  EXPECT_EQ(page.find("nan"), std::string::npos);
  EXPECT_EQ(page.find("inf<"), std::string::npos);
}

}  // namespace
}  // namespace penstock
