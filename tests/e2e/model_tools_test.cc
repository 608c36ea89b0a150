// SPDX-License-Identifier: Apache-2.0
//
// `penstock model inspect`, `try` and `bench`, and `prepare --try`, as a user runs them.
#include <gmock/gmock.h>
#include <gst/gst.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "penstock/model/manifest.h"
#include "penstock/model/testing/onnx_builder.h"
#include "penstock/model/testing/square_finders.h"
#include "penstock/model/testing/test_models.h"
#include "tests/e2e/clips.h"
#include "tests/e2e/model_folder.h"
#include "tests/e2e/penstock_process.h"

namespace penstock::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ModelToolsTest : public ModelFolder {
 protected:
  /// The first picture of the square clip, without its last `less` rows and columns.
  std::string photo(const std::string& name, int less) const {
    const auto path = folder_ / name;
    make_square_clip(
        path, 1,
        "videoconvert ! video/x-raw,format=RGB ! videocrop right=" + std::to_string(less) +
            " bottom=" + std::to_string(less) + " ! pngenc snapshot=false");
    return path.string();
  }
};

TEST_F(ModelToolsTest, GivenAPhoto_WhenPreparedWithTry_ThenTheSquareIsFoundAndDrawn) {
  const std::string out = (folder_ / "out.png").string();
  const Ended tried = prepare({"--try", photo("photo.png", 0), "--out", out});
  ASSERT_EQ(tried.code, 0) << tried.err;
  EXPECT_THAT(tried.out, AllOf(HasSubstr("objects: 1"), HasSubstr("red"), HasSubstr("at 16,64"),
                               HasSubstr("wrote " + out)));
  EXPECT_TRUE(std::filesystem::exists(models_ + "/squares/manifest.json"));
  const Decoded drawn = decode_file(out);
  ASSERT_EQ(drawn.error, "");
  EXPECT_EQ(drawn.width, kSide);
  EXPECT_EQ(drawn.height, kSide);
  // Something of another brightness than the square's and the ground's lies along the box's edge.
  const std::string row = drawn.last_frame.substr(
      std::size_t((kSquareTop + kSquare / 2) * kSide + square_left(0) - 3), 6);
  EXPECT_TRUE(std::ranges::any_of(row, [](char c) {
    const int level = static_cast<unsigned char>(c);
    return level < 40 || (level > 85 && level < 105) || level > 150;
  }));
}

TEST_F(ModelToolsTest, GivenAPictureOfOddSize_WhenTried_ThenItIsAnalysedAndKeepsItsSize) {
  ASSERT_EQ(prepare().code, 0);
  const std::string out = (folder_ / "out.jpg").string();
  const Ended tried = model({"try", "squares", photo("odd.png", 1), "--out", out});
  ASSERT_EQ(tried.code, 0) << tried.err;
  EXPECT_THAT(tried.out, AllOf(HasSubstr("191x191"), HasSubstr("objects: 1"), HasSubstr("red")));
  const Decoded drawn = decode_file(out);
  EXPECT_EQ(drawn.error, "");
  EXPECT_EQ(drawn.width, 191);
  EXPECT_EQ(drawn.height, 191);
}

TEST_F(ModelToolsTest, GivenAPictureThatCantBeRead_WhenPreparedWithTry_ThenNothingIsKept) {
  const std::string broken = (folder_ / "broken.jpg").string();
  std::ofstream(broken) << "no picture";
  const Ended bad = prepare({"--try", broken});
  EXPECT_EQ(bad.code, 65) << bad.err;
  EXPECT_THAT(bad.err, HasSubstr("broken.jpg"));
  EXPECT_EQ(prepare({"--try", "/no/such.jpg"}).code, 66);
  const Ended named = prepare({"--try", broken, "--out", "/tmp/picture.bmp"});
  EXPECT_EQ(named.code, 64) << named.err;
  EXPECT_EQ(prepare({"--out", "x.png"}).code, 64);
  EXPECT_FALSE(std::filesystem::exists(models_ + "/squares"));
}

TEST_F(ModelToolsTest, GivenAPreparedModel_WhenInspected_ThenItsManifestIsTold) {
  ASSERT_EQ(prepare({"--licence", "MIT"}).code, 0);
  const Ended text = model({"inspect", "squares"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("yolov8"), HasSubstr("detection"), HasSubstr("MIT"),
                              HasSubstr("label_names    red, green, blue\n")));
  const Ended json = model({"inspect", "squares", "--json"});
  ASSERT_EQ(json.code, 0) << json.err;
  simdjson::dom::parser parser;
  const auto root = parser.parse(json.out);
  EXPECT_EQ(std::string_view(root["family"]), "yolov8");
  EXPECT_EQ(std::int64_t(root["labels"]), 3);
  EXPECT_EQ(std::string_view(root["label_names"].at(2)), "blue");
  EXPECT_EQ(root["label_names"].get_array().size(), 3u);
  EXPECT_DOUBLE_EQ(double(root["threshold"]), 0.25);
  EXPECT_DOUBLE_EQ(double(root["iou_threshold"]), 0.45);
  EXPECT_TRUE(bool(root["hashes_match"]));
  // A hash that is another ends it.
  std::ofstream(models_ + "/squares/model.onnx", std::ios::app) << "x";
  const Ended changed = model({"inspect", "squares"});
  EXPECT_EQ(changed.code, 65);
  EXPECT_THAT(changed.err, HasSubstr("sha256"));
}

TEST_F(ModelToolsTest, GivenABareFile_WhenInspected_ThenWhatPrepareWouldDoIsTold) {
  const Ended known = model({"inspect", onnx_, "--json"});
  ASSERT_EQ(known.code, 0) << known.err;
  simdjson::dom::parser parser;
  const auto root = parser.parse(known.out);
  EXPECT_EQ(std::int64_t(root["opset"]), 13);
  EXPECT_EQ(std::string_view(root["inputs"].at(0)).substr(0, 5), "input");
  const std::string odd = (folder_ / "odd.onnx").string();
  model_testing::OnnxBuilder builder;
  builder.input("x", DataType::kFloat32, {1, 3, 64, 64})
      .output("y", DataType::kFloat32, {1, 3, 64, 64})
      .metadata("author", "nobody")
      .node("Relu", {"x"}, {"y"});
  std::ofstream(odd, std::ios::binary) << builder.build();
  const Ended unknown = model({"inspect", odd});
  ASSERT_EQ(unknown.code, 0) << unknown.err;
  EXPECT_THAT(unknown.out,
              AllOf(HasSubstr("from Relu"), HasSubstr("author"), HasSubstr("--family raw")));
  EXPECT_EQ(model({"inspect", "/no/such.onnx"}).code, 66);
}

TEST_F(ModelToolsTest, GivenAProviderLibraryThatIsNone_WhenAToolOpensAModel_ThenItIsNamed) {
  const std::string none = "/no/such/libprovider.so";
  const auto expect_named = [&](const Ended& ended) {
    EXPECT_EQ(ended.code, 66) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("provider library '" + none + "'"));
  };
  expect_named(prepare({"--provider-library", none}));
  EXPECT_FALSE(std::filesystem::exists(models_ + "/squares"));
  ASSERT_EQ(prepare().code, 0);
  expect_named(model({"try", "squares", photo("photo.png", 0), "--provider-library", none}));
  expect_named(model({"bench", "squares", "--provider-library", none}));
  expect_named(model({"compare", "squares", "--reference", folder_.string(), "--tolerance", "1",
                      "--provider-library", none}));
}

TEST_F(ModelToolsTest, GivenADynamicBatch_WhenBenched_ThenEveryPolicyAndBatchIsMeasured) {
  ASSERT_EQ(prepare().code, 0);
  const Ended json =
      model({"bench", "squares", "--seconds", "0.1", "--width", "64", "--height", "48", "--json"});
  ASSERT_EQ(json.code, 0) << json.err;
  simdjson::dom::parser parser;
  const auto root = parser.parse(json.out);
  std::vector<std::string> runs;
  for (const auto run : root["runs"].get_array()) {
    runs.push_back(std::string(std::string_view(run["policy"])) + " " +
                   std::to_string(std::int64_t(run["batch"])));
    EXPECT_GE(std::int64_t(run["frames"]), 1);
    EXPECT_GT(double(run["frames_per_second"]), 0);
    // A tail is told only where runs enough lie in it.
    for (const auto& [key, least] : {std::pair("p95_ms", 40), std::pair("p99_ms", 200)}) {
      const auto tail = run[key];
      EXPECT_EQ(tail.error() == simdjson::SUCCESS, std::int64_t(run["frames"]) >= least) << key;
      if (tail.error() != simdjson::SUCCESS) continue;
      EXPECT_GE(double(tail), double(run["median_ms"]));
    }
    EXPECT_GT(double(run["median_ms"]), 0);
  }
  EXPECT_THAT(runs, testing::ElementsAre("latency 1", "latency 4", "latency 8", "throughput 1",
                                         "throughput 4", "throughput 8"));
  const Ended table = model({"bench", "squares", "--seconds", "0.1", "--width", "64", "--height",
                             "48", "--policy", "latency", "--batch", "2"});
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("p95 ms"), HasSubstr("latency        2")));
  EXPECT_EQ(model({"bench", "squares", "--width", "63"}).code, 64);
}

TEST_F(ModelToolsTest, GivenAConstantBeforeThePicture_WhenBenched_ThenThePicturesBatchesAre) {
  model_testing::TestModel scaled;
  scaled.name = "scaled";
  scaled.task = scaled.family = "raw";
  scaled.inputs = {
      {"factor", DataType::kFloat32, TensorLayout::kAny, {Dimension::fixed(1)}},
      {"images",
       DataType::kFloat32,
       TensorLayout::kNchw,
       {{1, 4, "N"}, Dimension::fixed(3), Dimension::fixed(32), Dimension::fixed(32)}}};
  scaled.outputs = {
      {"means", DataType::kFloat32, TensorLayout::kAny, {{1, 4, "N"}, Dimension::fixed(3)}}};
  scaled.preprocess.input_name = "images";
  scaled.preprocess.width = scaled.preprocess.height = 32;
  scaled.postprocess = " ";
  scaled.onnx =
      model_testing::OnnxBuilder()
          .input("factor", DataType::kFloat32, {1})
          .input("images", DataType::kFloat32, {"N", 3, 32, 32})
          .output("means", DataType::kFloat32, {"N", 3})
          .node("ReduceMean", {"images"}, {"mean"},
                {{"axes", std::vector<std::int64_t>{2, 3}}, {"keepdims", std::int64_t{0}}})
          .node("Mul", {"mean", "factor"}, {"means"})
          .build();
  const auto path = model_testing::write_model_folder(scaled, folder_ / "models/scaled");
  std::string json = model_testing::manifest_json(
      scaled, sha256_file(folder_ / "models/scaled/model.onnx").value());
  json.insert(json.rfind("\"postprocess\""),
              R"("constants": [{"input": "factor", "values": [2]}], )");
  std::ofstream(path) << json;
  const Ended ended = model({"bench", "scaled", "--seconds", "0.1", "--width", "32", "--height",
                             "32", "--policy", "latency", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  simdjson::dom::parser parser;
  std::vector<std::int64_t> batches;
  for (const auto run : parser.parse(ended.out)["runs"].get_array()) {
    batches.push_back(run["batch"]);
  }
  EXPECT_THAT(batches, testing::ElementsAre(1, 4));
}

}  // namespace
}  // namespace penstock::e2e
