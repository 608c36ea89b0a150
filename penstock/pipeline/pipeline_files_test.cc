// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/pipeline_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "penstock/pipeline/pipeline_source.h"

namespace penstock {
namespace {

class PipelineFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/penstock-files-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    spec_.video = at("{source}.mp4");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::string make(const std::string& name) const {
    std::ofstream(at(name)) << "content";
    return at(name);
  }
  void add_source(const std::string& name, const std::string& file) {
    PipelineSource source;
    source.name = name;
    source.address = file;
    spec_.sources.push_back(source);
  }
  /// What a run of the spec says, sorted.
  std::vector<std::string> conflicts() const {
    std::vector<PipelineFile> files = files_of(spec_, model_);
    for (const PipelineSource& source : spec_.sources) {
      for (PipelineFile& file : files_of(spec_, source)) files.push_back(std::move(file));
    }
    std::vector<std::string> told;
    for (const FileConflict& conflict : find_conflicts(files)) told.push_back(conflict.what);
    std::ranges::sort(told);
    return told;
  }
  using Told = std::vector<std::string>;

  std::filesystem::path folder_;
  PipelineSpec spec_;
  RunOptions model_;
};

TEST_F(PipelineFilesTest, GivenFilesApart_WhenCompared_ThenNothingIsSaid) {
  spec_.file = make("p.yaml");
  spec_.json = at("all.jsonl");
  spec_.events = at("events.jsonl");
  spec_.control = at("socket");
  model_.model = make("manifest.json");
  // One file may be read twice.
  add_source("a", make("clip.mkv"));
  add_source("b", at("clip.mkv"));
  EXPECT_EQ(conflicts(), Told());
}

TEST_F(PipelineFilesTest, GivenAnOutputThatIsRead_WhenItHasAnotherName_ThenItIsSaidAllTheSame) {
  spec_.file = make("p.yaml");
  std::filesystem::create_symlink("p.yaml", at("link"));
  spec_.json = at("link");
  std::filesystem::create_hard_link(make("labels.onnx"), at("hard"));
  spec_.events = at("hard");
  model_.model_files = {at("labels.onnx")};
  EXPECT_EQ(conflicts(), (Told{"output '" + at("hard") + "' is a file of the model",
                               "output '" + at("link") + "' is the pipeline's own file"}));
}

TEST_F(PipelineFilesTest, GivenAVideo_WhenItIsAnotherSourceOrAnOutput_ThenItIsSaid) {
  add_source("a", "file://" + make("b.mp4"));
  add_source("b", make("clip.mkv"));
  EXPECT_EQ(conflicts(), (Told{"output '" + at("b.mp4") + "' is the source 'a'"}));
  spec_.sources.erase(spec_.sources.begin());
  spec_.json = at("sub/../b.mp4");
  std::filesystem::create_directory(at("sub"));
  EXPECT_EQ(conflicts(),
            (Told{"outputs '" + at("b.mp4") + "' and '" + at("sub/../b.mp4") + "' are one file"}));
}

TEST_F(PipelineFilesTest, GivenASocket_WhenAnotherFileIsThere_ThenItIsSaidAlsoBeforeThereIsOne) {
  spec_.control = at("s");
  spec_.json = at("s");
  add_source("a", make("clip.mkv"));
  EXPECT_EQ(conflicts(), (Told{"output '" + at("s") + "' is the control socket"}));
  spec_.json = at("all.jsonl");
  spec_.control = at("clip.mkv");
  EXPECT_EQ(conflicts(), (Told{"control '" + at("clip.mkv") + "' is the source 'a'"}));
}

TEST_F(PipelineFilesTest, GivenDevicesAndPipes_WhenGivenTwice_ThenNothingIsDestroyed) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  spec_.json = at("pipe");
  spec_.events = at("pipe");
  EXPECT_EQ(conflicts(), Told());
  spec_.json = "/dev/null";
  spec_.events = "/dev/null";
  EXPECT_EQ(conflicts(), Told());
}

TEST_F(PipelineFilesTest, GivenNamesThatAreTaken_WhenAVideoIsNumbered_ThenTheNextFreeOneIsIts) {
  add_source("a", "");
  make("a.2.mp4");
  std::filesystem::create_symlink("nowhere", at("a.3.mp4"));
  const auto video = claim_video(spec_, spec_.sources[0], 2);
  ASSERT_TRUE(video.has_value());
  EXPECT_EQ(video->path, at("a.4.mp4"));
  EXPECT_EQ(video->number, 4);
  EXPECT_EQ(video->taken, (std::vector<std::filesystem::path>{at("a.2.mp4"), at("a.3.mp4")}));
  EXPECT_EQ(std::filesystem::file_size(at("a.2.mp4")), 7u);
  EXPECT_TRUE(std::filesystem::exists(at("a.4.mp4"))) << "nobody else gets it";
  EXPECT_FALSE(std::filesystem::exists(at("nowhere")));
  EXPECT_EQ(claim_video(spec_, spec_.sources[0], 2).value().number, 5);
}

}  // namespace
}  // namespace penstock
