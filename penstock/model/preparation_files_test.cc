// SPDX-License-Identifier: Apache-2.0
//
// Contract M02: what files beside the model say, and how it goes with flags and with the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/model/manifest_parser.h"
#include "penstock/model/manifest_writer.h"
#include "penstock/model/testing/preparation_test_fixture.h"

namespace penstock {
namespace {

using namespace model_testing;  // NOLINT: the suite's own vocabulary
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

using M02 = PreparationTest;

TEST_F(M02, GivenAFileBesideTheModel_WhenPlanned_ThenItWinsOverMetadataAndGivesWayToFlags) {
  folder_.write("model.json",
                R"({"model_info": {"labels": ["a", "b"], "confidence_threshold": 0.4,
                    "reverse_input_channels": false, "scale_values": "58 57 56"}})");
  const Model model{.outputs = {{1, 6, 8400}}, .metadata = {{"names", names(2)}}};
  PrepareOptions options;
  options.threshold = 0.6f;
  const auto planned = plan(model, options);
  ASSERT_TRUE(planned) << planned.error().message();
  EXPECT_THAT(planned->manifest.labels, ElementsAre("a", "b"));
  EXPECT_EQ(planned->manifest.threshold, 0.6f);
  EXPECT_EQ(planned->manifest.preprocess.order, ChannelOrder::kBgr);
  EXPECT_EQ(planned->manifest.preprocess.scale, 1.0f);
  EXPECT_THAT(planned->manifest.preprocess.std, ElementsAre(58, 57, 56));
  EXPECT_EQ(planned->manifest.preprocess.fit, Fit::kLetterboxCenter);
  EXPECT_THAT(planned->notes, Contains(HasSubstr("labels: 2 (model.json)")));
  EXPECT_THAT(planned->notes, Contains(HasSubstr("score 0.6 (--threshold)")));
}

TEST_F(M02, GivenRangesInAModelinfo_WhenPlanned_ThenLevelsGoThere) {
  const Model model{.outputs = {{1, 10}}, .output_name = "prob"};
  PrepareOptions options;
  options.order = ChannelOrder::kRgb;
  options.fit = Fit::kStretch;
  const auto ends = [&](const char* ranges) {
    folder_.write("model.onnx.modelinfo",
                  str_format("[modelinfo]\nversion=1.0\n[images]\ndir=input\nranges={}\n", ranges));
    const auto planned = plan(model, options);
    EXPECT_TRUE(planned) << planned.error().message();
    std::vector<float> values;
    for (const float level : {0.0f, 255.0f}) {
      for (std::size_t c = 0; planned && c < 3; ++c) {
        const PreprocessSpec& pre = planned->manifest.preprocess;
        values.push_back((level * pre.scale - pre.mean[c]) / pre.std[c]);
      }
    }
    return values;
  };
  const auto near = [](float value) { return testing::FloatNear(value, 1e-5f); };
  EXPECT_THAT(ends("-1,1"), ElementsAre(near(-1), near(-1), near(-1), near(1), near(1), near(1)));
  EXPECT_THAT(ends("0,1;-2,2;0,255"), ElementsAre(near(0), near(-2), near(0), near(1), near(2),
                                                  testing::FloatNear(255, 1e-3f)));
}

TEST_F(M02, GivenAFileBesideThatIsWrong_WhenPlanned_ThenTheMessageNamesItAndTheModel) {
  const Model yolo{.outputs = {{1, 84, 8400}}};
  const auto with = [&](const std::string& text) {
    folder_.write("model.onnx.modelinfo", "[modelinfo]\nversion=1.0\n" + text);
    return refusal(yolo);
  };
  EXPECT_THAT(with("[images]\ndir=input\ndims=1,3,320,320\n"),
              AllOf(HasSubstr("model.onnx.modelinfo"), HasSubstr("[1,3,320,320]"),
                    HasSubstr("[1,3,640,640]")));
  EXPECT_THAT(with("[output0]\ntype=uint8\n"), AllOf(HasSubstr("uint8"), HasSubstr("float32")));
  EXPECT_THAT(with("[other]\ndims=1\n"), HasSubstr("'other', which the model has not"));
  EXPECT_THAT(with("group-id=ssd-mobilenet-v1-variant-1-out\n"),
              AllOf(HasSubstr("model.onnx.modelinfo"), HasSubstr("ssd"), HasSubstr("[1,84,8400]")));
  EXPECT_THAT(with("odd\n"), AllOf(HasSubstr("model.onnx.modelinfo"), HasSubstr("line 3")));
  EXPECT_EQ(with("[images]\ndir=input\ndims=-1,3,640,-1\n"), "was planned as yolov8");
  // The only input may have another name there.
  EXPECT_EQ(with("[picture]\ndir=input\ndims=1,3,640,640\n"), "was planned as yolov8");
}

TEST_F(M02, GivenAFlagOfTheNormalisation_WhenPlanned_ThenNothingOfTheFilesIsMixedIn) {
  folder_.write("model.json", R"({"model_info": {"mean_values": "1 2 3", "scale_values": "4 5 6",
                                  "confidence_threshold": 0.4}})");
  const Model yolo{.outputs = {{1, 84, 8400}}};
  PrepareOptions options;
  options.scale = 0.5f;
  const auto scaled = plan(yolo, options);
  ASSERT_TRUE(scaled) << scaled.error().message();
  EXPECT_EQ(scaled->manifest.preprocess.scale, 0.5f);
  EXPECT_THAT(scaled->manifest.preprocess.mean, ElementsAre(0, 0, 0));
  EXPECT_THAT(scaled->manifest.preprocess.std, ElementsAre(1, 1, 1));
  EXPECT_EQ(scaled->manifest.threshold, 0.4f) << "other things that the file says hold";
  EXPECT_THAT(scaled->notes, Contains(AllOf(HasSubstr("not used"), HasSubstr("mean"),
                                            HasSubstr("model.json"), HasSubstr("--scale"))));
  options.scale.reset();
  options.mean = {7, 8, 9};
  const auto shifted = plan(yolo, options);
  ASSERT_TRUE(shifted) << shifted.error().message();
  EXPECT_FLOAT_EQ(shifted->manifest.preprocess.scale, 1.0f / 255) << "usual for the family";
  EXPECT_THAT(shifted->manifest.preprocess.mean, ElementsAre(7, 8, 9));
  EXPECT_THAT(shifted->manifest.preprocess.std, ElementsAre(1, 1, 1));
  // Where nothing is usual, the file's scale is no answer any more.
  options.order = ChannelOrder::kRgb;
  options.fit = Fit::kStretch;
  options.task = "classification";
  EXPECT_THAT(refusal({.outputs = {{1, 10}}}, options), HasSubstr("give --scale"));
  folder_.write("model.onnx.modelinfo",
                "[modelinfo]\nversion=1.0\n[images]\ndir=input\nranges=-1,1\n");
  options.scale = 2.0f;
  options.mean.reset();
  const auto ranges = plan({.outputs = {{1, 10}}}, options);
  ASSERT_TRUE(ranges) << ranges.error().message();
  EXPECT_EQ(ranges->manifest.preprocess.scale, 2.0f);
  EXPECT_THAT(ranges->manifest.preprocess.mean, ElementsAre(0, 0, 0));
}

TEST_F(M02, GivenAListOfOneLabel_WhenPlanned_ThenItIsOneClass) {
  folder_.write("model.json", R"({"model_info": {"labels": ["traffic light"]}})");
  const auto planned = plan({.outputs = {{1, 5, 8400}}});
  ASSERT_TRUE(planned) << planned.error().message();
  EXPECT_THAT(planned->manifest.labels, ElementsAre("traffic light"));
}

TEST_F(M02, GivenAPictureThatMayBeEither_WhenPlanned_ThenItsLayoutIsTheSaidOne) {
  const Model model{.outputs = {{1, 84, 100}}, .input = {1, 3, 64, 3}};
  PrepareOptions options = usual_input();
  options.family = "raw";
  const auto layout = [&](const std::string& order) {
    const auto planned = plan_with(model, "[images]\ndir=input\n" + order, options);
    EXPECT_TRUE(planned) << planned.error().message();
    return planned ? planned->manifest.preprocess.layout : TensorLayout::kAny;
  };
  EXPECT_EQ(layout("dims-order=row-major\n"), TensorLayout::kNhwc);
  EXPECT_EQ(layout("dims-order=col-major\n"), TensorLayout::kNchw);
  EXPECT_EQ(layout(""), TensorLayout::kNchw);
}

TEST_F(M02, GivenAMapThatMayBeEither_WhenPlanned_ThenItsClassesAreWhereItIsSaid) {
  // Either axis may be the classes'.
  const Model model{.outputs = {{1, 21, 21, 21}}, .input = {1, 3, 64, 64}};
  for (const auto& [order, layout] :
       {std::pair("row-major", TensorLayout::kNhwc), std::pair("col-major", TensorLayout::kNchw)}) {
    const auto planned = plan_with(
        model, str_format("[output0]\ndir=output\ndims-order={}\n", order), usual_input());
    ASSERT_TRUE(planned) << planned.error().message();
    EXPECT_EQ(planned->manifest.family, "semantic");
    EXPECT_EQ(planned->manifest.outputs.at(0).layout, layout);
    const auto again = parse_manifest(to_manifest_json(
        planned->manifest,
        std::vector{ManifestArtefact{
            .path = "model.onnx", .sha256 = std::string(64, 'a'), .is_model = true}},
        "MIT", "given"));
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->manifest.outputs.at(0).layout, layout);
  }
}

TEST_F(M02, GivenAnOrderThatTheShapesContradict_WhenPlanned_ThenBothAreNamed) {
  const Model yolo{.outputs = {{1, 25200, 85}}};
  const std::string output = "[output0]\ndir=output\ndims-order=";
  const Model together{.outputs = {{1, 25200, 85}}, .input = {1, 640, 640, 3}};
  EXPECT_THAT(refusal_with(together, "[images]\ndir=input\ndims-order=col-major\n"),
              AllOf(HasSubstr("model.onnx.modelinfo"), HasSubstr("'images' is col-major"),
                    HasSubstr("channels last")));
  EXPECT_THAT(refusal_with(yolo, output + "col-major\n"),
              AllOf(HasSubstr("model.onnx.modelinfo"), HasSubstr("'output0' is col-major"),
                    HasSubstr("yolov5"), HasSubstr("[1,25200,85]"), HasSubstr("--family")));
  const Model map{.outputs = {{1, 64, 64, 21}}, .input = {1, 3, 64, 64}};
  EXPECT_THAT(refusal_with(map, output + "col-major\n", usual_input()),
              AllOf(HasSubstr("'output0' is col-major"), HasSubstr("semantic")));
  // One channel is both.
  const Model mask{.outputs = {{1, 1, 64, 64}}, .input = {1, 3, 64, 64}, .ends_in = {"Sigmoid"}};
  EXPECT_EQ(refusal_with(mask, output + "col-major\n", usual_input()), "was planned as semantic");
  // A flag wins over the file, and that is told.
  PrepareOptions options;
  options.family = "yolov5";
  const auto planned = plan_with(yolo, output + "col-major\n", options);
  ASSERT_TRUE(planned) << planned.error().message();
  EXPECT_THAT(planned->notes,
              Contains(AllOf(HasSubstr("not used: dims-order"), HasSubstr("--family"))));
}

TEST_F(M02, GivenTheUsualOrderInWords_WhenPlanned_ThenItContradictsNoShape) {
  const std::string output = "[output0]\ndir=output\ndims-order=";
  const Model yolo{.outputs = {{1, 84, 8400}}};
  EXPECT_EQ(refusal_with(yolo, "[images]\ndir=input\ndims-order=row-major\n"),
            "was planned as yolov8");
  EXPECT_EQ(refusal_with(yolo, output + "row-major\n"), "was planned as yolov8");
  EXPECT_EQ(refusal_with(yolo, output + "col-major\n"), "was planned as yolov8");
  EXPECT_EQ(refusal_with({.outputs = {{1, 25200, 85}}}, output + "row-major\n"),
            "was planned as yolov5");
  const Model map{.outputs = {{1, 21, 64, 64}}, .input = {1, 3, 64, 64}};
  EXPECT_EQ(refusal_with(map, output + "row-major\n", usual_input()), "was planned as semantic");
  PrepareOptions options = usual_input();
  options.family = "semantic";
  const auto planned = plan_with(map, output + "row-major\n", options);
  ASSERT_TRUE(planned) << planned.error().message();
  EXPECT_EQ(planned->manifest.family, "semantic");
}

}  // namespace
}  // namespace penstock
