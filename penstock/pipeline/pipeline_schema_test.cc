// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/pipeline_schema.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace penstock {
namespace {

/// What is wrong with `text`, as a user reads it.
std::vector<std::string> problems_of(std::string_view text) {
  ConfigProblems problems;
  read_pipeline(text, problems);
  std::vector<std::string> lines;
  for (const ConfigProblem& problem : problems) lines.push_back(to_string(problem, "p.yaml"));
  return lines;
}

/// The one problem that a pipeline with these lines besides has.
std::string problem_with(const std::string& lines) {
  const auto problems = problems_of("model: m\nsources:\n  - {name: a, file: a.mp4}\n" + lines);
  if (problems.size() == 1) return problems[0];
  std::string all = std::to_string(problems.size()) + " problems:";
  for (const std::string& problem : problems) all += " " + problem + ";";
  return all;
}

/// The one problem of a pipeline with this source.
std::string problem_of_source(const std::string& source) {
  const auto problems = problems_of("model: m\ntrack: true\nsources:\n  - {" + source + "}\n");
  return problems.size() == 1 ? problems[0] : std::to_string(problems.size()) + " problems";
}

TEST(PipelineSchemaTest, GivenAWholePipeline_WhenRead_ThenEveryKeyArrives) {
  ConfigProblems problems;
  const auto spec = read_pipeline(R"(model: nanodet
device: cpu
policy: latency
threshold: 0.25
batch-size: 4
interval: 2
convert: true
track:
  max-missed-frames: 60
outputs:
  json: all.jsonl
  events: events.jsonl
  video: "{source}.mp4"
control: /run/p.sock
stay-open: true
stall-after: 1500ms
stats-interval: 1min
sources:
  - name: door
    uri: rtsp://user:secret@camera/1
    zones: "mat: 0.1,0.1 0.9,0.1 0.9,0.9 @ person"
    lines: "way: 0,0.5 1,0.5"
  - name: clip
    file: a.mp4
  - {name: usb, v4l2: /dev/video0, reconnect: false}
  - name: ball
    test: {pattern: ball, width: 320, height: 240, rate: 10, frames: 7, live: false}
)",
                                  problems);
  ASSERT_TRUE(spec.has_value());
  EXPECT_TRUE(problems.empty()) << to_string(problems[0], "p");
  EXPECT_EQ(spec->model, "nanodet");
  EXPECT_EQ(spec->model_place, (TextPlace{1, 8}));
  EXPECT_FLOAT_EQ(spec->threshold.value_or(-1), 0.25f);
  ASSERT_EQ(spec->infer.size(), 3u);
  EXPECT_EQ(spec->infer[0].name, "policy");
  EXPECT_EQ(spec->infer[1].value, "4");
  EXPECT_EQ(spec->infer[1].place, (TextPlace{5, 13}));
  EXPECT_TRUE(spec->convert);
  EXPECT_TRUE(spec->track);
  ASSERT_EQ(spec->tracker.size(), 1u);
  EXPECT_EQ(spec->tracker[0].name, "max-missed-frames");
  EXPECT_EQ(spec->json, "all.jsonl");
  EXPECT_EQ(spec->events, "events.jsonl");
  EXPECT_EQ(spec->video, "{source}.mp4");
  EXPECT_EQ(spec->control, "/run/p.sock");
  EXPECT_TRUE(spec->stay_open);
  EXPECT_EQ(spec->stall_after, std::chrono::milliseconds(1500));
  EXPECT_EQ(spec->stats_interval, std::chrono::minutes(1));
  ASSERT_EQ(spec->sources.size(), 4u);
  EXPECT_EQ(spec->sources[0].kind, PipelineSourceKind::kRtsp);
  EXPECT_TRUE(spec->sources[0].reconnect);
  EXPECT_EQ(shown_address(spec->sources[0]), "rtsp://user:***@camera/1");
  EXPECT_EQ(spec->sources[0].lines, "way: 0,0.5 1,0.5");
  EXPECT_EQ(spec->sources[1].kind, PipelineSourceKind::kFile);
  EXPECT_FALSE(spec->sources[1].reconnect);
  EXPECT_EQ(spec->sources[2].kind, PipelineSourceKind::kDevice);
  EXPECT_FALSE(spec->sources[2].reconnect);
  EXPECT_EQ(spec->sources[3].test.width, 320);
  EXPECT_EQ(spec->sources[3].test.frames, 7u);
  EXPECT_FALSE(spec->sources[3].test.live);
}

TEST(PipelineSchemaTest, GivenManyMistakes_WhenRead_ThenAllAreToldInOrderWithTheirPlaces) {
  const auto problems = problems_of(R"(kindd: nanodet
threshold: 2
sources:
  - name: a
    uri: http://camera/1
  - name: a
    file: b.mp4
    loop: maybe
)");
  EXPECT_EQ(problems,
            (std::vector<std::string>{
                "p.yaml:1:1: model: is missing",
                "p.yaml:1:1: kindd: there is no such key; there are model, device, threshold, "
                "policy, workers, batch-size, queue-depth, interval, max-wait, iou-threshold, "
                "max-objects, labels, roi, tiles, tile-overlap, convert, track, stages, outputs, "
                "control, stay-open, stall-after, stats-interval, sources",
                "p.yaml:2:12: threshold: must be a number from 0 to 1, is '2'",
                "p.yaml:5:10: sources[0].uri: only rtsp://, rtsps:// and file:// addresses are "
                "supported",
                "p.yaml:6:5: sources[1].name: 'a' is the name of another source",
                "p.yaml:8:11: sources[1].loop: must be true or false, is 'maybe'"}));
}

TEST(PipelineSchemaTest, GivenAWrongValue_WhenRead_ThenItIsToldWhatWouldBeRight) {
  EXPECT_EQ(problem_with("convert: \"true\"\n"),
            "p.yaml:4:10: convert: must be true or false, is text in quotes");
  EXPECT_EQ(problem_with("threshold: nan\n"),
            "p.yaml:4:12: threshold: must be a number from 0 to 1, is 'nan'");
  EXPECT_EQ(problem_with("stall-after: 10\n"),
            "p.yaml:4:14: stall-after: must be a duration from 1s to 3600s, as 500ms, 2s or 1min, "
            "is '10'");
  EXPECT_EQ(problem_with("stall-after: 1e300s\n"),
            "p.yaml:4:14: stall-after: must be a duration from 1s to 3600s, as 500ms, 2s or 1min, "
            "is '1e300s'");
  EXPECT_EQ(problem_with("outputs: [json]\n"), "p.yaml:4:10: outputs: must be a map, is a list");
  EXPECT_EQ(problem_with("track:\n  max-tracks: [1]\n"),
            "p.yaml:5:15: track.max-tracks: must be a number, a boolean or text");
  EXPECT_EQ(problem_with("control: p.sock\noutputs: {video: a.mp4}\n"),
            "p.yaml:5:18: outputs.video: must hold {source}: there may be several, and each has a "
            "file of its own");
  EXPECT_EQ(problem_with("stay-open: true\n"),
            "p.yaml:4:12: stay-open: needs a `control` socket: nobody could add a source");
}

TEST(PipelineSchemaTest, GivenAWrongSource_WhenRead_ThenItIsToldAtItsPlace) {
  EXPECT_EQ(problem_of_source("name: a"),
            "p.yaml:4:5: sources[0]: needs one of file, uri, v4l2 and test");
  EXPECT_EQ(problem_of_source("name: a, file: a, uri: 'rtsp://b'"),
            "p.yaml:4:29: sources[0].uri: is told beside 'file'; a source has one of them");
  EXPECT_EQ(problem_of_source("file: a"), "p.yaml:4:5: sources[0]: needs a name");
  EXPECT_EQ(problem_of_source("name: ../a, file: a"),
            "p.yaml:4:12: sources[0].name: must be 1 to 64 letters, digits, '_' or '-'");
  EXPECT_EQ(problem_of_source("name: a, uri: 'rtsp://b', loop: true"),
            "p.yaml:4:38: sources[0].loop: is for files");
  EXPECT_EQ(problem_of_source("name: a, file: a, reconnect: true"),
            "p.yaml:4:35: sources[0].reconnect: is for cameras; a file is begun again by `loop`");
  EXPECT_EQ(problem_of_source("name: a, test: {width: 3}"),
            "p.yaml:4:29: sources[0].test.width: must be even, is 3");
  EXPECT_EQ(problem_of_source("name: a, test: {pattern: \"x ! filesink\"}"),
            "p.yaml:4:31: sources[0].test.pattern: must be ball, smpte, snow, black, white, red, "
            "green or blue, is 'x ! filesink'");
}

TEST(PipelineSchemaTest, GivenStages_WhenRead_ThenEveryKeyArrivesInOrder) {
  ConfigProblems problems;
  const auto spec = read_pipeline(R"(model: m
roi: tiles
tiles: 3x2
track: true
stages:
  - {model: whole, roi: full-frame, threshold: 0.25}
  - {model: grid, roi: tiles, tiles: 4x4, tile-overlap: 10, batch-size: 8}
  - model: color
    object-classes: [car, "bus"]
    object-min-size: 16
    reinfer-interval: 10
  - {model: face, object-classes: "person, dog"}
outputs: {report: r.json}
sources:
  - {name: a, file: a.mp4}
)",
                                  problems);
  ASSERT_TRUE(spec.has_value());
  EXPECT_TRUE(problems.empty()) << to_string(problems[0], "p");
  ASSERT_EQ(spec->infer.size(), 2u);
  EXPECT_EQ(spec->infer[0].name + "=" + spec->infer[0].value, "roi=tiles");
  EXPECT_EQ(spec->report, "r.json");
  std::vector<std::string> told;
  for (const StageSpec& stage : spec->stages) {
    std::string text = stage.model + " " + std::string(name_of(stage.roi));
    for (const Setting& setting : stage.settings) text += " " + setting.name + "=" + setting.value;
    told.push_back(text);
  }
  EXPECT_EQ(told, (std::vector<std::string>{
                      "whole full-frame threshold=0.25",
                      "grid tiles tiles=4x4 tile-overlap=10 batch-size=8",
                      "color objects object-classes=car,bus object-min-size=16 reinfer-interval=10",
                      "face objects object-classes=person, dog"}));
  EXPECT_EQ(spec->stages[2].setting("object-classes")->place, (TextPlace{9, 21}));
  EXPECT_EQ(spec->stages[2].model_place, (TextPlace{8, 12}));
  EXPECT_EQ(spec->stages[0].roi_place, (TextPlace{6, 25}));
}

TEST(PipelineSchemaTest, GivenAWrongStage_WhenRead_ThenItIsToldAtItsPlace) {
  const auto with_stage = [](const std::string& stage) {
    return problem_with("track: true\nstages:\n  - {" + stage + "}\n");
  };
  EXPECT_EQ(with_stage("roi: objects"), "p.yaml:6:5: stages[0].model: is missing");
  EXPECT_EQ(with_stage("model: m, roi: object"),
            "p.yaml:6:21: stages[0].roi: must be objects, tiles or full-frame, is 'object'");
  EXPECT_EQ(with_stage("model: m, tiles: 2x2"),
            "p.yaml:6:23: stages[0].tiles: is for `roi: tiles`");
  EXPECT_EQ(with_stage("model: m, roi: tiles, object-classes: [a]"),
            "p.yaml:6:44: stages[0].object-classes: is for `roi: objects`");
  EXPECT_EQ(with_stage("model: m, object-classes: [a, [b]]"),
            "p.yaml:6:36: stages[0].object-classes: must be labels without commas");
  EXPECT_EQ(with_stage("model: m, object-classes: []"),
            "p.yaml:6:32: stages[0].object-classes: is empty");
  EXPECT_EQ(with_stage("model: m, engine-library: x"),
            "p.yaml:6:16: stages[0].engine-library: there is no such key; there are model, roi, "
            "object-classes, object-min-size, reinfer-interval, tiles, tile-overlap, threshold, "
            "iou-threshold, max-objects, labels, interval, batch-size, workers, queue-depth, "
            "policy, max-wait");
  EXPECT_EQ(problem_with("stages:\n  - {model: m, reinfer-interval: 3}\n"),
            "p.yaml:5:34: stages[0].reinfer-interval: counts frames of one object, which needs "
            "tracks: say `track: true`");
  EXPECT_EQ(problem_with("stages: {model: m}\n"), "p.yaml:4:9: stages: must be a list, is a map");
  std::string many = "stages:\n";
  for (int i = 0; i < 9; ++i) many += "  - {model: m}\n";
  EXPECT_EQ(problem_with(many), "p.yaml:5:3: stages: are 9; at most 8 are taken");
}

TEST(PipelineSchemaTest, GivenRegionsOfTheFirstModel_WhenTheyMakeNoSense_ThenThatIsTold) {
  EXPECT_EQ(problem_with("roi: objects\n"),
            "p.yaml:4:6: roi: is `objects`, and nobody has found any before the first model: see "
            "`stages`");
  EXPECT_EQ(problem_with("tiles: 2x2\n"), "p.yaml:4:8: tiles: is for `roi: tiles`");
}

TEST(PipelineSchemaTest, GivenZonesWithoutTracks_WhenRead_ThenItIsAProblem) {
  const auto problems =
      problems_of("model: m\nsources:\n  - {name: a, file: a, zones: \"z: 0,0 1,0 1,1\"}\n");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0], "p.yaml:3:5: sources[0]: zones and lines need tracks: say `track: true`");
}

TEST(PipelineSchemaTest, GivenASecretInAnAddress_WhenItIsWrong_ThenTheSecretIsNotTold) {
  for (const std::string& problem :
       problems_of("model: m\nsources: [{name: a, uri: 'http://user:sesame@camera/1'}]\n")) {
    EXPECT_EQ(problem.find("sesame"), std::string::npos) << problem;
  }
}

TEST(PipelineSchemaTest, GivenThousandsOfMistakes_WhenRead_ThenAHundredAreTold) {
  std::string text = "model: m\nsources: []\n";
  for (int i = 0; i < 3000; ++i) text += "key" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(problems_of(text).size(), kMaxConfigProblems);
}

TEST(PipelineSchemaTest, GivenOneMistake_WhenRead_ThenOneLineSaysItWithFileAndPlace) {
  using Lines = std::vector<std::string>;
  std::string many = "model: m\nsources:\n";
  for (int n = 0; n < 129; ++n) {
    many += "  - {name: s" + std::to_string(n) + ", test: {}}\n";
  }
  EXPECT_EQ(problems_of(many), (Lines{"p.yaml:3:3: sources: are 129; at most 128 are taken"}));
  EXPECT_EQ(problems_of("model: m\nsources: 4\n"),
            (Lines{"p.yaml:2:10: sources: must be a list, is text"}));
  for (const char* empty : {"", "\n", "# nothing\n", "\xff\xfe"}) {
    EXPECT_EQ(problems_of(empty), (Lines{"p.yaml:1:1: must be a map, is nothing"}));
  }
}

TEST(PipelineSchemaTest, GivenADash_WhenAnOutputIsOne_ThenItIsStdoutAndForAVideoWrong) {
  ConfigProblems problems;
  const auto spec = read_pipeline(
      "model: m\nsources: [{name: a, test: {}}]\noutputs: {json: \"-\", events: ./-}\n", problems);
  ASSERT_TRUE(spec.has_value());
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(spec->json, "/dev/stdout");
  EXPECT_EQ(spec->events, "./-") << "a file of that name";
  EXPECT_EQ(spec->json_place, (TextPlace{3, 17}));
  EXPECT_NE(
      problem_with("outputs: {video: \"-\"}")
          .find("p.yaml:4:18: outputs.video: is '-', and an MP4 is not written from its start"),
      std::string::npos);
}

}  // namespace
}  // namespace penstock
