// SPDX-License-Identifier: Apache-2.0
//
// What a bad model, output or command line gets: one clear message, the documented exit code
// (docs/run.md), no hang.
#include "tests/e2e/bad_input.h"

#include <sys/stat.h>

#include "penstock/base/str_format.h"
#include "penstock/model/testing/test_models.h"

namespace penstock::e2e {
namespace {

// ---- the model

class BadModel : public BadInput {
 protected:
  Ended run_model(const std::string& model) {
    return run_penstock({"run", "--source", square_mp4(folder_, 3).string(), "--model", model,
                         "--models", (folder_ / "models").string(), "--out", "json=" + json_});
  }
  std::string with_artefact(const std::string& onnx) {
    model_testing::TestModel model = model_testing::make_square_finder_nanodet(kSide);
    model.onnx = onnx;
    return model_testing::write_model_folder(model, folder_ / "bad").string();
  }
};

TEST_F(BadModel, GivenAnUnknownName_WhenRun_ThenNoInputAndTheWayToGetIt) {
  const Ended ended = run_model("nosuchmodel");
  EXPECT_EQ(ended.code, 66);
  expect_one_message(ended, "penstock model fetch");
}

TEST_F(BadModel, GivenATruncatedModelWithTheRightHash_WhenRun_ThenDataError) {
  const std::string whole = model_testing::make_square_finder_nanodet(kSide).onnx;
  // Within tensors, between nodes, and one byte short.
  for (const std::size_t length :
       {whole.size() / 10, whole.size() / 2, whole.size() * 9 / 10, whole.size() - 1}) {
    const Ended ended = run_model(with_artefact(whole.substr(0, length)));
    EXPECT_EQ(ended.code, 65) << length << " of " << whole.size() << ": " << ended.err;
    expect_one_message(ended, "model");
  }
}

TEST_F(BadModel, GivenAFileThatIsNoModel_WhenRun_ThenDataError) {
  const Ended ended = run_model(with_artefact("This is not ONNX."));
  EXPECT_EQ(ended.code, 65) << ended.err;
  expect_one_message(ended, "model");
}

TEST_F(BadModel, GivenAnEmptyModel_WhenRun_ThenDataError) {
  const Ended ended = run_model(with_artefact(""));
  EXPECT_EQ(ended.code, 65) << ended.err;
  expect_one_message(ended, "model");
}

TEST_F(BadModel, GivenAWrongHash_WhenRun_ThenDataError) {
  const fs::path manifest = square_model(folder_ / "tampered");
  std::ofstream(manifest.parent_path() / "model.onnx", std::ios::binary | std::ios::app) << "x";
  const Ended ended = run_model(manifest.string());
  EXPECT_EQ(ended.code, 65) << ended.err;
  expect_one_message(ended, "model.onnx");
}

TEST_F(BadModel, GivenNoEngineLibrary_WhenRun_ThenNoInput) {
  const Ended ended =
      run(square_mp4(folder_, 3).string(), {"--engine-library", "/no/such/libonnxruntime.so"});
  EXPECT_EQ(ended.code, 66) << ended.err;
  expect_one_message(ended, "/no/such/libonnxruntime.so");
}

TEST_F(BadModel, GivenAnEngineLibraryThatIsNone_WhenRun_ThenUnavailable) {
  const fs::path library = folder_ / "libonnxruntime.so";
  write_file(library, "This is no library.");
  const Ended ended = run(square_mp4(folder_, 3).string(), {"--engine-library", library.string()});
  EXPECT_EQ(ended.code, 69) << ended.err;
  expect_one_message(ended, library.string());
}

TEST_F(BadModel, GivenAnEngineLibraryThatIsNotUtf8_WhenRun_ThenItIsNotReplacedByTheDefault) {
  const Ended ended =
      run(square_mp4(folder_, 3).string(), {"--engine-library", "/no/such/\xff.so"});
  EXPECT_EQ(ended.code, 66) << ended.err;
  expect_one_message(ended, "/no/such/");
}

TEST_F(BadModel, GivenNoProviderLibrary_WhenRun_ThenNoInput) {
  const Ended ended =
      run(square_mp4(folder_, 3).string(), {"--provider-library", "/no/such/libprovider.so"});
  EXPECT_EQ(ended.code, 66) << ended.err;
  expect_one_message(ended, "provider library '/no/such/libprovider.so'");
}

// ---- the outputs

TEST_F(BadInput, GivenAVideoThatIsAPipe_WhenRun_ThenUsageErrorAtOnce) {
  const std::string clip = square_mp4(folder_, 3).string();
  const std::string fifo = (folder_ / "video.fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const Ended ended = run(clip, {"--out", "video=" + fifo});
  EXPECT_EQ(ended.code, 64) << ended.err;
  expect_one_message(ended, "is a pipe");
  EXPECT_FALSE(fs::exists(json_)) << "created before the check";
  // The test's stdout is a pipe, too.
  EXPECT_EQ(run(clip, {"--out", "video=/dev/stdout"}).code, 64);
}

TEST_F(BadInput, GivenJsonOnStdout_WhenRunIntoAFile_ThenItHoldsTheLinesAndTheTableIsOnStderr) {
  const std::string clip = square_mp4(folder_, 12).string();
  const fs::path out = folder_ / "stdout.jsonl";
  for (const char* name : {"/dev/stdout", "stdout.jsonl"}) {
    const Ended ended = run_penstock(
        {"run", "--source", clip, "--model", model_, "--out", "json=" + (folder_ / name).string()},
        {.out_file = out});
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(read_json_lines(out).size(), 12u) << read_text(out);
    EXPECT_NE(ended.err.find("frames      12"), std::string::npos) << ended.err;
  }
}

TEST_F(BadInput, GivenTooFewDescriptors_WhenRun_ThenAMessageAndNoCrash) {
  const std::string clip = square_mp4(folder_, 3).string();
  for (int limit = 6; limit <= 12; ++limit) {
    const Ended ended = run(clip, {}, {.open_files_limit = limit});
    EXPECT_EQ(ended.code, 71) << limit << ": " << ended.err;
    expect_one_message(ended, "ulimit -n");
  }
}

TEST_F(BadInput, GivenAnOutputThatCantBeCreated_WhenRun_ThenCannotCreate) {
  const std::string clip = square_mp4(folder_, 3).string();
  for (const char* kind : {"video", "json", "report"}) {
    const Ended ended = run_penstock({"run", "--source", clip, "--model", model_, "--out",
                                      std::string(kind) + "=/no/such/folder/out"});
    EXPECT_EQ(ended.code, 73) << kind << ended.err;
    expect_one_message(ended, "/no/such/folder/out");
  }
}

TEST_F(BadInput, GivenAFullDisk_WhenRun_ThenIoErrorOnce) {
  const std::string clip = square_mp4(folder_, 30).string();
  for (const char* kind : {"video", "json", "report"}) {
    const Ended ended = run_penstock(
        {"run", "--source", clip, "--model", model_, "--out", std::string(kind) + "=/dev/full"});
    EXPECT_EQ(ended.code, 74) << kind << ended.err;
    expect_one_message(ended, "/dev/full");
  }
}

TEST_F(BadInput, GivenAVideoThatOutgrowsItsRoom_WhenRun_ThenIoErrorOnceAndTheJsonIsComplete) {
  const fs::path clip = folder_ / "snow.mkv";
  // Snow: an MP4 of some kilobytes a frame, beside a JSON line of a hundred bytes.
  make_clip(clip,
            "videotestsrc pattern=snow num-buffers=300 ! "
            "video/x-raw,format=I420,width=192,height=192,framerate=25/1 ! openh264enc ! "
            "h264parse ! matroskamux");
  const std::string video = (folder_ / "out.mp4").string();
  const Ended ended =
      run(clip.string(), {"--out", "video=" + video}, {.file_size_limit = 100 << 10});
  EXPECT_EQ(ended.code, 74) << ended.err;
  expect_one_message(ended, "out.mp4");
  const auto lines = read_json_lines(json_);
  EXPECT_GE(lines.size(), 5u);
  EXPECT_LT(lines.size(), 300u);
  for (std::size_t n = 0; n < lines.size(); ++n) EXPECT_EQ(lines[n].frame, (long long)n);
  EXPECT_NE(ended.out.find(str_format("frames      {}\n", lines.size())), std::string::npos)
      << ended.out;
}

class SameFile : public BadInput {
 protected:
  void SetUp() override {
    BadInput::SetUp();
    clip_ = square_mp4(folder_, 3);
    whole_ = read_text(clip_);
  }
  void expect_refused(const fs::path& output, const std::string& part,
                      const std::vector<std::string>& more = {}) {
    for (const char* kind : {"video", "report"}) {
      std::vector<std::string> arguments{"--out", std::string(kind) + "=" + output.string()};
      arguments.insert(arguments.end(), more.begin(), more.end());
      const Ended ended = run(clip_.string(), arguments);
      EXPECT_EQ(ended.code, 64) << kind << ended.err;
      expect_one_message(ended, part);
      EXPECT_EQ(read_text(clip_), whole_);
    }
  }
  fs::path clip_;
  std::string whole_;
};

TEST_F(SameFile, GivenTheSourceAsOutput_WhenRun_ThenUsageErrorAndTheSourceIsKept) {
  expect_refused(clip_, "is the source itself");
  fs::create_hard_link(clip_, folder_ / "hard.mp4");
  expect_refused(folder_ / "hard.mp4", "is the source itself");
  fs::create_symlink(clip_, folder_ / "soft.mp4");
  expect_refused(folder_ / "soft.mp4", "is the source itself");
  EXPECT_FALSE(fs::exists(json_)) << "created before the check";
}

TEST_F(SameFile, GivenAFileOfTheModelAsOutput_WhenRun_ThenUsageErrorAndItIsKept) {
  const fs::path onnx = fs::path(model_).parent_path() / "model.onnx";
  const std::string manifest = read_text(model_), network = read_text(onnx);
  expect_refused(model_, "is the model's manifest");
  expect_refused(onnx, "is a file of the model");
  fs::create_symlink(onnx, folder_ / "soft.onnx");
  expect_refused(folder_ / "soft.onnx", "is a file of the model");
  EXPECT_EQ(read_text(model_), manifest);
  EXPECT_EQ(read_text(onnx), network);
}

TEST_F(SameFile, GivenOneFileForTwoOutputs_WhenItDoesNotExistYet_ThenUsageError) {
  expect_refused(json_, "are one file");
  expect_refused(folder_ / "." / "here" / ".." / "out.jsonl", "are one file");
  fs::create_symlink("out.jsonl", folder_ / "soft");
  expect_refused(folder_ / "soft", "are one file");
  fs::create_directory_symlink(folder_, folder_ / "again");
  expect_refused(folder_ / "again" / "out.jsonl", "are one file");
  EXPECT_FALSE(fs::exists(json_)) << "created before the check";
}

TEST_F(SameFile, GivenOneFileForTwoOutputs_WhenItExists_ThenUsageErrorAndItIsKept) {
  write_file(json_, "precious");
  expect_refused(json_, "are one file");
  fs::create_hard_link(json_, folder_ / "hard");
  expect_refused(folder_ / "hard", "are one file");
  fs::create_symlink(json_, folder_ / "soft");
  expect_refused(folder_ / "soft", "are one file");
  EXPECT_EQ(read_text(json_), "precious");
}

TEST_F(SameFile, GivenADeviceForTwoOutputs_WhenRun_ThenItIsFine) {
  const Ended ended = run_penstock({"run", "--source", clip_.string(), "--model", model_, "--out",
                                    "json=/dev/null", "--out", "report=/dev/null"});
  EXPECT_EQ(ended.code, 0) << ended.err;
}

// ---- usage

TEST_F(BadInput, GivenANumberThatIsNone_WhenRun_ThenUsageError) {
  const std::string clip = square_mp4(folder_, 3).string();
  for (const char* flag : {"--threshold", "--iou-threshold"}) {
    for (const char* value : {"nan", "-nan", "inf", "1.01", "-0.1", "0.5x", ""}) {
      const Ended ended = run(clip, {flag, value});
      EXPECT_EQ(ended.code, 64) << flag << " " << value << ": " << ended.err;
    }
  }
  const Ended ended = run_penstock({"model", "bench", model_, "--seconds", "nan"});
  EXPECT_EQ(ended.code, 64) << ended.err;
}

TEST(Usage, GivenWrongCommandLines_WhenRun_ThenUsageError) {
  const std::vector<std::vector<std::string>> lines{
      {},
      {"nonsense"},
      {"run"},
      {"run", "--source", "a.mp4"},
      {"run", "--source", "a.mp4", "--model", "m", "--no-such-flag"},
      {"run", "--source", "a.mp4", "--model", "m", "--policy", "fastest"},
      {"run", "--source", "a.mp4", "--model", "m", "--threshold", "2"},
      {"run", "--source", "a.mp4", "--model", "m", "--out", "picture=a.png"},
      {"run", "--source", "a.mp4", "--model", "m", "--out", "json="},
      {"run", "--source", "a.mp4", "--model", "m", "--out", "json=a", "--out", "json=b"},
      {"run", "--source", "a.mp4", "--model", "m", "--device", "toaster"},
      {"model"},
      {"model", "fetch"},
  };
  for (const auto& line : lines) {
    std::string text;
    for (const std::string& word : line) text += word + " ";
    const Ended ended = run_penstock(line);
    EXPECT_EQ(ended.code, 64) << text << ended.err;
    EXPECT_TRUE(ended.err.starts_with("penstock: ")) << text << ended.err;
  }
}

}  // namespace
}  // namespace penstock::e2e
