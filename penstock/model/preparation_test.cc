// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/preparation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/model/family_guess.h"
#include "penstock/model/session.h"
#include "penstock/model/testing/onnx_builder.h"
#include "penstock/model/testing/session_support.h"
#include "penstock/model/testing/square_finders.h"

namespace penstock {
namespace {

using namespace model_testing;  // NOLINT: the suite's own vocabulary
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class M02 : public testing::Test {
 protected:
  /// A model of one picture [1,3,height,width] and outputs of the given shapes; it is not meant to
  /// run.
  std::filesystem::path file(const std::vector<std::vector<OnnxDim>>& outputs,
                             const std::vector<std::pair<std::string, std::string>>& metadata = {},
                             std::vector<OnnxDim> input = {1, 3, 640, 640}) {
    OnnxBuilder model;
    model.input("images", DataType::kFloat32, input);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      model.output(str_format("output{}", i), DataType::kFloat32, outputs[i]);
    }
    for (const auto& [key, value] : metadata) model.metadata(key, value);
    return folder_.write("yolo11n.onnx", model.build());
  }
  static std::string names(int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += str_format("{}{}: 'thing {}'", i ? ", " : "", i, i);
    return text + "}";
  }

  TemporaryFolder folder_;
};

TEST_F(M02, GivenTheUsualExports_WhenPlanned_ThenFamilyAndClassesAreRecognised) {
  struct Case {
    const char* family;
    std::size_t classes;
    std::vector<std::vector<OnnxDim>> outputs;
  };
  const std::vector<Case> cases{
      {"yolov8", 80, {{1, 84, 8400}}},
      {"yolov5", 80, {{1, 25200, 85}}},
      {"yolox", 80, {{1, 8400, 85}}},
      {"rtdetr", 80, {{1, 300, 84}}},
      {"rtdetr", 80, {{1, 300, 80}, {1, 300, 4}}},
      {"rtdetr", 80, {{1, 300, 4}, {1, 300, 80}}},
  };
  for (const Case& c : cases) {
    const auto plan = plan_preparation(file(c.outputs), {});
    ASSERT_TRUE(plan) << c.family << ": " << plan.error().message();
    EXPECT_EQ(plan->manifest.family, c.family);
    EXPECT_EQ(plan->manifest.labels.size(), c.classes);
    EXPECT_THAT(plan->notes, Contains(AllOf(HasSubstr(c.family), HasSubstr("output"))));
  }
  const auto end_to_end = plan_preparation(file({{1, 300, 6}}, {{"names", names(80)}}), {});
  ASSERT_TRUE(end_to_end) << end_to_end.error().message();
  EXPECT_EQ(end_to_end->manifest.family, "yolo-end-to-end");
}

TEST_F(M02, GivenUltralyticsMetadata_WhenPlanned_ThenLabelsSizeAndLicenceAreItsOwn) {
  const auto path = file({{"batch", 7, "anchors"}},
                         {{"names", "{0: 'person', 1: \"driver's seat\", 2: 'car'}"},
                          {"imgsz", "[320, 480]"},
                          {"license", "AGPL-3.0 License"}},
                         {"batch", 3, "height", "width"});
  const auto plan = plan_preparation(path, {});
  ASSERT_TRUE(plan) << plan.error().message();
  const Manifest& manifest = plan->manifest;
  EXPECT_EQ(manifest.name, "yolo11n");
  EXPECT_THAT(manifest.labels, ElementsAre("person", "driver's seat", "car"));
  EXPECT_EQ(manifest.preprocess.height, 320);
  EXPECT_EQ(manifest.preprocess.width, 480);
  EXPECT_EQ(manifest.inputs[0].dims[0].maximum, 64);
  EXPECT_TRUE(manifest.inputs[0].dims[2].is_fixed());
  EXPECT_EQ(manifest.family, "yolov8");
  EXPECT_EQ(plan->spdx, "AGPL-3.0 License");
}

TEST_F(M02, GivenWhatOnlyTheUserKnows_WhenPlanned_ThenTheMessageNamesTheFlag) {
  const auto refusal = [](const Result<Preparation>& plan) {
    return plan ? std::string("was planned") : plan.error().message();
  };
  EXPECT_THAT(
      refusal(plan_preparation(file({{1, 10, 10, 10, 10}}), {})),
      AllOf(HasSubstr("no known family"), HasSubstr("[1,10,10,10,10]"), HasSubstr("--family")));
  EXPECT_THAT(refusal(plan_preparation(file({{1, 1, 100, 7}}), {})), HasSubstr("--labels"));
  EXPECT_THAT(refusal(plan_preparation(file({{1, 1, 100, 7}}), {.labels = {"a", "b"}})),
              AllOf(HasSubstr("--order"), HasSubstr("--scale"), HasSubstr("--fit")));
  EXPECT_THAT(refusal(plan_preparation(file({{1, 84, 8400}}, {}, {1, 3, "h", "w"}), {})),
              HasSubstr("--height"));
  EXPECT_THAT(refusal(plan_preparation(file({{1, 84, 8400}}), {.width = 320})),
              AllOf(HasSubstr("--width is 320"), HasSubstr("640")));
  EXPECT_THAT(refusal(plan_preparation(file({{1, 84, 8400}}, {}, {1, 1, 640, 640}), {})),
              HasSubstr("[N,3,H,W]"));
}

TEST_F(M02, GivenFlags_WhenPlanned_ThenTheyWinOverWhatIsUsual) {
  PrepareOptions options;
  options.name = "mine";
  options.labels = {"cat", "dog"};
  options.order = ChannelOrder::kBgr;
  options.mean = {1, 2, 3};
  options.fit = Fit::kStretch;
  options.pad = 0;
  options.threshold = 0.6f;
  options.licence = "MIT";
  const auto plan = plan_preparation(file({{1, 6, 8400}}, {{"names", names(2)}}), options);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->manifest.name, "mine");
  EXPECT_THAT(plan->manifest.labels, ElementsAre("cat", "dog"));
  EXPECT_EQ(plan->manifest.preprocess.order, ChannelOrder::kBgr);
  EXPECT_THAT(plan->manifest.preprocess.mean, ElementsAre(1, 2, 3));
  EXPECT_EQ(plan->manifest.preprocess.fit, Fit::kStretch);
  EXPECT_EQ(plan->manifest.threshold, 0.6f);
  EXPECT_EQ(plan->spdx, "MIT");
}

TEST_F(M02, GivenEveryLayout_WhenPrepared_ThenTheFolderLoadsAndTheModelOpens) {
  const auto device = open_device(DeviceId{}).value();
  for (const BoxLayout layout :
       {BoxLayout::kYolov5, BoxLayout::kYolov8, BoxLayout::kEndToEnd, BoxLayout::kYolox,
        BoxLayout::kRtdetr, BoxLayout::kRtdetrLogits, BoxLayout::kSsdList, BoxLayout::kSsdFour}) {
    SCOPED_TRACE(to_string(layout));
    const TestModel model = make_square_finder(layout, 160);
    PrepareOptions options{.name = model.name, .labels = model.labels};
    // 525 rows are more than a transformer's queries are told apart by.
    options.family = model.family;
    if (model.family == "ssd") {
      options.order = ChannelOrder::kRgb;
      options.scale = 1.0f / 255;
      options.fit = Fit::kLetterboxCenter;
    }
    const auto plan = plan_preparation(folder_.write("model.onnx", model.onnx), options);
    ASSERT_TRUE(plan) << plan.error().message();
    const auto path = write_prepared(*plan, folder_.path() / "models", false);
    ASSERT_TRUE(path) << path.error().message();
    const auto manifest = load_manifest(*path);
    ASSERT_TRUE(manifest) << manifest.error().message();
    EXPECT_EQ(manifest->family, model.family);
    EXPECT_EQ(manifest->labels, model.labels);
    const auto session = open_session(device, *manifest);
    EXPECT_TRUE(session) << session.error().message();
  }
}

TEST_F(M02, GivenAProviderAndNodesForTheCpu_WhenPrepared_ThenTheManifestSaysSo) {
  PrepareOptions options;
  options.provider = "XnnpackExecutionProvider";
  options.provider_options = {{"intra_op_num_threads", "2"}};
  options.cpu_nodes = {"/head/Resize", "/head/Sin", "/head/Sin"};
  const auto onnx = file({{1, 84, 8400}});
  const auto plan = plan_preparation(onnx, options);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_THAT(plan->notes, Contains("provider: XnnpackExecutionProvider, with 2 nodes on the CPU "
                                    "(--provider)"));
  const auto path = write_prepared(*plan, folder_.path() / "models", false);
  ASSERT_TRUE(path) << path.error().message();
  const auto manifest = load_manifest(*path);
  ASSERT_TRUE(manifest) << manifest.error().message();
  EXPECT_EQ(manifest->provider, "XnnpackExecutionProvider");
  EXPECT_EQ(manifest->provider_options, options.provider_options);
  EXPECT_THAT(manifest->cpu_nodes, ElementsAre("/head/Resize", "/head/Sin"));
  // What could not be read again is refused by its flag.
  const auto refusal = [&](const PrepareOptions& wrong) {
    const auto planned = plan_preparation(onnx, wrong);
    return planned ? std::string("planned") : planned.error().message();
  };
  EXPECT_THAT(refusal({.provider = "xnnpack"}), HasSubstr("--provider is 'xnnpack'"));
  EXPECT_THAT(refusal({.cpu_nodes = {"a"}}), HasSubstr("--cpu-node says what may run on the CPU"));
  options.cpu_nodes = {""};
  EXPECT_THAT(refusal(options), HasSubstr("--cpu-node is empty"));
  options.cpu_nodes.clear();
  options.provider_options.push_back(options.provider_options.front());
  EXPECT_THAT(refusal(options), HasSubstr("gives 'intra_op_num_threads' twice"));
}

TEST_F(M02, GivenAPreparedModel_WhenPreparedAgain_ThenOnlyReplaceReplacesIt) {
  const auto plan = plan_preparation(file({{1, 84, 8400}}), {});
  ASSERT_TRUE(plan);
  const auto models = folder_.path() / "models";
  ASSERT_TRUE(write_prepared(*plan, models, false));
  EXPECT_EQ(write_prepared(*plan, models, false).error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_TRUE(write_prepared(*plan, models, true));
  // Nothing but the model is left in the folder of models.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(models), {}), 1);
}

TEST_F(M02, GivenExternalDataOutsideTheFolder_WhenPrepared_ThenItIsRefused) {
  auto plan = plan_preparation(file({{1, 84, 8400}}), {});
  ASSERT_TRUE(plan);
  for (const char* path : {"../secret.bin", "/etc/passwd", "manifest.json", "./manifest.json"}) {
    plan->data = {path};
    const auto written = write_prepared(*plan, folder_.path() / "models", false);
    ASSERT_FALSE(written) << path;
    EXPECT_THAT(written.error().message(), HasSubstr(path));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "models/yolo11n"));
}

TEST_F(M02, GivenExternalDataUnderSeveralNames_WhenPrepared_ThenWhatIsWrittenOpens) {
  OnnxBuilder builder;
  builder.input("x", DataType::kFloat32, {1, 3, 8, 8})
      .output("y", DataType::kFloat32, {1, 3, 8, 8})
      .external_constant("w", {1}, "./weights.bin")
      .external_constant("v", {1}, "weights.bin")
      .external_constant("u", {1}, "parts//../parts/u.bin")
      .node("Add", {"x", "w"}, {"xw"})
      .node("Add", {"xw", "v"}, {"xwv"})
      .node("Add", {"xwv", "u"}, {"y"});
  const auto onnx = folder_.write("in/model.onnx", builder.build());
  folder_.write("in/weights.bin", "1234");
  folder_.write("in/parts/u.bin", "5678");
  const PrepareOptions options{.name = "parts",
                               .family = "raw",
                               .order = ChannelOrder::kRgb,
                               .scale = 1.0f,
                               .fit = Fit::kStretch};
  const auto plan = plan_preparation(onnx, options);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_THAT(plan->data, ElementsAre("parts/u.bin", "weights.bin"));
  const auto written = write_prepared(*plan, folder_.path() / "models", false);
  ASSERT_TRUE(written) << written.error().message();
  const auto manifest = load_manifest(*written);
  ASSERT_TRUE(manifest) << manifest.error().message();
  const auto opened = open_session(open_device(DeviceId{}).value(), *manifest);
  EXPECT_TRUE(opened) << opened.error().message();
}

TEST_F(M02, GivenExternalDataBehindALink_WhenPlanned_ThenItStaysInsideTheFolderOrIsRefused) {
  OnnxBuilder builder;
  builder.input("x", DataType::kFloat32, {1, 3, 8, 8})
      .output("y", DataType::kFloat32, {1, 3, 8, 8})
      .external_constant("w", {1}, "weights.bin")
      .node("Add", {"x", "w"}, {"y"});
  const auto inner = folder_.path() / "inner";
  std::filesystem::create_directories(inner / "below");
  std::ofstream(inner / "model.onnx", std::ios::binary) << builder.build();
  const PrepareOptions options{
      .family = "raw", .order = ChannelOrder::kRgb, .scale = 1.0f, .fit = Fit::kStretch};
  EXPECT_EQ(plan_preparation(inner / "model.onnx", options).error().kind(), ErrorKind::kNotFound);
  const auto secret = folder_.write("secret.bin", "1234");
  std::filesystem::create_symlink("../secret.bin", inner / "weights.bin");
  const auto refused = plan_preparation(inner / "model.onnx", options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(
      refused.error().message(),
      AllOf(HasSubstr("weights.bin"), HasSubstr(std::filesystem::canonical(secret).string())));
  std::filesystem::remove(inner / "weights.bin");
  std::ofstream(inner / "below/w.bin") << "1234";
  std::filesystem::create_symlink("below/w.bin", inner / "weights.bin");
  const auto plan = plan_preparation(inner / "model.onnx", options);
  ASSERT_TRUE(plan) << plan.error().message();
  const auto written = write_prepared(*plan, folder_.path() / "models", false);
  ASSERT_TRUE(written) << written.error().message();
  const auto copy = written->parent_path() / "weights.bin";
  EXPECT_FALSE(std::filesystem::is_symlink(copy));
  EXPECT_EQ(std::filesystem::file_size(copy), 4u);
}

TEST_F(M02, GivenAFileThatChangesAfterThePlan_WhenPrepared_ThenItIsRefused) {
  const auto path = file({{1, 84, 8400}});
  const auto plan = plan_preparation(path, {});
  ASSERT_TRUE(plan);
  std::ofstream(path, std::ios::app) << '\0';
  const auto written = write_prepared(*plan, folder_.path() / "models", false);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(written.error().message(), HasSubstr("changed"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "models/yolo11n"));
}

TEST_F(M02, GivenSeveralAtOnce_WhenOneNameIsPrepared_ThenOneSucceedsWithoutReplace) {
  const auto plan = plan_preparation(file({{1, 84, 8400}}), {});
  ASSERT_TRUE(plan);
  const auto models = folder_.path() / "models";
  std::atomic<int> made = 0, refused = 0, replaced = 0;
  const auto all = [&](bool replace) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const auto written = write_prepared(*plan, models, replace);
        if (written) ++(replace ? replaced : made);
        if (!written && written.error().kind() == ErrorKind::kInvalidArgument) ++refused;
      });
    }
    for (std::thread& thread : threads) thread.join();
  };
  all(false);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(refused, 3);
  all(true);
  EXPECT_EQ(replaced, 4);
  EXPECT_TRUE(load_manifest(models / "yolo11n"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(models), {}), 1);
}

TEST_F(M02, GivenAFolderInTheWay_WhenPreparedWithoutReplace_ThenWhatIsThereStays) {
  const auto plan = plan_preparation(file({{1, 84, 8400}}), {});
  ASSERT_TRUE(plan);
  const auto models = folder_.path() / "models";
  std::filesystem::create_directories(models);
  std::filesystem::create_symlink("/nowhere", models / "yolo11n");
  EXPECT_EQ(check_place(*plan, models, false).error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_TRUE(check_place(*plan, models, true));
  EXPECT_FALSE(write_prepared(*plan, models, false));
  EXPECT_TRUE(std::filesystem::is_symlink(models / "yolo11n"));
}

TEST(LabelsOfDictionary, GivenPythonAndJson_WhenRead_ThenNamesComeInOrder) {
  EXPECT_THAT(labels_of_dictionary("{0: 'a', 1: 'b c'}"), ElementsAre("a", "b c"));
  EXPECT_THAT(labels_of_dictionary(R"({"0": "a", "1": "it's"})"), ElementsAre("a", "it's"));
  EXPECT_THAT(labels_of_dictionary(R"({0: 'it\'s', 1: ''})"), ElementsAre("it's", ""));
}

TEST(LabelsOfDictionary, GivenAnythingElse_WhenRead_ThenNone) {
  for (const char* text : {"", "{", "{}x", "[0, 1]", "{1: 'a'}", "{0: 'a', 2: 'b'}", "{0: a}",
                           "{0: 'a", "{0", "{\"0", "{-1: 'a'}", "{99999999999999999999: 'a'}"}) {
    EXPECT_THAT(labels_of_dictionary(text), IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace penstock
