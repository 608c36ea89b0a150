// SPDX-License-Identifier: Apache-2.0
//
// What `penstock model` does to files and terminals when something is wrong: inputs stay, old
// models and pictures stay, what is lost is told, and text from files can't move the cursor.
#include <gmock/gmock.h>
#include <gst/gst.h>
#include <gtest/gtest.h>
#include <simdjson.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "penstock/model/testing/onnx_builder.h"
#include "penstock/model/testing/square_finders.h"
#include "tests/e2e/clips.h"
#include "tests/e2e/model_folder.h"
#include "tests/e2e/penstock_process.h"

namespace penstock::e2e {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

class ModelFilesTest : public ModelFolder {
 protected:
  void SetUp() override {
    ModelFolder::SetUp();
    photo_ = (folder_ / "photo.png").string();
    make_square_clip(photo_, 1, "videoconvert ! video/x-raw,format=RGB ! pngenc snapshot=false");
  }

  std::string photo_;
};

TEST_F(ModelFilesTest, GivenAnOutputThatIsAnInput_WhenTried_ThenItIsRefusedAndTheInputStays) {
  const std::string before = read_text(photo_);
  const std::string link = (folder_ / "link.png").string();
  fs::create_symlink(photo_, link);
  for (const std::string& out : {photo_, link}) {
    const Ended prepared = prepare({"--try", photo_, "--out", out});
    EXPECT_EQ(prepared.code, 64) << prepared.err;
    EXPECT_THAT(prepared.err, HasSubstr("the picture itself"));
  }
  const std::string model_link = (folder_ / "model.png").string();
  fs::create_hard_link(onnx_, model_link);
  EXPECT_EQ(prepare({"--try", photo_, "--out", model_link}).code, 64);
  const std::string labels_link = (folder_ / "labels.png").string();
  fs::create_symlink(labels_, labels_link);
  EXPECT_EQ(prepare({"--try", photo_, "--out", labels_link}).code, 64);
  ASSERT_EQ(prepare().code, 0);
  EXPECT_EQ(model({"try", "squares", photo_, "--out", photo_}).code, 64);
  const std::string manifest = (folder_ / "manifest.png").string();
  fs::create_symlink(models_ + "/squares/manifest.json", manifest);
  EXPECT_EQ(model({"try", "squares", photo_, "--out", manifest}).code, 64);
  EXPECT_EQ(read_text(photo_), before);
}

TEST_F(ModelFilesTest, GivenAModelOfThatName_WhenPreparedWithTry_ThenItIsRefusedBeforeTheTry) {
  ASSERT_EQ(prepare().code, 0);
  const std::string out = (folder_ / "out.png").string();
  const Ended again = prepare({"--try", photo_, "--out", out});
  EXPECT_EQ(again.code, 64) << again.err;
  EXPECT_THAT(again.err, HasSubstr("--replace"));
  EXPECT_FALSE(fs::exists(out));
  EXPECT_EQ(prepare({"--replace", "--try", photo_, "--out", out}).code, 0);
  EXPECT_TRUE(fs::exists(out));
}

TEST_F(ModelFilesTest, GivenAFolderThatIsNoModel_WhenPreparedToReplaceIt_ThenItStays) {
  const fs::path precious = fs::path(models_) / "papers";
  fs::create_directories(precious);
  std::ofstream(precious / "letter.txt") << "dear";
  const Ended refused = prepare({"--name", "papers", "--replace"});
  EXPECT_EQ(refused.code, 64) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("is no prepared model"));
  EXPECT_EQ(read_text(precious / "letter.txt"), "dear");
}

TEST_F(ModelFilesTest, GivenADiskThatFillsUp_WhenAPictureIsWritten_ThenTheOldOneStays) {
  ASSERT_EQ(prepare().code, 0);
  const std::string out = (folder_ / "out.png").string();
  std::ofstream(out) << "the old one";
  const Ended full = model({"try", "squares", photo_, "--out", out}, {.file_size_limit = 100});
  EXPECT_EQ(full.code, 74) << full.err;
  EXPECT_THAT(full.err, HasSubstr(out));
  EXPECT_EQ(read_text(out), "the old one");
  for (const auto& entry : fs::directory_iterator(folder_)) {
    EXPECT_NE(entry.path().extension(), ".part") << entry.path();
  }
  const std::string nowhere = (folder_ / "no/such/out.png").string();
  EXPECT_EQ(model({"try", "squares", photo_, "--out", nowhere}).code, 73);
}

TEST_F(ModelFilesTest, GivenADiskThatFillsUp_WhenReplaced_ThenTheOldModelStays) {
  ASSERT_EQ(prepare().code, 0);
  const std::string before = read_text(models_ + "/squares/manifest.json");
  const Ended full = prepare({"--replace"}, {.file_size_limit = 100});
  EXPECT_EQ(full.code, 74) << full.err;
  EXPECT_EQ(read_text(models_ + "/squares/manifest.json"), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(models_), {}), 1);
}

TEST_F(ModelFilesTest, GivenAFolderThatTakesNothing_WhenPrepared_ThenItIs73) {
  // A root whose capabilities can't be dropped writes into every folder.
  if (!can_bind_by_modes()) GTEST_SKIP() << "this process can't be bound by modes";
  fs::create_directory(models_);
  fs::permissions(models_, fs::perms::owner_read | fs::perms::owner_exec);
  const Ended refused = prepare({}, {.bound_by_modes = true});
  fs::permissions(models_, fs::perms::owner_all);
  EXPECT_EQ(refused.code, 73) << refused.err;
}

TEST_F(ModelFilesTest, GivenADeviceForAPicture_WhenTried_ThenItIsNotSaidToBeMissing) {
  ASSERT_EQ(prepare().code, 0);
  const Ended device = model({"try", "squares", "/dev/zero"});
  EXPECT_EQ(device.code, 64);
  EXPECT_THAT(device.err, HasSubstr("'/dev/zero': that is a device or pipe"));
  EXPECT_EQ(model({"try", "squares", "/dev/none-such"}).code, 66);
}

TEST_F(ModelFilesTest, GivenAStdoutThatTakesNothing_WhenACommandEnds_ThenItIs74) {
  ASSERT_EQ(prepare().code, 0);
  for (const char* output : {"/dev/full", "-"}) {
    const Surroundings surroundings{.output = output};
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"inspect", "squares", "--json"},
          {"list"},
          {"try", "squares", photo_}}) {
      const Ended lost = model(words, surroundings);
      EXPECT_EQ(lost.code, 74) << words[0] << " " << output;
      EXPECT_THAT(lost.err, HasSubstr("standard output"));
    }
    EXPECT_EQ(run_penstock({"--help"}, surroundings).code, 74) << output;
    // What is worse stays.
    EXPECT_EQ(model({"inspect", "nobody"}, surroundings).code, 66);
  }
}

TEST_F(ModelFilesTest, GivenNamesWithControlCharacters_WhenTold_ThenTheyAreEscaped) {
  std::ofstream(labels_) << "r\x1b[31med\ngreen\nblu\xc2\x9b" << "2Je\n";
  const std::string odd = (folder_ / "odd.onnx").string();
  model_testing::OnnxBuilder builder;
  builder.input("x\x1b[2J\nfamily: yolov8", DataType::kFloat32, {1, 3, 64, 64})
      .output("y", DataType::kFloat32, {1, 3, 64, 64})
      .metadata("key\x7f", "nobody")
      .node("Relu", {"x\x1b[2J\nfamily: yolov8"}, {"y"});
  std::ofstream(odd, std::ios::binary) << builder.build();
  const Ended inspected = model({"inspect", odd});
  EXPECT_THAT(inspected.out, AllOf(HasSubstr("x\\x1b[2J\\x0afamily"), HasSubstr("key\\x7f"),
                                   Not(HasSubstr("\x1b")), Not(HasSubstr("\x7f"))));
  const Ended tried = prepare({"--try", photo_, "--licence", "MIT\x1b[1m"});
  ASSERT_EQ(tried.code, 0) << tried.err;
  EXPECT_THAT(tried.out,
              AllOf(HasSubstr("r\\x1b[31med"), HasSubstr("MIT\\x1b[1m"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(model({"list"}).out, AllOf(HasSubstr("MIT\\x1b"), Not(HasSubstr("\x1b"))));
  const Ended named = prepare({"--name", "a\nb"});
  EXPECT_EQ(named.code, 64);
  EXPECT_THAT(named.err, HasSubstr("a\\x0ab"));
  const Ended missing = model({"inspect", "a\x1b]0;b"});
  EXPECT_THAT(missing.err, AllOf(HasSubstr("a\\x1b]0;b"), Not(HasSubstr("\x1b"))));
}

TEST_F(ModelFilesTest, GivenAWrongName_WhenAskedFor_ThenTheNamesThereAreAreTold) {
  ASSERT_EQ(prepare({"--licence", "MIT"}).code, 0);
  const Ended list = model({"list"});
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_THAT(list.out, AllOf(HasSubstr("squares"), HasSubstr("detection"), HasSubstr("yolov8"),
                              HasSubstr("MIT (given by who prepared the model)"),
                              HasSubstr("movenet-lightning")));
  // What is prepared is not told as something to be fetched, and reasons are for `inspect`.
  ASSERT_EQ(prepare({"--name", "movenet-lightning", "--licence", "MIT"}).code, 0);
  const std::filesystem::path manifest = models_ + "/movenet-lightning/manifest.json";
  std::string text = read_text(manifest);
  const std::string word = "given by who prepared the model";
  text.replace(text.find(word), word.size(), "medium: its author says so");
  std::ofstream(manifest) << text;
  const std::string both = model({"list"}).out;
  EXPECT_THAT(both, AllOf(HasSubstr(" MIT (medium)\n"), HasSubstr("beside these"),
                          Not(HasSubstr("author says"))));
  EXPECT_EQ(both.find("movenet-lightning"), both.rfind("movenet-lightning")) << both;
  EXPECT_THAT(model({"inspect", "movenet-lightning"}).out, HasSubstr("author says so"));
  const Ended wrong = model({"inspect", "triangles"});
  EXPECT_EQ(wrong.code, 66);
  EXPECT_THAT(wrong.err,
              AllOf(HasSubstr("prepared: movenet-lightning, squares"),
                    HasSubstr("knows: blazeface-back, "), Not(HasSubstr("fetch triangles"))));
  EXPECT_THAT(model({"inspect", "nanodet"}).err, HasSubstr("penstock model fetch nanodet"));
  const Ended bare = run_penstock({"run", "--model", onnx_, "--source", "no.mp4"});
  EXPECT_EQ(bare.code, 64);
  EXPECT_THAT(bare.err, HasSubstr("penstock model prepare " + onnx_));
  const Ended folder = model({"try", "squares", folder_.string()});
  EXPECT_EQ(folder.code, 64);
  EXPECT_THAT(folder.err, HasSubstr("folder"));
}

TEST_F(ModelFilesTest, GivenModels_WhenListedAsJson_ThenWholeAndBrokenOnesAreThere) {
  ASSERT_EQ(prepare({"--licence", "MIT"}).code, 0);
  ASSERT_EQ(prepare({"--name", "broken"}).code, 0);
  std::ofstream(models_ + "/broken/manifest.json") << "{";
  const Ended list = model({"list", "--json"});
  EXPECT_EQ(list.code, 0) << list.err;
  simdjson::dom::parser parser;
  const simdjson::padded_string text(list.out);
  simdjson::dom::element root;
  ASSERT_EQ(parser.parse(text).get(root), simdjson::SUCCESS) << list.out;
  EXPECT_EQ(root["folder"].get_string().value(), models_);
  EXPECT_EQ(root.at_pointer("/prepared/0/name").get_string().value(), "broken");
  EXPECT_THAT(std::string(root.at_pointer("/prepared/0/broken").get_string().value()),
              HasSubstr("manifest"));
  EXPECT_EQ(root.at_pointer("/prepared/1/name").get_string().value(), "squares");
  EXPECT_EQ(root.at_pointer("/prepared/1/family").get_string().value(), "yolov8");
  EXPECT_EQ(root.at_pointer("/recipes/0").get_string().value(), "blazeface-back");
}

TEST_F(ModelFilesTest, GivenAModel_WhenRemoved_ThenItIsGoneAndNothingElse) {
  ASSERT_EQ(prepare({}).code, 0);
  ASSERT_EQ(prepare({"--name", "other"}).code, 0);
  for (const char* wrong : {"triangles", "../models", ".", "", "other/."}) {
    const Ended refused = model({"remove", wrong});
    EXPECT_THAT(refused.code, AnyOf(64, 66)) << wrong << refused.err;
  }
  std::ofstream(models_ + "/squares/manifest.json") << "{";  // Broken ones can be removed, too.
  const Ended removed = model({"remove", "squares"});
  EXPECT_EQ(removed.code, 0) << removed.err;
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(models_)) {
    left.push_back(entry.path().filename());
  }
  EXPECT_THAT(left, ElementsAre("other"));
  EXPECT_EQ(model({"remove", "squares"}).code, 66);
}

TEST_F(ModelFilesTest, GivenALinkToAModel_WhenRemoved_ThenTheModelStays) {
  ASSERT_EQ(prepare({"--name", "other"}).code, 0);
  std::filesystem::create_directory_symlink("other", models_ + "/link");
  EXPECT_EQ(model({"remove", "link"}).code, 0);
  EXPECT_FALSE(std::filesystem::is_symlink(models_ + "/link"));
  EXPECT_EQ(model({"inspect", "other"}).code, 0);
}

TEST_F(ModelFilesTest, GivenLabelsThatAreNoFile_WhenPrepared_ThenTheyAreRefusedAtOnce) {
  const std::string fifo = (folder_ / "fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& labels : {fifo, std::string("/dev/zero"), folder_.string()}) {
    const Ended refused = model({"prepare", onnx_, "--labels", labels});
    EXPECT_EQ(refused.code, 64) << labels << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("--labels is a file")) << labels;
  }
}

TEST_F(ModelFilesTest, GivenLabelsOfAnotherSystemsEditor_WhenPrepared_ThenNamesAreOnlyNames) {
  const std::string labels = (folder_ / "labels.txt").string();
  std::ofstream(labels, std::ios::binary) << "\xEF\xBB\xBFred\r\ngreen\r\nblue\r\n\r\n";
  ASSERT_EQ(model({"prepare", onnx_, "--labels", labels}).code, 0);
  EXPECT_THAT(model({"inspect", "squares"}).out, HasSubstr(" red, green, blue\n"));
}

TEST_F(ModelFilesTest, GivenANameThatListWouldNotShow_WhenPrepared_ThenItIsRefused) {
  const Ended refused = prepare({"--name", ".hidden"});
  EXPECT_EQ(refused.code, 64);
  EXPECT_THAT(refused.err, HasSubstr("'.hidden' is no name for a model"));
}

TEST_F(ModelFilesTest, GivenAScale_WhenItIsAFraction_ThenItIsDivided) {
  const Ended told = prepare({"--scale", "1/255"});
  ASSERT_EQ(told.code, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("level x 0.00392157"));
  for (const char* wrong : {"1/0", "1/", "/2", "a", "1/2/3", "nan", "1 / 2", "1e99"}) {
    const Ended refused = prepare({"--replace", "--scale", wrong});
    EXPECT_EQ(refused.code, 64) << wrong << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("--scale")) << wrong;
  }
}

}  // namespace
}  // namespace penstock::e2e
