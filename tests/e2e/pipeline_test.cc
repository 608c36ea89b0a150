// SPDX-License-Identifier: Apache-2.0
//
// Several sources in one run, from YAML and from flags.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/base/unique_fd.h"
#include "penstock/model/testing/picture_readers.h"
#include "penstock/model/testing/test_models.h"
#include "tests/e2e/pipeline_folder.h"

namespace penstock::e2e {
namespace {

constexpr int kFrames = 24;

class PipelineTest : public PipelineFolder {
 protected:
  void SetUp() override {
    PipelineFolder::SetUp();
    clip_ = square_mp4(folder_, kFrames).string();
  }
  void expect_squares(const std::vector<JsonLine>& lines) {
    ASSERT_EQ(int(lines.size()), kFrames);
    for (int n = 0; n < kFrames; ++n) {
      ASSERT_EQ(lines[std::size_t(n)].objects.size(), 1u) << n;
      EXPECT_NEAR(lines[std::size_t(n)].objects[0].x, square_left(n), 2) << n;
    }
  }
  std::string clip_;
};

TEST_F(PipelineTest, GivenTwoFilesAndATestPattern_WhenRun_ThenEachHasItsFramesAndItsVideo) {
  write_pipeline(str_format("sources:\n"
                            "  - {{name: one, file: {}}}\n"
                            "  - {{name: two, file: {}}}\n"
                            "  - {{name: three, test: {{width: 128, height: 96, rate: 50, "
                            "frames: 10, live: false}}}}\n",
                            clip_, clip_),
                 str_format("  video: \"{}/{{source}}.mp4\"\n", folder_.string()));
  const Ended ended = run_penstock({"run", yaml_});
  EXPECT_EQ(ended.code, 0) << ended.err;
  auto lines = lines_by_source();
  EXPECT_EQ(lines.size(), 3u);
  expect_squares(lines["one"]);
  expect_squares(lines["two"]);
  ASSERT_EQ(lines["three"].size(), 10u);
  EXPECT_EQ(lines["three"][9].width, 128);
  EXPECT_EQ(lines["three"][9].height, 96);
  EXPECT_EQ(lines["three"][9].pts_ns, 9 * 20'000'000LL);
  for (const auto& [name, frames] :
       {std::pair{"one", kFrames}, std::pair{"two", kFrames}, std::pair{"three", 10}}) {
    const Decoded decoded = decode_file(folder_ / (std::string(name) + ".mp4"));
    EXPECT_EQ(decoded.error, "");
    EXPECT_EQ(decoded.frames, frames) << name;
  }
  EXPECT_NE(ended.out.find("one     ended            24"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("memory ledger"), std::string::npos) << ended.out;
}

TEST_F(PipelineTest, GivenSourcesAsFlags_WhenRun_ThenItIsTheSameJob) {
  const Ended ended =
      run_penstock({"run", "--source", clip_, "--source", clip_, "--model", model_, "--out",
                    "json=" + json_, "--out", "video=" + (folder_ / "{source}.mp4").string()});
  EXPECT_EQ(ended.code, 0) << ended.err;
  auto lines = lines_by_source();
  expect_squares(lines["source-0"]);
  expect_squares(lines["source-1"]);
  EXPECT_EQ(decode_file(folder_ / "source-1.mp4").frames, kFrames);
  // What was copied beside the analytic path is told, too, of both together.
  EXPECT_THAT(ended.out, ::testing::ContainsRegex("upstream +all decoders +0 +0[.]00 a frame"));
  EXPECT_THAT(ended.out,
              ::testing::ContainsRegex(str_format("draw .video output. +{} +1[.]00", 2 * kFrames)));
}

TEST_F(PipelineTest, GivenADamagedFile_WhenRun_ThenItFailsAloneAndTheCodeTells) {
  const std::string bad = (folder_ / "bad.mp4").string();
  const std::string whole = read_text(clip_);
  std::ofstream(bad, std::ios::binary) << whole.substr(0, whole.size() / 2);
  write_pipeline(str_format("sources:\n  - {{name: bad, file: {}}}\n  - {{name: good, file: {}}}\n",
                            bad, clip_));
  const Ended ended = run_penstock({"run", yaml_});
  EXPECT_EQ(ended.code, 65) << ended.err;
  EXPECT_NE(ended.err.find(bad), std::string::npos) << ended.err;
  expect_squares(lines_by_source()["good"]);
  EXPECT_NE(ended.out.find("bad     failed"), std::string::npos) << ended.out;
}

TEST_F(PipelineTest, GivenALoop_WhenStopped_ThenNumbersAndTimesHaveGoneOn) {
  write_pipeline(str_format("sources:\n  - {{name: again, file: {}, loop: true}}\n", clip_));
  PenstockProcess process({"run", yaml_});
  ASSERT_TRUE(process.await_error_output("again: online", 3)) << process.wait().err;
  process.signal(SIGTERM);
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 143) << ended.err;
  EXPECT_GT(lines_by_source()["again"].size(), std::size_t{2 * kFrames});
}

TEST_F(PipelineTest, GivenAnInterval_WhenRun_ThenAnalysedFramesHaveTheirLinesAndTheVideoAllFrames) {
  write_pipeline(str_format("interval: 3\nsources:\n  - {{name: clip, file: {}}}\n"
                            "  - {{name: two, file: {}}}\n",
                            clip_, clip_),
                 str_format("  video: \"{}/{{source}}.mp4\"\n", folder_.string()));
  const Ended ended = run_penstock({"run", yaml_});
  ASSERT_EQ(ended.code, 0) << ended.err;
  std::map<std::string, std::vector<JsonLine>> lines;
  for (JsonLine& line : read_json_lines(json_)) lines[line.source].push_back(std::move(line));
  for (const char* source : {"clip", "two"}) {
    ASSERT_EQ(int(lines[source].size()), kFrames / 3);
    for (int n = 0; n < kFrames / 3; ++n) {
      const JsonLine& line = lines[source][std::size_t(n)];
      EXPECT_EQ(line.frame, 3 * n);
      EXPECT_EQ(line.pts_ns, 3 * n * 40'000'000LL);
      ASSERT_EQ(line.objects.size(), 1u) << n;
      EXPECT_NEAR(line.objects[0].x, square_left(3 * n), 2) << n;
    }
    EXPECT_EQ(decode_file(folder_ / (std::string(source) + ".mp4")).frames, kFrames);
  }
  EXPECT_NE(ended.out.find("clip    ended            24"), std::string::npos) << ended.out;
}

TEST_F(PipelineTest, GivenAnIntervalAndTracks_WhenRun_ThenTheFramesBetweenTellThePredicted) {
  write_pipeline(
      str_format("interval: 3\ntrack: {{sure-score: 0.3, confirm-frames: 1}}\nsources:\n"
                 "  - {{name: clip, file: {}}}\n",
                 clip_));
  const Ended ended = run_penstock({"run", yaml_});
  ASSERT_EQ(ended.code, 0) << ended.err;
  int between = 0;
  for (const JsonLine& line : read_json_lines(json_)) {
    SCOPED_TRACE(line.frame);
    if (line.frame % 3 == 0) {
      ASSERT_GE(line.objects.size(), 1u);
      EXPECT_FALSE(line.objects[0].predicted);
      EXPECT_NEAR(line.objects[0].x, square_left(int(line.frame)), 2);
      continue;
    }
    ++between;
    ASSERT_GE(line.objects.size(), 1u) << "nothing to tell is no line";
    EXPECT_EQ(line.pts_ns, line.frame * 40'000'000LL);
    EXPECT_EQ(line.width, kSide);
    for (const JsonBox& box : line.objects) {
      EXPECT_TRUE(box.predicted);
      EXPECT_GT(box.track_id, 0);
      EXPECT_EQ(box.label, "red");
      EXPECT_EQ(box.class_id, 0);
    }
  }
  EXPECT_EQ(between, kFrames * 2 / 3) << "the square is always somewhere";
}

TEST_F(PipelineTest, GivenZones_WhenTheSquareMoves_ThenEventsTellOfItAndTheTableCounts) {
  const std::string events = (folder_ / "events.jsonl").string();
  write_pipeline(str_format("track: {{sure-score: 0.3, confirm-frames: 1}}\nsources:\n"
                            "  - name: clip\n    file: {}\n"
                            "    zones: \"right: 0.5,0 1,0 1,1 0.5,1\"\n"
                            "    lines: \"middle: 0.5,1 0.5,0\"\n",
                            clip_),
                 "  events: " + events + "\n");
  const Ended ended = run_penstock({"run", yaml_});
  EXPECT_EQ(ended.code, 0) << ended.err;
  const std::string text = read_text(events);
  // It goes from left to right three times.
  EXPECT_NE(text.find("{\"source\":\"clip\",\"event\":\"entered\",\"place\":\"right\""),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\"event\":\"crossed-forwards\",\"place\":\"middle\""), std::string::npos)
      << text;
  EXPECT_NE(ended.out.find("right "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find(" entered "), std::string::npos) << ended.out;
}

/// A classifier that says what colour the middle of what it sees has.
std::string color_reader(const std::filesystem::path& folder) {
  auto model = model_testing::make_picture_reader(model_testing::PictureReader::kCenterLogits, 32);
  model.name = "color";
  model_testing::write_model_folder(model, folder / "color");
  return (folder / "color/manifest.json").string();
}

TEST_F(PipelineTest, GivenAStageThatLooksAtObjects_WhenRun_ThenTheRedSquareIsRedAndAgesBetween) {
  write_pipeline(
      str_format("track: {{sure-score: 0.3, confirm-frames: 1}}\n"
                 "stages:\n  - {{model: {}, reinfer-interval: 4}}\n"
                 "sources:\n  - {{name: one, file: {}}}\n  - {{name: two, file: {}}}\n",
                 color_reader(folder_), clip_, clip_));
  const Ended ended = run_penstock({"run", yaml_});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("stage color (classification): looks at each object, again after 4"),
            std::string::npos)
      << ended.err;
  auto lines = lines_by_source();
  expect_squares(lines["one"]);
  expect_squares(lines["two"]);
  // Eight frames of one object, looked at in frames 0 and 4.
  int frame = 0;
  std::istringstream text(read_text(json_));
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("{\"source\":\"one\"") || frame >= 8) continue;
    const std::string age = frame % 4 == 0 ? "" : str_format("\"age\":{},", frame % 4);
    EXPECT_NE(line.find("\"attributes\":[{\"model\":\"color\"," + age +
                        "\"classes\":[{\"label\":\"red\""),
              std::string::npos)
        << frame << ": " << line;
    ++frame;
  }
  EXPECT_EQ(frame, 8);
  EXPECT_NE(ended.out.find("stages[0] color, two"), std::string::npos) << ended.out;
}

TEST_F(PipelineTest, GivenAStageOfTheWholeFrame_WhenRun_ThenTheFrameHasItsWordBesideTheObjects) {
  write_pipeline(
      str_format("stages:\n  - {{model: {}, roi: full-frame}}\n"
                 "sources:\n  - {{name: one, file: {}}}\n",
                 color_reader(folder_), clip_));
  const Ended ended = run_penstock({"run", yaml_});
  ASSERT_EQ(ended.code, 0) << ended.err;
  expect_squares(lines_by_source()["one"]);
  const std::string text = read_text(json_);
  EXPECT_NE(text.find("],\"attributes\":[{\"model\":\"color\",\"classes\":["), std::string::npos)
      << text;
}

TEST_F(PipelineTest, GivenStagesThatCannotBe_WhenChecked_ThenEachIsToldAtItsPlace) {
  const std::string color = color_reader(folder_);
  std::ofstream(yaml_) << "model: " << model_ << "\ntrack: true\nstages:\n"
                       << "  - {roi: objects, object-classes: [ghost], model: " << color << "}\n"
                       << "  - {roi: tiles, model: " << color << "}\n"
                       << "  - {roi: full-frame, model: " << model_ << "}\n"
                       << "  - {reinfer-interval: -1, model: nothing-like-it}\n"
                       << "sources: [{name: a, test: {frames: 1}}]\n";
  const Ended ended = run_penstock({"check", yaml_});
  EXPECT_EQ(ended.code, 65) << ended.err;
  for (const char* start :
       {":4:36: stages[0].object-classes: nobody before it finds 'ghost'; there are ",
        ":5:11: stages[1].roi: tiles are for models of task 'detection'",
        ":6:11: stages[2].roi: finds objects, which get no tracks behind a stage that looks",
        ":7:24: stages[3].reinfer-interval: ", ":7:35: stages[3].model: "}) {
    EXPECT_NE(ended.err.find(yaml_ + start), std::string::npos) << start << "\n" << ended.err;
  }
}

TEST_F(PipelineTest, GivenMistakes_WhenChecked_ThenAllAreToldWithTheirPlacesAndNothingIsMade) {
  std::ofstream(yaml_) << "model: nothing-like-it\n"
                          "batch-size: 1000\n"
                          "track: {sure-score: 0.1, unsure-score: 0.5}\n"
                          "outputs: {json: "
                       << json_
                       << "}\n"
                          "sources:\n"
                          "  - {name: a, file: "
                       << folder_.string()
                       << "/missing.mp4}\n"
                          "  - {name: b, file: "
                       << clip_
                       << ", zones: \"z: 0,0 1,1\"}\n"
                          "  - {name: b, file: "
                       << clip_ << ", speed: 2}\n";
  for (const char* command : {"check", "run"}) {
    const Ended ended = run_penstock({command, yaml_});
    EXPECT_EQ(ended.code, 65) << ended.err;
    for (const char* start :
         {":1:8: model: ", ":2:13: batch-size: ", ":3:8: track: ", ":6:5: sources[0]: ",
          ":7:5: sources[1].zones: ", ":8:5: sources[2].name: 'b' is the name of another"}) {
      EXPECT_NE(ended.err.find(yaml_ + start), std::string::npos) << start << "\n" << ended.err;
    }
    EXPECT_NE(ended.err.find("sources[2].speed: there is no such key"), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(json_));
  }
}

TEST_F(PipelineTest, GivenALabelThatTheModelHasNot_WhenAZoneCountsIt_ThenItIsToldAtItsLine) {
  write_pipeline(
      str_format("track: true\nsources:\n"
                 "  - {{name: clip, file: {0}, lines: \"l: 0,0 1,1\"}}\n"
                 "  - {{name: door, file: {0}, zones: \"z: 0,0 1,0 1,1 @ persn\"}}\n",
                 clip_));
  for (const char* command : {"check", "run"}) {
    const Ended ended = run_penstock({command, yaml_});
    EXPECT_EQ(ended.code, 65) << ended.err;
    EXPECT_NE(ended.err.find(yaml_ + ":8:5: sources[1].zones: zone 'z': no model here finds "
                                     "'persn'; "),
              std::string::npos)
        << ended.err;
    EXPECT_FALSE(std::filesystem::exists(json_));
  }
  const Ended flags = run_penstock({"run", "--source", clip_, "--source", clip_, "--model", model_,
                                    "--track", "--lines", "l: 0,0 1,1 @ persn"});
  EXPECT_EQ(flags.code, 64) << flags.err;
}

TEST_F(PipelineTest, GivenAGoodPipeline_WhenChecked_ThenThePlanIsToldAndNothingIsMade) {
  write_pipeline(
      str_format("track: true\nsources:\n"
                 "  - {{name: door, uri: \"rtsp://me:sesame@192.0.2.1/1\"}}\n"
                 "  - {{name: clip, file: {}}}\n",
                 clip_));
  const Ended ended = run_penstock({"check", yaml_});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("source door: rtsp://me:***@192.0.2.1/1, dialled again"),
            std::string::npos)
      << ended.out;
  EXPECT_NE(ended.out.find("frames to " + json_), std::string::npos) << ended.out;
  EXPECT_FALSE(std::filesystem::exists(json_));
}

TEST_F(PipelineTest, GivenWrongCommandLines_WhenRun_ThenTheyAreUsageErrors) {
  write_pipeline(str_format("sources:\n  - {{name: a, file: {}}}\n", clip_));
  EXPECT_EQ(run_penstock({"run", yaml_, "--threshold", "0.5"}).code, 64);
  EXPECT_EQ(run_penstock({"run", "--source", clip_}).code, 64);
  EXPECT_EQ(run_penstock({"run", "--source", clip_, "--source", clip_, "--model", model_, "--out",
                          "picture=" + (folder_ / "r.png").string()})
                .code,
            64);
  EXPECT_EQ(run_penstock({"run", "--source", clip_, "--source", clip_, "--model", model_, "--out",
                          "video=" + (folder_ / "v.mp4").string()})
                .code,
            64);
  EXPECT_EQ(run_penstock({"run", "--source", clip_, "--source", clip_, "--model", model_, "--zones",
                          "z: 0,0 1,0 1,1"})
                .code,
            64);
  EXPECT_EQ(run_penstock({"run", (folder_ / "missing.yaml").string()}).code, 66);
  const Ended forgotten = run_penstock({"run", clip_});
  EXPECT_EQ(forgotten.code, 64);
  EXPECT_NE(forgotten.err.find("penstock run --source " + clip_), std::string::npos)
      << forgotten.err;
  EXPECT_EQ(run_penstock({"check", folder_.string()}).code, 64);
}

/// The text between `from` and the next `to` behind it; empty for none.
std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + from.size();
  return text.substr(begin, text.find(to, begin) - begin);
}

TEST_F(PipelineTest, GivenAReport_WhenRun_ThenEachSourceHasItsStagesInHtmlAndInJson) {
  for (const char* name : {"r.html", "r.json"}) {
    const std::string report = (folder_ / name).string();
    write_pipeline(
        str_format("track: true\nsources:\n  - {{name: one, file: {}}}\n"
                   "  - {{name: two, test: {{width: 192, height: 192, frames: 9, live: "
                   "false}}}}\n",
                   clip_),
        str_format("  report: {}\n  video: \"{}/{{source}}.mp4\"\n", report, folder_.string()));
    const Ended ended = run_penstock({"run", yaml_});
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_NE(ended.out.find("infer, two"), std::string::npos) << ended.out;
    const std::string text = read_text(report);
    if (std::string(name) == "r.html") {
      EXPECT_NE(text.find("<td>infer<td>one<td class=\"n\">24<"), std::string::npos) << text;
      EXPECT_NE(text.find("<td>encode<td>two<td class=\"n\">9<"), std::string::npos) << text;
      EXPECT_NE(text.find("Copies outside the analytic path"), std::string::npos) << text;
      EXPECT_EQ(text.find("<script"), std::string::npos);
      continue;
    }
    for (const char* stage : {"infer", "track", "draw", "draw-convert", "encode"}) {
      const std::string of_two =
          between(text, str_format("{{\"stage\":\"{}\",\"stream\":\"two\",", stage), "}");
      EXPECT_NE(of_two.find("\"frames\":9,"), std::string::npos) << stage << " in " << text;
      const auto p50 = std::stoll("0" + between(of_two, "\"p50_ns\":", ","));
      const auto p95 = std::stoll("0" + between(of_two, "\"p95_ns\":", ","));
      const auto max = std::stoll("0" + between(of_two + "}", "\"max_ns\":", "}"));
      EXPECT_GT(p50, 0) << stage;
      EXPECT_LE(p50, p95) << stage;
      EXPECT_LE(p95, max) << stage;
    }
  }
}

TEST_F(PipelineTest, GivenAnOutputThatIsASource_WhenRun_ThenTheSourceStays) {
  const std::string before = read_text(clip_);
  json_ = clip_;
  write_pipeline(str_format("sources:\n  - {{name: a, file: {}}}\n", clip_));
  EXPECT_EQ(run_penstock({"run", yaml_}).code, 64);
  EXPECT_EQ(read_text(clip_), before);
  // Also where it would be the video of another source.
  json_ = (folder_ / "all.jsonl").string();
  write_pipeline(str_format("sources:\n  - {{name: square, test: {{frames: 1}}}}\n"
                            "  - {{name: a, file: {}}}\n",
                            clip_),
                 str_format("  video: \"{}/{{source}}.mp4\"\n", folder_.string()));
  ASSERT_EQ(std::filesystem::path(clip_).filename(), "square.mp4");
  EXPECT_EQ(run_penstock({"run", yaml_}).code, 64);
  EXPECT_EQ(read_text(clip_), before);
}

TEST_F(PipelineTest, GivenAJsonThatIsADash_WhenSeveralRun_ThenItIsStdout) {
  const auto folder = std::filesystem::current_path();
  const Ended flags = run_penstock(
      {"run", "--source", clip_, "--source", clip_, "--model", model_, "--out", "json=-"});
  EXPECT_EQ(flags.code, 0) << flags.err;
  json_ = "\"-\"";
  write_pipeline(
      str_format("sources:\n  - {{name: a, file: {}}}\n  - {{name: b, file: {}}}\n", clip_, clip_));
  const Ended file = run_penstock({"run", yaml_});
  EXPECT_EQ(file.code, 0) << file.err;
  for (const std::string* out : {&flags.out, &file.out}) {
    EXPECT_EQ(std::ranges::count(*out, '\n'), 2 * kFrames);
    EXPECT_TRUE(out->starts_with("{\"source\":")) << *out;
    EXPECT_EQ(out->find("memory ledger"), std::string::npos) << "the table is on stderr";
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "-"));
}

TEST_F(PipelineTest, GivenAReaderOfTheTableThatIsGone_WhenARunEnds_ThenItIs74) {
  const std::string fifo = (folder_ / "table").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  write_pipeline(str_format("sources:\n  - {{name: a, file: {}}}\n", clip_));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", yaml_},
        {"run", "--source", clip_, "--model", model_, "--out", "json=" + json_}}) {
    UniqueFd reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    ASSERT_TRUE(reader.is_valid());
    PenstockProcess process(words, {.output = fifo});
    reader.reset();
    const Ended ended = process.wait();
    EXPECT_EQ(ended.code, 74) << words[1];
    EXPECT_NE(ended.err.find("cannot write to the standard output"), std::string::npos)
        << ended.err;
    EXPECT_EQ(int(read_json_lines(json_).size()), kFrames) << "the outputs are whole";
  }
}

}  // namespace
}  // namespace penstock::e2e
