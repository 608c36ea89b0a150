// SPDX-License-Identifier: Apache-2.0
//
// `penstock check` refuses what `penstock run` refuses, and neither touches a file before.
#include <sys/stat.h>

#include <algorithm>
#include <string>

#include "penstock/base/str_format.h"
#include "tests/e2e/pipeline_folder.h"

namespace penstock::e2e {
namespace {

class PipelineCheckTest : public PipelineFolder {
 protected:
  void SetUp() override {
    PipelineFolder::SetUp();
    clip_ = square_mp4(folder_, 4).string();
    // Short: a socket's path has 107 bytes at most.
    std::string pattern = "/tmp/penstock-check-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    socket_folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(socket_folder_); }
  /// Neither takes the pipeline with these lines; check says `said` with the file's name, in one
  /// line.
  void expect_refused(const std::string& lines, int code_of_run, const std::string& said) const {
    SCOPED_TRACE(lines);
    std::ofstream(yaml_) << "model: " << model_ << "\n" << lines;
    const std::string before = read_text(yaml_), clip = read_text(clip_);
    const Ended checked = run_penstock({"check", yaml_});
    EXPECT_EQ(checked.code, 65) << checked.out;
    EXPECT_TRUE(checked.err.starts_with(yaml_ + ":")) << checked.err;
    EXPECT_NE(checked.err.find(said), std::string::npos) << checked.err;
    EXPECT_EQ(std::ranges::count(checked.err, '\n'), 1) << checked.err;
    const Ended ran = run_penstock({"run", yaml_});
    EXPECT_EQ(ran.code, code_of_run) << ran.err;
    EXPECT_EQ(read_text(yaml_), before);
    EXPECT_EQ(read_text(clip_), clip);
  }
  std::string source() const { return str_format("sources: [{{name: a, file: {}}}]\n", clip_); }
  std::string clip_, socket_folder_;
};

TEST_F(PipelineCheckTest, GivenOutputsThatAreInTheWay_WhenChecked_ThenItIsSaid) {
  std::filesystem::create_symlink(yaml_, folder_ / "link");
  for (const char* name : {"p.yaml", "link"}) {
    expect_refused(source() + str_format("outputs: {{json: {}/{}}}\n", folder_.string(), name), 64,
                   "' is the pipeline's own file");
  }
  expect_refused(
      source() + str_format("outputs: {{json: {0}/one, events: {0}/one}}\n", folder_.string()), 64,
      "are one file");
  expect_refused(
      source() + str_format("outputs: {{json: {0}/a.mp4, video: \"{0}/{{source}}.mp4\"}}\n",
                            folder_.string()),
      64, "are one file");
  expect_refused(
      source() + str_format("control: {0}/s\noutputs: {{json: {0}/s}}\n", socket_folder_), 64,
      "is the control socket");
  expect_refused(source() + str_format("outputs: {{json: {}}}\n", clip_), 64, "is the source 'a'");
}

TEST_F(PipelineCheckTest, GivenPathsThatCanNotBe_WhenChecked_ThenItIsSaid) {
  expect_refused(source() + str_format("outputs: {{json: {}/none/j}}\n", folder_.string()), 73,
                 "No such file or directory");
  expect_refused(source() + str_format("outputs: {{events: {}}}\n", folder_.string()), 73,
                 "Is a directory");
  expect_refused(
      source() + str_format("outputs: {{video: \"{}/none/{{source}}\"}}\n", folder_.string()), 73,
      "No such file or directory");
  expect_refused(source() + str_format("control: {}/none/s\n", socket_folder_), 66,
                 "control: control socket");
  expect_refused(source() + str_format("control: /tmp/{}\n", std::string(103, 'x')), 64,
                 "a socket's path has 1 to 107 bytes");
  expect_refused(source() + str_format("control: {}\n", clip_), 64, "is the source 'a'");
}

TEST_F(PipelineCheckTest, GivenLabelsOfAnotherNumber_WhenChecked_ThenItIsSaid) {
  expect_refused(source() + "labels: a,b,c,d,e,f,g\n", 65,
                 ":3:9: labels: names 7 classes, the model has 3");
}

TEST_F(PipelineCheckTest, GivenOneMistake_WhenChecked_ThenNothingFalseIsSaidBesides) {
  expect_refused("sources: [{name: a, file: x, uri: 'rtsp://x', test: {}}]\n", 65,
                 "sources[0].uri: is told beside 'file'");
  expect_refused("sources: 4\n", 65, "sources: must be a list");
}

}  // namespace
}  // namespace penstock::e2e
