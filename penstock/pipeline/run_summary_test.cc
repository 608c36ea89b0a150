// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/run_summary.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/pipeline/run_report.h"
#include "penstock/pipeline/svg_chart.h"

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
    std::uint64_t frames = 0;
    double cats = 0, dogs = 0;
    for (const CountSeries::Span& span : series.spans()) {
      EXPECT_LE(span.frames, series.frames_per_span());
      frames += span.frames;
      if (span.sums.contains("cat")) cats += span.sums.find("cat")->second;
      if (span.sums.contains("dog")) dogs += span.sums.find("dog")->second;
    }
    const std::uint64_t thirds = (length + 2) / 3;
    EXPECT_EQ(frames, length);
    EXPECT_EQ(cats, double(2 * thirds));
    EXPECT_EQ(dogs, double(length - thirds));
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

TEST(RunTable, GivenPredictedObjects_WhenCounted_ThenTheyAreNoFindings) {
  RunSummary summary;
  FrameResult frame;
  frame.objects = {{.label = "person", .track_id = 1},
                   {.label = "person", .track_id = 2, .predicted = true}};
  summary.add(frame, {});
  EXPECT_EQ(summary.objects, 1u);
  EXPECT_EQ(summary.sums["person"], 1);
  EXPECT_EQ(summary.counts.spans()[0].sums.at("person"), 1);
}

TEST(RunTable, GivenTracksOfTwoSources_WhenPrinted_ThenEachIsCountedOnce) {
  RunSummary summary = small_run();
  EXPECT_EQ(to_table(summary).find("tracks"), std::string::npos);
  for (const std::int64_t id : {1, 3, 2, 3, 1}) {
    FrameResult frame = frame_with({"person"});
    frame.source = "left";
    frame.objects[0].track_id = id;
    summary.add(frame, {});
    frame.source = "right";
    frame.objects[0].track_id = 1;
    summary.add(frame, {});
  }
  EXPECT_NE(to_table(summary).find("tracks      4\n"), std::string::npos) << to_table(summary);
  EXPECT_NE(to_html(summary).find("<b>4</b>objects tracked"), std::string::npos);
}

TEST(RunTable, GivenCountedPlaces_WhenPrinted_ThenTheirSumsAreThere) {
  RunSummary summary = small_run();
  EXPECT_EQ(to_table(summary).find("zones"), std::string::npos);
  summary.frames = 0;
  for (const std::uint64_t inside : {1u, 3u, 2u, 0u}) {
    FrameResult frame = frame_with({"person"});
    frame.zones = {{.name = "mat<", .inside = inside, .entered = 5, .left = 4}};
    frame.lines = {{.name = "gate", .forwards = inside, .backwards = 7}};
    summary.add(frame, {});
  }
  const std::string table = to_table(summary);
  for (const char* text :
       {"1.50 a frame    3 at most      5 entered      4 left", "0 forwards        7 backwards"}) {
    EXPECT_NE(table.find(text), std::string::npos) << text << " is not in\n" << table;
  }
  const std::string page = to_html(summary);
  for (const char* text :
       {"<td>mat&lt;<td class=\"n\">1.50<td class=\"n\">3<td class=\"n\">5<td class=\"n\">4</tr>",
        "<td>gate<td class=\"n\">0<td class=\"n\">7</tr>", "objects inside"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
}

std::vector<LatencyFigures> two_stages() {
  using std::chrono::milliseconds;
  return {{.stage = "infer",
           .stream = "a<b",
           .frames = 7,
           .p50 = milliseconds(10),
           .p95 = milliseconds(20),
           .max = milliseconds(30)},
          {.stage = "draw", .stream = "a<b", .frames = 7, .p50 = milliseconds(1)}};
}

TEST(RunTable, GivenStages_WhenPrinted_ThenEachHasItsTimesAndASoleStreamIsNotNamed) {
  RunSummary summary = small_run();
  EXPECT_EQ(to_table(summary).find("latency of elements"), std::string::npos);
  summary.stages = two_stages();
  const std::string table = to_table(summary);
  EXPECT_NE(table.find("  infer                      10.00    20.00    30.00\n"), std::string::npos)
      << table;
  summary.stages[1].stream = "other";
  EXPECT_NE(to_table(summary).find("  draw, other "), std::string::npos) << to_table(summary);
  EXPECT_NE(to_html(summary).find("<tr><td>infer<td>a&lt;b<td class=\"n\">7<td class=\"n\">10.00"
                                  "<td class=\"n\">20.00<td class=\"n\">30.00</tr>"),
            std::string::npos);
}

TEST(RunJson, GivenARun_WhenWritten_ThenAnotherParserReadsItsFigures) {
  RunSummary summary = small_run();
  summary.stages = two_stages();
  summary.notes = {"a \"note\""};
  summary.zones = {{.last = {.name = "mat", .entered = 5, .left = 4}, .most = 3, .in_frames = 15}};
  summary.lines = {{.name = "gate", .forwards = 1, .backwards = 2}};
  const std::string text = to_json(summary);
  EXPECT_EQ(text.back(), '\n');
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  ASSERT_EQ(parser.parse(text).get(root), simdjson::SUCCESS) << text;
  EXPECT_EQ(std::string_view(root["source"]), "a<b>&\"c\".mp4");
  EXPECT_EQ(std::uint64_t(root["frames"]), 10u);
  EXPECT_EQ(double(root["labels"]["person"]), 20);
  EXPECT_EQ(double(root["zones"].at(0)["inside_a_frame"]), 1.5);
  EXPECT_EQ(std::uint64_t(root["zones"].at(0)["most_inside"]), 3u);
  EXPECT_EQ(std::uint64_t(root["lines"].at(0)["backwards"]), 2u);
  const simdjson::dom::array stages = root["stages"];
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(std::string_view(stages.at(0)["stage"]), "infer");
  EXPECT_EQ(std::int64_t(stages.at(0)["p95_ns"]), 20'000'000);
  EXPECT_EQ(std::int64_t(stages.at(0)["max_ns"]), 30'000'000);
  EXPECT_EQ(std::string_view(root["inside_infer"].at(0)["stage"]), "queue");
  EXPECT_EQ(std::uint64_t(root["ledger"].at(0)["bytes"]), 120'000u);
  EXPECT_EQ(std::string_view(root["notes"].at(0)), "a \"note\"");
}

TEST(RunTable, GivenARun_WhenPrinted_ThenTheNumbersAreThere) {
  const std::string table = to_table(small_run());
  for (const char* text :
       {"frames      10", "5.0 over 2.00 s", "30 (3.00 a frame)", "person", "2.00 a frame",
        "media/preprocess", "frame copies on this path: 0", "avdec_h264", "0.50 a frame"}) {
    EXPECT_NE(table.find(text), std::string::npos) << text << " is not in\n" << table;
  }
}

RunSummary run_of(const std::string& task, const std::vector<FrameResult>& frames) {
  RunSummary summary;
  summary.source = "clip.mp4";
  summary.task = task;
  summary.running = std::chrono::seconds(1);
  for (const FrameResult& frame : frames) {
    summary.add(frame, {});
    summary.pictures.push_back({frame, "not really"});
  }
  return summary;
}

FrameResult classified(const std::string& label, float confidence) {
  FrameResult frame = frame_with({});
  frame.classes = {{.class_id = 0, .label = label, .confidence = confidence},
                   {.class_id = 1, .label = "<rest>", .confidence = 0.01f}};
  return frame;
}

void expect_texts(const std::string& text, const std::vector<const char*>& wanted) {
  for (const char* part : wanted) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
}

TEST(RunTable, GivenAClassifier_WhenPrinted_ThenFirstClassesAreCountedAndNoObjects) {
  const RunSummary summary = run_of(
      "classification",
      {classified("cat", 0.9f), classified("cat", 0.8f), classified("dog", 0.7f), frame_with({})});
  const std::string table = to_table(summary);
  EXPECT_EQ(table.find("objects"), std::string::npos) << table;
  expect_texts(table, {"first class of a frame", "cat                           2     50.0 % of",
                       "dog                           1     25.0 % of", "(none above threshold)"});
  const std::string page = to_html(summary);
  EXPECT_EQ(page.find("object"), std::string::npos);
  EXPECT_EQ(page.find("<rest"), std::string::npos);
  expect_texts(page, {"First class of a frame over time", "first in 50.0 % of the frames",
                      "frame 0, cat 0.90, &lt;rest&gt; 0.01<", "frame 0, no class<"});
}

TEST(RunTable, GivenASegmenter_WhenPrinted_ThenMeanSharesAreShown) {
  FrameResult one = frame_with({}), other = frame_with({});
  one.areas = {{.class_id = 0, .label = "road", .fraction = 0.75f},
               {.class_id = 1, .label = "sky", .fraction = 0.25f}};
  other.areas = {{.class_id = 0, .label = "road", .fraction = 1.0f}};
  const RunSummary summary = run_of("semantic-segmentation", {one, other});
  const std::string table = to_table(summary);
  EXPECT_EQ(table.find("objects"), std::string::npos) << table;
  expect_texts(table, {"mean share of the picture", "road                      87.50 %",
                       "sky                       12.50 %"});
  expect_texts(to_html(summary),
               {"Shares of the picture over time", "<td>road<td class=\"n\">87.50<",
                "frame 0, road 75.0 %, sky 25.0 %<", "87.5 % of the picture"});
}

TEST(RunTable, GivenAReaderOfText_WhenPrinted_ThenFramesWithTextAreCountedAndTheirTextShown) {
  FrameResult read = frame_with({});
  read.texts = {{.text = "GATE <B>", .confidence = 0.9f}};
  const RunSummary summary =
      run_of("text-recognition", {read, frame_with({}), frame_with({}), read});
  const std::string table = to_table(summary);
  EXPECT_EQ(table.find("objects"), std::string::npos) << table;
  expect_texts(table, {"text read   in 2 frames (50.0 %)"});
  const std::string page = to_html(summary);
  EXPECT_EQ(page.find("object"), std::string::npos);
  EXPECT_EQ(page.find("<B>"), std::string::npos);
  expect_texts(page, {"<b>50.0 %</b>of the frames have text", "frame 0, GATE &lt;B&gt;<",
                      "frame 0, no text<"});
}

TEST(RunTable, GivenEmbeddings_WhenPrinted_ThenOnlyTheirSizeIsTold) {
  FrameResult frame = frame_with({});
  frame.embedding.resize(512);
  const RunSummary summary = run_of("embedding", {frame});
  const std::string table = to_table(summary);
  EXPECT_EQ(table.find("objects"), std::string::npos) << table;
  expect_texts(table, {"values      512 a frame"});
  const std::string page = to_html(summary);
  EXPECT_EQ(page.find("object"), std::string::npos);
  EXPECT_EQ(page.find("threshold"), std::string::npos);
  expect_texts(page, {"<b>512</b>values a frame", "frame 0</figcaption>"});
}

TEST(RunReport, GivenPosesAndTurnedBoxes_WhenRendered_ThenDotsAndTurnedRectanglesAreDrawn) {
  FrameResult frame = frame_with({"person", "ship"});
  frame.objects[0].keypoints = {
      {.x = 12, .y = 34, .confidence = 0.5f}, {}, {.x = 56, .y = 78, .confidence = 1}};
  frame.objects[1].rotated =
      RotatedBox{.center_x = 50, .center_y = 40, .width = 20, .height = 10, .angle = 0.78539816f};
  const std::string page = to_html(run_of("pose", {frame}));
  expect_texts(page, {"cx=\"12.0\" cy=\"34.0\"", "fill-opacity=\"0.50\"", "cx=\"56.0\"",
                      "x=\"40.0\" y=\"35.0\" width=\"20.0\" height=\"10.0\" "
                      "transform=\"rotate(45.00 50.0 40.0)\""});
  EXPECT_EQ(page.find("cx=\"0.0\""), std::string::npos) << "a keypoint that was not seen";
}

/// What stands at `name` of the label with that text.
double label_value(const std::string& page, const std::string& text, const std::string& name) {
  const std::size_t end = page.find(">" + text + "<");
  const std::size_t label = page.rfind("<text class=\"boxlabel\"", end);
  if (end == page.npos || label == page.npos) return -1;
  return std::stod(page.substr(page.find(name + "=\"", label) + name.size() + 2));
}

TEST(RunReport, GivenLabelsAtTheEdgeAndOfOneBox_WhenRendered_ThenTheyLieInsideAndApart) {
  FrameResult frame = frame_with({"a rather long name", "cat", "dog", "cow"});
  frame.width = 400;  // Letters of 10.
  frame.height = 300;
  frame.objects[0].x = 380;
  frame.objects[0].y = 100;
  const std::string page = to_html(run_of("detection", {frame}));
  EXPECT_LE(label_value(page, "a rather long name 0.50", "x"), 400 - 23 * 5.0);
  EXPECT_GT(label_value(page, "a rather long name 0.50", "x"), 200);
  const double cat = label_value(page, "cat 0.50", "y"), dog = label_value(page, "dog 0.50", "y"),
               cow = label_value(page, "cow 0.50", "y");
  EXPECT_GE(std::min({cat, dog, cow}), 10);
  EXPECT_GE(std::abs(cat - dog), 10);
  EXPECT_GE(std::abs(cat - cow), 10);
  EXPECT_GE(std::abs(dog - cow), 10);
}

TEST(RunReport, GivenLongLatencies_WhenRendered_ThenAxesHavePlainNumbers) {
  RunSummary summary = small_run();
  for (int i = 0; i < 2'000'000; i += 100'000) {
    summary.of(Stage::kElement).record(std::chrono::milliseconds(i));
  }
  const std::string page = to_html(summary);
  EXPECT_EQ(page.find("e+0"), std::string::npos);
  EXPECT_EQ(plain_number(0), "0");
  EXPECT_EQ(plain_number(1930.4), "1930");
  EXPECT_EQ(plain_number(2'000'000), "2000000");
  EXPECT_EQ(plain_number(12.5), "12.5");
  EXPECT_EQ(plain_number(0.05), "0.05");
  EXPECT_EQ(plain_number(48.25), "48.2");
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
