// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "penstock/base/str_format.h"
#include "penstock/model/manifest_parser.h"
#include "penstock/model/testing/temporary_folder.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using model_testing::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;

std::string golden(const std::string& name) {
  std::ifstream file(fs::path(PENSTOCK_TESTDATA) / name);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == std::string::npos) {
    ADD_FAILURE() << "the golden file has no " << from;
    return text;
  }
  return text.replace(at, from.size(), to);
}

/// A folder with the golden manifest and the files whose hashes it names.
class GoldenFolder {
 public:
  explicit GoldenFolder(const std::string& manifest = golden("schema2.json")) {
    folder_.write("model.onnx", "golden model\n");
    folder_.write("weights/a.bin", "golden weights\n");
    folder_.write("manifest.json", manifest);
  }
  const TemporaryFolder& operator*() const { return folder_; }
  const fs::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

struct Breakage {
  const char* from;
  const char* to;
  ErrorKind kind;
  const char* message;
};

TEST(M01, GivenGoldenSchema2_WhenLoaded_ThenEveryFieldIsRead) {
  const GoldenFolder folder;
  const auto manifest = load_manifest(folder.path());
  ASSERT_TRUE(manifest) << manifest.error().message();
  EXPECT_EQ(manifest->schema, 2);
  EXPECT_EQ(manifest->name, "golden");
  EXPECT_EQ(manifest->folder, folder.path());
  EXPECT_EQ(manifest->artefact, folder.path() / "model.onnx");
  ASSERT_EQ(manifest->data.size(), 1u);
  EXPECT_EQ(manifest->data[0].path, "weights/a.bin");
  EXPECT_EQ(manifest->data[0].sha256,
            "1c9b3ccfcb28591a67f4dfbf53ed034f5be33821be782232e7ba79a52b021bae");
  EXPECT_EQ(manifest->engine, "onnxruntime");
  EXPECT_EQ(manifest->provider, "CPUExecutionProvider");
  EXPECT_EQ(manifest->task, "detection");
  EXPECT_EQ(manifest->family, "nanodet");
  EXPECT_THAT(manifest->labels, ElementsAre("person", "Fußgänger"));
  EXPECT_EQ(manifest->threshold, 0.35f);
  EXPECT_EQ(manifest->iou_threshold, 0.6f);
  EXPECT_EQ(manifest->licence, "Apache-2.0 (high)");
  EXPECT_THAT(manifest->weaknesses, ElementsAre("calls horses cows"));

  ASSERT_EQ(manifest->inputs.size(), 2u);
  const TensorSpec& images = manifest->inputs[0];
  EXPECT_EQ(images.name, "images");
  EXPECT_EQ(images.type, DataType::kFloat32);
  EXPECT_EQ(images.layout, TensorLayout::kNhwc);
  ASSERT_EQ(images.dims.size(), 4u);
  EXPECT_EQ(images.dims[0].symbol, "N");
  EXPECT_EQ(images.dims[0].minimum, 1);
  EXPECT_FALSE(images.dims[0].is_fixed());
  EXPECT_EQ(images.dims[1].minimum, 320);
  EXPECT_TRUE(images.dims[1].is_fixed());
  EXPECT_EQ(manifest->inputs[1].type, DataType::kInt64);
  EXPECT_EQ(manifest->inputs[1].layout, TensorLayout::kAny);
  EXPECT_EQ(manifest->inputs[1].dims[0].maximum, 8);
  ASSERT_EQ(manifest->outputs.size(), 1u);
  EXPECT_EQ(manifest->outputs[0].type, DataType::kFloat16);
  EXPECT_EQ(manifest->outputs[0].dims[0].maximum, 300);
  EXPECT_EQ(manifest->outputs[0].dims[0].symbol, "");

  const PreprocessSpec& p = manifest->preprocess;
  EXPECT_EQ(p.input_name, "images");
  EXPECT_EQ(p.width, 416);
  EXPECT_EQ(p.height, 320);
  EXPECT_EQ(p.layout, TensorLayout::kNhwc);
  EXPECT_EQ(p.order, ChannelOrder::kBgr);
  EXPECT_EQ(p.scale, 0.5f);
  EXPECT_THAT(p.mean, ElementsAre(103.53f, 116.28f, 123.675f));
  EXPECT_THAT(p.std, ElementsAre(57.375f, 57.12f, 58.395f));
  EXPECT_EQ(p.fit, Fit::kLetterboxTopLeft);
  EXPECT_EQ(p.pad_level, 0.0f);
}

/// The golden manifest with another task and its postprocessing.
Result<ManifestDocument> with_task(const std::string& task, const std::string& post) {
  std::string json = replaced(golden("schema2.json"), "\"task\": \"detection\"",
                              str_format("\"task\": \"{}\"", task));
  const auto from = json.find('{', json.find("\"postprocess\""));
  json.replace(from, json.find('}', from) + 1 - from, post);
  return parse_manifest(json);
}

TEST(M01, GivenEachTask_WhenParsed_ThenItsPostprocessingIsReadAndNoOther) {
  const auto message = [](const std::string& task, const std::string& post) {
    const auto parsed = with_task(task, post);
    return parsed ? std::string("accepted") : parsed.error().message();
  };
  const auto pose = with_task("pose", R"({"threshold": 0.2, "iou_threshold": 0.7,
                                          "keypoints": ["nose", "tail"], "class_agnostic": true})");
  ASSERT_TRUE(pose) << pose.error().message();
  EXPECT_THAT(pose->manifest.keypoints, ElementsAre("nose", "tail"));
  EXPECT_TRUE(pose->manifest.class_agnostic);
  const auto classes = with_task("classification", R"({"scores": "logits", "top_k": 3})");
  ASSERT_TRUE(classes) << classes.error().message();
  EXPECT_EQ(classes->manifest.scores, ScoreKind::kLogits);
  EXPECT_EQ(classes->manifest.top_k, 3);
  EXPECT_EQ(classes->manifest.threshold, 0.0f);
  const auto vectors = with_task("embedding", R"({"normalise": true})");
  ASSERT_TRUE(vectors) << vectors.error().message();
  EXPECT_TRUE(vectors->manifest.normalise);
  EXPECT_EQ(message("raw", "{}"), "accepted");
  EXPECT_EQ(message("semantic-segmentation", R"({"scores": "probabilities"})"), "accepted");

  const auto text = with_task("text-recognition", R"({"scores": "probabilities"})");
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_EQ(text->manifest.threshold, 0.0f);
  EXPECT_THAT(message("text-recognition", "{}"), HasSubstr("postprocess.scores"));

  EXPECT_THAT(message("detection", "{}"), HasSubstr("postprocess.threshold"));
  EXPECT_THAT(message("pose", R"({"threshold": 0.2, "iou_threshold": 0.7})"),
              HasSubstr("postprocess.keypoints"));
  EXPECT_THAT(message("pose", R"({"threshold": 0.2, "iou_threshold": 0.7, "keypoints": []})"),
              HasSubstr("1..72"));
  EXPECT_THAT(message("classification", "{}"), HasSubstr("postprocess.scores"));
  EXPECT_THAT(message("classification", R"({"scores": "maybe"})"), HasSubstr("logits"));
  EXPECT_THAT(message("classification", R"({"scores": "logits", "top_k": 101})"),
              HasSubstr("postprocess.top_k"));
  EXPECT_THAT(message("embedding", R"({"iou_threshold": 0.5})"),
              HasSubstr("postprocess.iou_threshold"));
  EXPECT_THAT(message("dancing", "{}"), HasSubstr("instance-segmentation"));
}

TEST(M01, GivenATextDetector_WhenParsed_ThenItsOwnSettingsAreReadAndOthersHaveNone) {
  const auto parsed = [](const std::string& family, const std::string& more) {
    std::string json = replaced(golden("schema2.json"), "\"family\": \"nanodet\"",
                                "\"family\": \"" + family + "\"");
    json = replaced(json, "\"postprocess\": {", "\"postprocess\": {" + more);
    return parse_manifest(json);
  };
  const auto message = [&](const std::string& family, const std::string& more) {
    const auto read = parsed(family, more);
    return read ? std::string("accepted") : read.error().message();
  };
  const auto text = parsed("db-text", R"("pixel_threshold": 0.25, "unclip_ratio": 2, )");
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_EQ(text->manifest.pixel_threshold, 0.25f);
  EXPECT_EQ(text->manifest.unclip_ratio, 2.0f);
  const auto usual = parsed("db-text", "");
  ASSERT_TRUE(usual) << usual.error().message();
  EXPECT_EQ(usual->manifest.pixel_threshold, 0.3f);
  EXPECT_EQ(usual->manifest.unclip_ratio, 1.5f);
  EXPECT_THAT(message("db-text", R"("pixel_threshold": 1.5, )"),
              HasSubstr("postprocess.pixel_threshold"));
  EXPECT_THAT(message("db-text", R"("unclip_ratio": -1, )"), HasSubstr("postprocess.unclip_ratio"));
  EXPECT_THAT(message("db-text", R"("unclip_ratio": 11, )"), HasSubstr("0..10"));
  EXPECT_THAT(message("nanodet", R"("unclip_ratio": 2, )"), HasSubstr("unclip_ratio"));
}

TEST(M01, GivenConstantsAndProviderOptions_WhenParsed_ThenTheyAreRead) {
  std::string json = replaced(golden("schema2.json"), "CPUExecutionProvider\"",
                              "XnnpackExecutionProvider\", \"provider_options\": "
                              "{\"intra_op_num_threads\": \"2\"}, "
                              "\"cpu_nodes\": [\"a\", \"b/c\"]");
  json = replaced(json, "\"task\":",
                  "\"constants\": [{\"input\": \"sizes\", \"values\": [320, 4.5]}], \"task\":");
  const auto parsed = parse_manifest(json);
  ASSERT_TRUE(parsed) << parsed.error().message();
  ASSERT_EQ(parsed->manifest.provider_options.size(), 1u);
  EXPECT_EQ(parsed->manifest.provider_options[0].second, "2");
  EXPECT_THAT(parsed->manifest.cpu_nodes, ElementsAre("a", "b/c"));
  ASSERT_EQ(parsed->manifest.constants.size(), 1u);
  EXPECT_EQ(parsed->manifest.constants[0].input, "sizes");
  EXPECT_THAT(parsed->manifest.constants[0].values, ElementsAre(320, 4.5));
}

TEST(M01, GivenGoldenSchema1_WhenLoaded_ThenItReadsAsAYoloDetector) {
  const GoldenFolder folder(golden("schema1.json"));
  const auto manifest = load_manifest(folder.path() / "manifest.json");
  ASSERT_TRUE(manifest) << manifest.error().message();
  EXPECT_EQ(manifest->schema, 1);
  EXPECT_EQ(manifest->name, "golden-yolo");
  EXPECT_EQ(manifest->artefact, folder.path() / "model.onnx");
  EXPECT_EQ(manifest->engine, "onnxruntime");
  EXPECT_EQ(manifest->task, "detection");
  EXPECT_EQ(manifest->family, "yolov8");
  EXPECT_EQ(manifest->threshold, 0.3f);
  EXPECT_EQ(manifest->iou_threshold, 0.5f);
  EXPECT_EQ(manifest->licence, "AGPL-3.0 (its author's word)");
  EXPECT_EQ(manifest->preprocess.input_name, "images");
  EXPECT_EQ(manifest->preprocess.width, 640);
  EXPECT_EQ(manifest->preprocess.height, 480);
  EXPECT_EQ(manifest->preprocess.order, ChannelOrder::kRgb);
  EXPECT_FLOAT_EQ(manifest->preprocess.scale, 1.0f / 255.0f);
  EXPECT_EQ(manifest->preprocess.fit, Fit::kLetterboxCenter);
  EXPECT_EQ(manifest->preprocess.pad_level, 114.0f);
  ASSERT_EQ(manifest->outputs.size(), 1u);
  EXPECT_EQ(manifest->outputs[0].dims[2].minimum, 6300);
}

TEST(M01, GivenSchema1WithV5Head_WhenParsed_ThenFamilyIsYolov5) {
  const auto document =
      parse_manifest(replaced(golden("schema1.json"), "[1, 6, 6300]", "[1, 18900, 7]"));
  ASSERT_TRUE(document) << document.error().message();
  EXPECT_EQ(document->manifest.family, "yolov5");
}

TEST(M01, GivenABrokenField_WhenParsed_ThenTheErrorNamesIt) {
  using enum ErrorKind;
  const Breakage breakages[] = {
      {"\"schema\": 2", "\"schema\": 3", kUnsupported, "'schema' is 3"},
      {"\"schema\": 2", "\"schema\": \"2\"", kCorrupt, "'schema' must be an integer"},
      {"\"schema\": 2,", "", kCorrupt, "missing key 'schema'"},
      {"\"name\": \"golden\"", "\"name\": \"a/b\"", kCorrupt, "'name'"},
      {"\"name\": \"golden\"", "\"name\": \"a\\u0000b\"", kCorrupt, "'name' contains a NUL"},
      {"\"role\": \"data\"", "\"role\": \"model\"", kCorrupt, "exactly one of role 'model', not 2"},
      {"\"role\": \"data\"", "\"role\": \"extra\"", kCorrupt, "'artefacts[1].role'"},
      {"\"path\": \"weights/a.bin\", ", "", kCorrupt, "missing key 'artefacts[1].path'"},
      {"\"name\": \"onnxruntime\"", "\"name\": \"tflite\"", kUnsupported,
       "'engine.name' is 'tflite'"},
      {"CPUExecutionProvider", "Gpu", kCorrupt, "'engine.provider' is 'Gpu'"},
      {"CPUExecutionProvider\"", "CPUExecutionProvider\", \"provider_options\": [1]", kCorrupt,
       "'engine.provider_options' must be an object"},
      {"CPUExecutionProvider\"", "CPUExecutionProvider\", \"provider_options\": {\"a\": 1}",
       kCorrupt, "'engine.provider_options.a'"},
      {"CPUExecutionProvider\"", "CPUExecutionProvider\", \"cpu_nodes\": [\"a\"]", kCorrupt,
       "'engine.cpu_nodes' says what may run on the CPU, but all does"},
      {"CPUExecutionProvider\"", "XnnpackExecutionProvider\", \"cpu_nodes\": []", kCorrupt,
       "'engine.cpu_nodes' must name 1..4096 nodes"},
      {"CPUExecutionProvider\"", "XnnpackExecutionProvider\", \"cpu_nodes\": [\"a\", \"a\"]",
       kCorrupt, "'engine.cpu_nodes[1]'"},
      {"CPUExecutionProvider\"", "XnnpackExecutionProvider\", \"cpu_nodes\": [\"\"]", kCorrupt,
       "'engine.cpu_nodes[0]' is empty"},
      {"CPUExecutionProvider\"", "XnnpackExecutionProvider\", \"cpu_nodes\": \"a\"", kCorrupt,
       "'engine.cpu_nodes'"},
      {"\"task\":", "\"constants\": [{\"input\": \"images\", \"values\": [1]}], \"task\":",
       kCorrupt, "'constants[0].input' is 'images'"},
      {"\"task\":", "\"constants\": [{\"input\": \"sizes\", \"values\": []}], \"task\":", kCorrupt,
       "'constants[0].values'"},
      {"\"task\":", "\"constants\": [{\"input\": \"sizes\", \"values\": [\"1\"]}], \"task\":",
       kCorrupt, "'constants[0].values[0]'"},
      {"\"type\": \"float32\", \"layout\"", "\"type\": \"int64\", \"layout\"", kUnsupported,
       "input 'images' is int64"},
      {"\"type\": \"float32\", \"layout\"", "\"type\": \"uint8\", \"layout\"", kCorrupt,
       "input 'images' is uint8"},
      {"\"architecture\": \"any\"", "\"architecture\": \"gfx1100\"", kUnsupported,
       "'engine.architecture' is 'gfx1100'"},
      {"\"offload_copy\": false", "\"offload_copy\": true", kUnsupported, "'engine.offload_copy'"},
      {"\"type\": \"float32\"", "\"type\": \"float\"", kCorrupt, "'inputs[0].type' is 'float'"},
      {"\"layout\": \"NHWC\"", "\"layout\": \"CHW\"", kCorrupt, "'inputs[0].layout'"},
      {"\"name\": \"sizes\"", "\"name\": \"images\"", kCorrupt, "'inputs[1].name'"},
      {"\"N\", 320", "\"N\", 0", kCorrupt, "'inputs[0].dims[1]'"},
      {"\"N\", 320", "\"N\", 1.5", kCorrupt, "'inputs[0].dims[1]'"},
      {"\"N\", 320", "\"N\", 9223372036854775807", kCorrupt, "'inputs[0].dims[1]'"},
      {"\"min\": 1, \"max\": 8", "\"min\": 9, \"max\": 8", kCorrupt, "'inputs[1].dims[0]'"},
      {"\"max\": 300", "\"most\": 300", kCorrupt, "'outputs[0].dims[0].max'"},
      {"\"task\": \"detection\"", "\"task\": \"telepathy\"", kUnsupported, "'task' is 'telepathy'"},
      {"\"task\": \"detection\",", "", kCorrupt, "missing key 'task'"},
      {"\"classes\": 2", "\"classes\": 3", kCorrupt, "'labels' has 2 entries, but 'classes' is 3"},
      {"\"person\", ", "7, ", kCorrupt, "'labels[0]' must be a string, not an integer"},
      {"\"input\": \"images\"", "\"input\": \"sizes\"", kCorrupt, "'sizes'"},
      {"\"input\": \"images\"", "\"input\": \"x\"", kCorrupt, "'preprocess.input' is 'x'"},
      {"\"width\": 416", "\"width\": 415", kCorrupt, "'preprocess.width' makes 415x320"},
      {"\"width\": 416", "\"width\": 40000", kCorrupt, "'preprocess.width' must be in 1..32766"},
      {"\"layout\": \"NHWC\",\n    \"order\"", "\"layout\": \"NCHW\",\n    \"order\"", kCorrupt,
       "'preprocess.layout'"},
      {"\"order\": \"BGR\"", "\"order\": \"GBR\"", kCorrupt, "'preprocess.order' is 'GBR'"},
      {"\"scale\": 0.5", "\"scale\": -1", kCorrupt, "'preprocess.scale'"},
      {"116.28", "\"116\"", kCorrupt, "'preprocess.mean[1]' must be a number, not a string"},
      {"116.28", "1e300", kCorrupt, "'preprocess.mean[1]' is too large"},
      {", 123.675", "", kCorrupt, "'preprocess.mean' must have 3 numbers, not 2"},
      {"57.12", "0", kCorrupt, "'preprocess.std[1]' must not be zero"},
      {"letterbox-top-left", "crop", kCorrupt, "'preprocess.fit' is 'crop'"},
      {"\"pad\": 0", "\"pad\": 256", kCorrupt, "'preprocess.pad'"},
      {"\"threshold\": 0.35", "\"threshold\": 1.5", kCorrupt, "'postprocess.threshold' must be in"},
      {"\"iou_threshold\": 0.6", "\"iou_threshold\": -0.1", kCorrupt,
       "'postprocess.iou_threshold'"},
      {"\"confidence\": \"high\"", "\"confidence\": 1", kCorrupt, "'licence.confidence'"},
      {"\"scale\": 0.5", "\"scale\": 0.5, \"skale\": 1", kCorrupt,
       "unknown key 'preprocess.skale'"},
      {"\"schema\": 2", "\"schema\": 2, \"colour\": 1", kCorrupt, "unknown key 'colour'"},
      {"\"package\"", "\"parcel\"", kCorrupt, "unknown key 'origin.parcel'"},
      {"\"pad\": 0", "\"pad\": 0, \"pad\": 1", kCorrupt, "'preprocess.pad' is given twice"},
  };
  const std::string text = golden("schema2.json");
  for (const Breakage& breakage : breakages) {
    SCOPED_TRACE(std::string(breakage.from) + " -> " + breakage.to);
    const auto document = parse_manifest(replaced(text, breakage.from, breakage.to));
    ASSERT_FALSE(document);
    EXPECT_EQ(document.error().kind(), breakage.kind) << document.error().message();
    EXPECT_THAT(document.error().message(), HasSubstr(breakage.message));
  }
}

TEST(M01, GivenABrokenSchema1Field_WhenParsed_ThenTheErrorNamesIt) {
  using enum ErrorKind;
  const Breakage breakages[] = {
      {"model.onnx", "model.mxr", kUnsupported, "'model' is 'model.mxr'"},
      {"\"arch\": \"any\"", "\"arch\": \"gfx1100\"", kUnsupported, "'arch' is 'gfx1100'"},
      {"\"offload_copy\": false", "\"offload_copy\": true", kUnsupported, "'offload_copy'"},
      {"[1, 6, 6300]", "[1, 9, 6300]", kCorrupt, "'output.shape'"},
      {"[1, 3, 480, 640]", "[1, 4, 480, 640]", kCorrupt, "'input.shape'"},
      {"[1, 3, 480, 640]", "[1, 3, -480, 640]", kCorrupt, "'input.shape[2]'"},
      {"\"labels\"", "\"label\"", kCorrupt, "missing key 'labels'"},
      {"\"threshold\": 0.3", "\"threshold\": 2", kCorrupt, "'threshold' must be in 0..1"},
      {"\"arch\"", "\"task\"", kCorrupt, "unknown key 'task'"},
  };
  const std::string text = golden("schema1.json");
  for (const Breakage& breakage : breakages) {
    SCOPED_TRACE(std::string(breakage.from) + " -> " + breakage.to);
    const auto document = parse_manifest(replaced(text, breakage.from, breakage.to));
    ASSERT_FALSE(document);
    EXPECT_EQ(document.error().kind(), breakage.kind) << document.error().message();
    EXPECT_THAT(document.error().message(), HasSubstr(breakage.message));
  }
}

TEST(M01, GivenEveryPrefixOfAManifest_WhenParsed_ThenItIsRefused) {
  std::string text = golden("schema2.json");
  text.erase(text.find_last_of('}') + 1);  // the end of line after it may be missing
  for (std::size_t size = 0; size < text.size(); ++size) {
    ASSERT_FALSE(parse_manifest(std::string_view(text).substr(0, size))) << size;
  }
}

TEST(M01, GivenOversizedOrDeeplyNestedText_WhenParsed_ThenItIsRefused) {
  const std::string nested = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_FALSE(parse_manifest(nested));
  EXPECT_FALSE(parse_manifest("{\"schema\": " + nested + "}"));
  const std::string large = golden("schema2.json") + std::string(kMaxManifestBytes, ' ');
  const auto refused = parse_manifest(large);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("more than 1048576"));
}

TEST(M01, GivenAChangedArtefact_WhenLoaded_ThenItsHashIsRefused) {
  for (const char* file : {"model.onnx", "weights/a.bin"}) {
    const GoldenFolder folder;
    std::string bytes = file == std::string("model.onnx") ? "golden model\n" : "golden weights\n";
    bytes[3] ^= 1;
    (*folder).write(file, bytes);
    const auto manifest = load_manifest(folder.path());
    ASSERT_FALSE(manifest);
    EXPECT_EQ(manifest.error().kind(), ErrorKind::kCorrupt);
    EXPECT_THAT(manifest.error().message(), HasSubstr(".sha256' is "));
    EXPECT_THAT(manifest.error().message(), HasSubstr(file));
    EXPECT_THAT(manifest.error().message(), HasSubstr((folder.path() / "manifest.json").string()));
  }
}

TEST(M01, GivenAPathOutsideTheFolder_WhenLoaded_ThenItIsRefused) {
  // The file exists and its hash is right, so that only the place is wrong.
  const TemporaryFolder elsewhere;
  const fs::path outside = elsewhere.write("model.onnx", "golden model\n");
  const std::string up = "../" + elsewhere.path().filename().string() + "/model.onnx";
  for (const std::string& path : {outside.string(), up, "weights/../" + up, std::string(".."),
                                  std::string("."), std::string()}) {
    SCOPED_TRACE(path);
    const GoldenFolder folder(
        replaced(golden("schema2.json"), "\"path\": \"model.onnx\"", "\"path\": \"" + path + "\""));
    const auto manifest = load_manifest(folder.path());
    ASSERT_FALSE(manifest);
    EXPECT_EQ(manifest.error().kind(), ErrorKind::kCorrupt);
    EXPECT_THAT(manifest.error().message(), HasSubstr("'artefacts[0].path'"));
    EXPECT_THAT(manifest.error().message(), HasSubstr("leaves the model's folder"));
  }
}

TEST(M01, GivenASymbolicLinkOutOfTheFolder_WhenLoaded_ThenItIsRefused) {
  const TemporaryFolder elsewhere;
  const fs::path outside = elsewhere.write("model.onnx", "golden model\n");
  const GoldenFolder folder;
  fs::remove(folder.path() / "model.onnx");
  fs::create_symlink(outside, folder.path() / "model.onnx");
  const auto manifest = load_manifest(folder.path());
  ASSERT_FALSE(manifest);
  EXPECT_THAT(manifest.error().message(), HasSubstr("leaves the model's folder"));
}

TEST(M01, GivenASymbolicLinkInsideTheFolder_WhenLoaded_ThenItIsFollowed) {
  const GoldenFolder folder;
  fs::rename(folder.path() / "model.onnx", folder.path() / "weights/real.onnx");
  fs::create_symlink("weights/real.onnx", folder.path() / "model.onnx");
  const auto manifest = load_manifest(folder.path());
  ASSERT_TRUE(manifest) << manifest.error().message();
  EXPECT_EQ(manifest->artefact, folder.path() / "weights/real.onnx");
}

TEST(M01, GivenNoArtefactOrAFolderInItsPlace_WhenLoaded_ThenItIsRefused) {
  const GoldenFolder folder;
  fs::remove(folder.path() / "model.onnx");
  const auto missing = load_manifest(folder.path());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind(), ErrorKind::kNotFound);
  EXPECT_THAT(missing.error().message(), HasSubstr("'artefacts[0].path' is 'model.onnx'"));
  fs::create_directory(folder.path() / "model.onnx");
  const auto directory = load_manifest(folder.path());
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message(), HasSubstr("no regular file"));
}

TEST(M01, GivenNoOrdinaryManifestFile_WhenLoaded_ThenItIsRefusedWithoutBlocking) {
  const TemporaryFolder folder;
  const auto missing = load_manifest(folder.path());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind(), ErrorKind::kNotFound);
  const fs::path fifo = folder.path() / "manifest.json";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const auto blocked = load_manifest(folder.path());
  ASSERT_FALSE(blocked);
  EXPECT_THAT(blocked.error().message(), HasSubstr("not a regular file"));
}

TEST(FindModel, GivenANameAFolderOrAFile_WhenFound_ThenTheManifestPathIsReturned) {
  const TemporaryFolder folder;
  const fs::path manifest = folder.write("nanodet/manifest.json", "{}");
  EXPECT_EQ(find_model("nanodet", folder.path()).value(), manifest);
  EXPECT_EQ(find_model((folder.path() / "nanodet").string(), "/nowhere").value(), manifest);
  EXPECT_EQ(find_model(manifest.string(), "/nowhere").value(), manifest);
}

TEST(FindModel, GivenAnUnknownName_WhenFound_ThenTheErrorSaysHowToGetIt) {
  const TemporaryFolder folder;
  const auto missing = find_model("yolo", folder.path());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind(), ErrorKind::kNotFound);
  EXPECT_THAT(missing.error().message(), HasSubstr("penstock model list"));
  const auto path = find_model("no/such/manifest.json", folder.path());
  ASSERT_FALSE(path);
  EXPECT_THAT(path.error().message(), HasSubstr("'no/such/manifest.json'"));
  EXPECT_EQ(find_model("", folder.path()).error().kind(), ErrorKind::kInvalidArgument);
}

// The vectors of FIPS 180-4's examples.
TEST(Sha256File, GivenTheStandardsExamples_WhenHashed_ThenTheDigestsAgree) {
  const TemporaryFolder folder;
  EXPECT_EQ(sha256_file(folder.write("abc", "abc")).value(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_file(folder.write("million", std::string(1000000, 'a'))).value(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(sha256_file(folder.path() / "none").error().kind(), ErrorKind::kNotFound);
}

}  // namespace
}  // namespace penstock
