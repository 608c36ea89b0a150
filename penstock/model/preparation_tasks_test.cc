// SPDX-License-Identifier: Apache-2.0
//
// Contract M02 for every task: what is told from shapes, metadata, files beside the model and
// flags, and what of these contradicts what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/model/manifest_parser.h"
#include "penstock/model/manifest_writer.h"
#include "penstock/model/preparation.h"
#include "penstock/model/testing/onnx_builder.h"
#include "penstock/model/testing/preparation_test_fixture.h"

namespace penstock {
namespace {

using namespace model_testing;  // NOLINT: the suite's own vocabulary
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using M02 = PreparationTest;

TEST_F(M02, GivenExportsOfEveryTask_WhenPlanned_ThenTaskFamilyAndCountsAreRecognised) {
  struct Case {
    const char* task;
    const char* family;
    std::size_t labels, keypoints;
    Model model;
  };
  const std::vector<Case> cases{
      {"instance-segmentation", "yolov8-seg", 80, 0, {{{1, 116, 8400}, {1, 32, 160, 160}}}},
      {"instance-segmentation", "yolov8-seg", 80, 0, {{{1, 32, 160, 160}, {1, 116, 8400}}}},
      {"instance-segmentation",
       "yolo-end-to-end-seg",
       80,
       0,
       {{{1, 300, 38}, {1, 32, 160, 160}}, {{"names", names(80)}, {"task", "segment"}}}},
      {"pose",
       "yolov8-pose",
       1,
       17,
       {{{1, 56, 8400}}, {{"names", "{0: 'person'}"}, {"task", "pose"}, {"kpt_shape", "[17, 3]"}}}},
      {"pose",
       "yolov8-pose",
       2,
       4,
       {{{1, 14, 8400}}, {{"names", names(2)}, {"task", "pose"}, {"kpt_shape", "[4, 2]"}}}},
      {"pose",
       "yolo-end-to-end-pose",
       1,
       17,
       {{{1, 300, 57}}, {{"names", "{0: 'person'}"}, {"task", "pose"}, {"kpt_shape", "[17, 3]"}}}},
      {"pose", "movenet", 1, 17, {{{1, 1, 17, 3}}, {}, {1, 192, 192, 3}}},
      {"pose", "movenet", 1, 17, {{{1, 6, 56}}, {}, {1, 256, 256, 3}}},
      {"oriented-detection",
       "yolov8-obb",
       15,
       0,
       {{{1, 20, 21504}}, {{"names", names(15)}, {"task", "obb"}}, {1, 3, 1024, 1024}}},
      {"oriented-detection",
       "yolo-end-to-end-obb",
       15,
       0,
       {{{1, 300, 7}}, {{"names", names(15)}, {"task", "obb"}}, {1, 3, 1024, 1024}}},
      {"classification",
       "classification",
       1000,
       0,
       {{{1, 1000}},
        {{"names", names(1000)}, {"task", "classify"}, {"imgsz", "[224, 224]"}},
        {1, 3, 224, 224}}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.family);
    const auto planned = plan(c.model);
    ASSERT_TRUE(planned) << planned.error().message();
    EXPECT_EQ(planned->manifest.task, c.task);
    EXPECT_EQ(planned->manifest.family, c.family);
    EXPECT_EQ(planned->manifest.labels.size(), c.labels);
    EXPECT_EQ(planned->manifest.keypoints.size(), c.keypoints);
    EXPECT_THAT(planned->notes, Contains(HasSubstr(str_format("family: {} (", c.family))));
    // What is planned is what the reader of manifests takes.
    const std::vector<ManifestArtefact> artefacts{
        {.path = "model.onnx", .sha256 = std::string(64, 'a'), .is_model = true}};
    const auto read = parse_manifest(
        to_manifest_json(planned->manifest, artefacts, planned->spdx, planned->confidence));
    EXPECT_TRUE(read) << read.error().message();
  }
}

TEST_F(M02, GivenSeveralMissingFlags_WhenPlanned_ThenAllAreAskedForAtOnceAndTheGuessIsNamed) {
  const Model map{.outputs = {{1, 1, "h", "w"}},
                  .input = {1, 3, "h", "w"},
                  .more_inputs = {{2}},
                  .ends_in = {"Sigmoid"}};
  const std::string asked = refusal(map);
  for (const char* flag : {"--constant more0=", "--width", "--height", "--order", "--scale",
                           "--fit", "family 'semantic' is a guess", "--family"}) {
    EXPECT_THAT(asked, HasSubstr(flag));
  }
  // What was given is asked for no more, and who names the family has not guessed.
  PrepareOptions options = usual_input();
  options.constants = {{.input = "more0", .values = {1, 1}}};
  options.width = 64;
  options.family = "db-text";
  const std::string rest = refusal(map, options);
  EXPECT_THAT(rest, HasSubstr("give --height"));
  for (const char* flag : {"--constant", "--width", "--order", "--fit", "guess"}) {
    EXPECT_THAT(rest, Not(HasSubstr(flag)));
  }
  options.height = 64;
  EXPECT_TRUE(plan(map, options)) << refusal(map, options);
}

TEST_F(M02, GivenAMissingFlagAndOutputsOfNoFamily_WhenPlanned_ThenBothAreTold) {
  const Model strange{.outputs = {{1, 2, 3}}, .input = {1, 3, "h", "w"}};
  const auto planned = plan(strange);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(planned.error().message(), HasSubstr("--width --height"));
  EXPECT_THAT(planned.error().message(), HasSubstr("no known family"));
}

TEST_F(M02, GivenWholePictureModels_WhenPlannedWithTheirFlags_ThenEachHasItsSettings) {
  PrepareOptions options = usual_input();
  options.task = "embedding";
  options.normalise = true;
  const Model vector{.outputs = {{"N", 512}}, .input = {"N", 3, 112, 112}};
  const auto embedding = plan(vector, options);
  ASSERT_TRUE(embedding) << embedding.error().message();
  EXPECT_EQ(embedding->manifest.family, "embedding");
  EXPECT_TRUE(embedding->manifest.normalise);
  EXPECT_THAT(embedding->manifest.labels, IsEmpty());

  options = usual_input();
  options.task = "classification";
  options.top_k = 3;
  const auto classes = plan(vector, options);
  ASSERT_TRUE(classes) << classes.error().message();
  EXPECT_EQ(classes->manifest.labels.size(), 512u);
  EXPECT_EQ(classes->manifest.top_k, 3);
  EXPECT_EQ(classes->manifest.threshold, 0.0f);

  options = usual_input();
  options.family = "raw";
  const auto raw = plan({.outputs = {{1, 7, 7, 7, 7}, {1}}}, options);
  ASSERT_TRUE(raw) << raw.error().message();
  EXPECT_EQ(raw->manifest.task, "raw");
  EXPECT_EQ(raw->manifest.outputs.size(), 2u);

  options.family.reset();
  options.outputs = {"output0"};
  const auto map = plan({.outputs = {{1, 21, 65, 65}, {1, 21, 65, 65}}}, options);
  ASSERT_TRUE(map) << map.error().message();
  EXPECT_EQ(map->manifest.family, "semantic");
  EXPECT_EQ(map->manifest.labels.size(), 21u);
  EXPECT_EQ(map->manifest.threshold, 0.5f);
  EXPECT_EQ(map->manifest.outputs.size(), 1u);

  const auto mask = plan(
      {.outputs = {{1, 64, 64, 1}}, .input = {1, 256, 256, 3}, .ends_in = {"Transpose", "Sigmoid"}},
      usual_input());
  ASSERT_TRUE(mask) << mask.error().message();
  EXPECT_THAT(mask->manifest.labels, ElementsAre("background", "foreground"));
  EXPECT_EQ(mask->manifest.scores, ScoreKind::kProbabilities);
}

TEST_F(M02, GivenBlazeFacesOutputs_WhenPlanned_ThenTheyAreKnownWithTheirPreprocessingAndNames) {
  const std::vector<std::vector<Dims>> forms{{{1, 512, 1}, {1, 384, 1}, {1, 512, 16}, {1, 384, 16}},
                                             {{1, 896, 16}, {1, 896, 1}}};
  for (const auto& outputs : forms) {
    const auto face = plan({.outputs = outputs, .input = {1, 128, 128, 3}});
    ASSERT_TRUE(face) << face.error().message();
    EXPECT_EQ(face->manifest.family, "blazeface");
    EXPECT_EQ(face->manifest.task, "pose");
    EXPECT_THAT(face->manifest.labels, ElementsAre("face"));
    EXPECT_THAT(face->manifest.keypoints,
                ElementsAre("right eye", "left eye", "nose", "mouth", "right ear", "left ear"));
    const PreprocessSpec& pre = face->manifest.preprocess;
    EXPECT_FLOAT_EQ(255 * pre.scale - pre.mean[0], 1);
    EXPECT_EQ(pre.fit, Fit::kLetterboxCenter);
    EXPECT_EQ(pre.pad_level, 0);
  }
  // A scale that is said comes without the usual mean.
  PrepareOptions options;
  options.scale = 1.0f / 255;
  const auto scaled = plan({.outputs = forms[1], .input = {1, 128, 128, 3}}, options);
  ASSERT_TRUE(scaled) << scaled.error().message();
  EXPECT_EQ(scaled->manifest.preprocess.mean[0], 0);
  EXPECT_THAT(refusal({.outputs = {{1, 512, 1}, {1, 512, 1}, {1, 512, 16}, {1, 384, 16}}}),
              HasSubstr("no known family"));
}

TEST_F(M02, GivenTextModels_WhenPlanned_ThenTheFlagTellsThemAndLabelsAreTheCharacters) {
  PrepareOptions options = usual_input();
  const Model map{.outputs = {{"N", 1, "h", "w"}}, .ends_in = {"Sigmoid"}};
  // Probabilities of one channel are a foreground's to those who are not told.
  EXPECT_EQ(refusal(map, options), "was planned as semantic");
  options.family = "db-text";
  const auto found = plan(map, options);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->manifest.task, "oriented-detection");
  EXPECT_THAT(found->manifest.labels, ElementsAre("text"));
  EXPECT_EQ(found->manifest.unclip_ratio, 1.5f);

  const Model line{.outputs = {{"N", 40, 3}}, .input = {"N", 3, 48, 320}, .ends_in = {"Softmax"}};
  options.family = "ctc";
  EXPECT_THAT(refusal(line, options), AllOf(HasSubstr("--labels"), HasSubstr("blank")));
  options.labels = {"blank", "a"};
  EXPECT_THAT(refusal(line, options), HasSubstr("2 labels for 3 classes"));
  options.labels = {"blank", "a", " "};
  const auto read = plan(line, options);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->manifest.task, "text-recognition");
  EXPECT_EQ(read->manifest.scores, ScoreKind::kProbabilities);
  EXPECT_THAT(read->manifest.labels, ElementsAre("blank", "a", " "));
  options.iou_threshold = 0.5f;
  EXPECT_THAT(refusal(line, options), HasSubstr("--iou-threshold"));
}

TEST_F(M02, GivenTheEndOfTheGraph_WhenPlanned_ThenScoresAreWhatItMakes) {
  const auto scores = [&](const std::vector<std::string>& ends_in) {
    const auto planned =
        plan({.outputs = {{1, 10}}, .output_name = "logits", .ends_in = ends_in}, usual_input());
    EXPECT_TRUE(planned) << planned.error().message();
    return planned ? std::optional(planned->manifest.scores) : std::nullopt;
  };
  EXPECT_EQ(scores({"Softmax", "Gemm"}), ScoreKind::kProbabilities);
  EXPECT_EQ(scores({"Identity", "Reshape", "Softmax"}), ScoreKind::kProbabilities);
  EXPECT_EQ(scores({"Cast", "Sigmoid"}), ScoreKind::kProbabilities);
  EXPECT_EQ(scores({"Gemm", "Softmax"}), ScoreKind::kLogits);
  EXPECT_EQ(scores({}), ScoreKind::kLogits);
  PrepareOptions options = usual_input();
  options.scores = ScoreKind::kProbabilities;
  const auto given = plan({.outputs = {{1, 10}}, .output_name = "logits"}, options);
  ASSERT_TRUE(given) << given.error().message();
  EXPECT_EQ(given->manifest.scores, ScoreKind::kProbabilities);
  options.scores = ScoreKind::kLogits;
  EXPECT_THAT(
      refusal({.outputs = {{1, 10}}, .output_name = "logits", .ends_in = {"Softmax"}}, options),
      AllOf(HasSubstr("--scores says logits"), HasSubstr("Softmax")));
}

TEST_F(M02, GivenAMapOfIntegers_WhenPlanned_ThenItHasClassesAndNoScores) {
  PrepareOptions options = usual_input();
  options.labels = {"sky", "road", "car"};
  for (const Dims& dims : {Dims{1, 64, 64}, Dims{1, 1, 64, 64}, Dims{1, 64, 64, 1}}) {
    for (const DataType type : {DataType::kInt32, DataType::kInt64}) {
      const Model model{.outputs = {dims}, .input = {1, 3, 128, 128}, .type = type};
      const auto planned = plan(model, options);
      ASSERT_TRUE(planned) << planned.error().message();
      EXPECT_EQ(planned->manifest.family, "semantic");
      EXPECT_THAT(planned->manifest.labels, ElementsAre("sky", "road", "car"));
      EXPECT_THAT(planned->notes, Contains(HasSubstr("the outputs are classes already")));
      EXPECT_THAT(refusal(model, usual_input()), HasSubstr("--labels"));
      PrepareOptions logits = options;
      logits.scores = ScoreKind::kLogits;
      EXPECT_THAT(refusal(model, logits), HasSubstr("has classes, not scores"));
    }
  }
  EXPECT_THAT(refusal({.outputs = {{1, 3, 64, 64}}, .type = DataType::kInt64}, options),
              AllOf(HasSubstr("no known family"), HasSubstr("[1,3,64,64] of int64")));
  options.labels.clear();
  options.family = "rtdetr";
  EXPECT_THAT(refusal({.outputs = {{1, 64, 64}}, .type = DataType::kInt64}, options),
              AllOf(HasSubstr("[1,64,64] of int64"), HasSubstr("rtdetr")));
}

TEST_F(M02, GivenPicturesOfOtherTypes_WhenPlanned_ThenTheInputsTypeAndScaleFollow) {
  Model model{.outputs = {{1, 84, 8400}}, .metadata = {{"names", names(80)}}};
  model.input_type = DataType::kUint8;
  const auto bytes = plan(model);
  ASSERT_TRUE(bytes) << bytes.error().message();
  EXPECT_EQ(bytes->manifest.preprocess.type, DataType::kUint8);
  EXPECT_EQ(bytes->manifest.preprocess.scale, 1.0f);
  PrepareOptions scaled;
  scaled.scale = 0.5f;
  EXPECT_THAT(refusal(model, scaled), HasSubstr("takes the levels themselves"));
  model.input_type = DataType::kFloat16;
  const auto halves = plan(model);
  ASSERT_TRUE(halves) << halves.error().message();
  EXPECT_EQ(halves->manifest.preprocess.type, DataType::kFloat16);
  EXPECT_FLOAT_EQ(halves->manifest.preprocess.scale, 1.0f / 255);
  model.input_type = DataType::kInt64;
  EXPECT_THAT(refusal(model), HasSubstr("'images' is int64"));
}

TEST_F(M02, GivenOpenDimensions_WhenPlanned_ThenOnlyThePicturesBatchIsBounded) {
  Model model{.outputs = {{"N", 7}, {"boxes", 7}}, .input = {"N", 3, 64, 64}};
  PrepareOptions options = usual_input();
  options.family = "raw";
  const auto planned = plan(model, options);
  ASSERT_TRUE(planned) << planned.error().message();
  EXPECT_EQ(planned->manifest.inputs.at(0).dims[0].maximum, 64);
  EXPECT_EQ(planned->manifest.outputs.at(0).dims[0].maximum, 64);
  EXPECT_GT(planned->manifest.outputs.at(1).dims[0].maximum, 1000);
}

TEST_F(M02, GivenAPipeAsModel_WhenPlanned_ThenItIsRefusedWithoutWaiting) {
  const auto pipe = folder_.path() / "pipe.onnx";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto planned = plan_preparation(pipe, {});
  ASSERT_FALSE(planned);
  EXPECT_THAT(planned.error().message(), HasSubstr("pipe.onnx"));
}

TEST_F(M02, GivenOtherInputs_WhenPlanned_ThenEachNeedsItsConstant) {
  Model model{.outputs = {{1, 84, 8400}}, .metadata = {{"names", names(80)}}};
  model.more_inputs = {{1, 2}};
  EXPECT_THAT(refusal(model), HasSubstr("give --constant more0=NUMBER"));
  PrepareOptions options;
  options.constants = {{.input = "more0", .values = {640, 640}}};
  const auto planned = plan(model, options);
  ASSERT_TRUE(planned) << planned.error().message();
  ASSERT_EQ(planned->manifest.inputs.size(), 2u);
  EXPECT_EQ(planned->manifest.inputs[0].name, "images");
  ASSERT_EQ(planned->manifest.constants.size(), 1u);
  const auto again = parse_manifest(
      to_manifest_json(planned->manifest,
                       std::vector{ManifestArtefact{
                           .path = "model.onnx", .sha256 = std::string(64, 'a'), .is_model = true}},
                       "MIT", "given"));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_THAT(again->manifest.constants.at(0).values, ElementsAre(640, 640));
  options.constants.push_back({.input = "more1", .values = {1}});
  EXPECT_THAT(refusal(model, options), HasSubstr("no input 'more1'"));
  model.more_inputs = {{1, 3, 64, 64}};
  EXPECT_THAT(refusal(model, options), HasSubstr("of which 2 can be a picture"));
}

TEST_F(M02, GivenAGraphThatGoesInACircle_WhenPlanned_ThenTheSearchForItsEndEnds) {
  OnnxBuilder onnx;
  onnx.input("images", DataType::kFloat32, {1, 3, 64, 64})
      .output("logits", DataType::kFloat32, {1, 10})
      .node("Identity", {"a"}, {"logits"})
      .node("Reshape", {"logits"}, {"a"});
  const auto planned = plan_preparation(folder_.write("circle.onnx", onnx.build()), usual_input());
  ASSERT_TRUE(planned) << planned.error().message();
  EXPECT_EQ(planned->manifest.scores, ScoreKind::kLogits);
}

TEST_F(M02, GivenContradictions_WhenPlanned_ThenTheMessageNamesBoth) {
  const Model yolo{.outputs = {{1, 84, 8400}}};
  PrepareOptions options;
  options.task = "pose";
  options.family = "yolov8";
  EXPECT_THAT(refusal(yolo, options), AllOf(HasSubstr("--family"), HasSubstr("--task"),
                                            HasSubstr("pose"), HasSubstr("detection")));
  EXPECT_THAT(refusal(yolo, {.family = "nanodet"}),
              AllOf(HasSubstr("--family"), HasSubstr("nanodet"), HasSubstr("[1,84,8400]")));
  EXPECT_THAT(refusal(yolo, {.family = "yolov99"}), HasSubstr("there is no family 'yolov99'"));
  EXPECT_THAT(refusal(yolo, {.labels = {"a", "b"}}),
              AllOf(HasSubstr("2 labels for 80 classes"), HasSubstr("--labels")));
  EXPECT_THAT(refusal({.outputs = {{1, 84, 8400}}, .metadata = {{"end2end", "True"}}}),
              AllOf(HasSubstr("end2end"), HasSubstr("yolov8"), HasSubstr("--family")));
  EXPECT_THAT(refusal({.outputs = {{1, 56, 8400}},
                       .metadata = {{"task", "pose"}, {"kpt_shape", "[16, 3]"}}}),
              HasSubstr("of task pose"));
  options = {};
  options.keypoints = {"left", "right"};
  EXPECT_THAT(refusal({.outputs = {{1, 1, 17, 3}}, .input = {1, 192, 192, 3}}, options),
              AllOf(HasSubstr("2 keypoints (--keypoints)"), HasSubstr("17")));
  EXPECT_THAT(refusal(yolo, options), AllOf(HasSubstr("--keypoints"), HasSubstr("detection")));
  options = {};
  options.top_k = 3;
  EXPECT_THAT(refusal(yolo, options), AllOf(HasSubstr("--top-k"), HasSubstr("detection")));
  options = {};
  options.threshold = 1.5f;
  EXPECT_THAT(refusal(yolo, options), AllOf(HasSubstr("--threshold"), HasSubstr("0..1")));
  EXPECT_THAT(refusal({.outputs = {{1, 84, "rows"}}, .input = {1, 3, "h", "w"}},
                      {.width = 640, .height = 640}),
              HasSubstr("no known family"));
}

TEST_F(M02, GivenWhatMayBeTwoThings_WhenPlanned_ThenTheMessageNamesTheFlagThatDecides) {
  EXPECT_THAT(refusal({.outputs = {{1, 56, 8400}}}),
              AllOf(HasSubstr("52 classes"), HasSubstr("--task pose")));
  EXPECT_THAT(refusal({.outputs = {{1, 512}}}),
              AllOf(HasSubstr("--task classification"), HasSubstr("--task embedding"),
                    HasSubstr("--family raw")));
  EXPECT_THAT(refusal({.outputs = {{1, 1, 640, 640}}}),
              AllOf(HasSubstr("--task semantic-segmentation"), HasSubstr("--family raw")));
  EXPECT_THAT(refusal({.outputs = {{1, 2, 3, 4, 5}}}), HasSubstr("--family raw"));
  PrepareOptions options;
  options.task = "classification";
  EXPECT_THAT(refusal({.outputs = {{1, 512}}}, options),
              AllOf(HasSubstr("--order"), HasSubstr("--scale"), HasSubstr("--fit")));
  options.task = "detection";
  const auto detection = plan({.outputs = {{1, 56, 8400}}}, options);
  ASSERT_TRUE(detection) << detection.error().message();
  EXPECT_EQ(detection->manifest.labels.size(), 52u);
}

TEST_F(M02, GivenMetadataOfATask_WhenAFlagSaysAnother_ThenTheFlagWins) {
  PrepareOptions options = usual_input();
  options.family = "raw";
  const auto raw =
      plan({.outputs = {{1, 84, 8400}}, .metadata = {{"task", "detect"}, {"names", names(80)}}},
           options);
  ASSERT_TRUE(raw) << raw.error().message();
  EXPECT_EQ(raw->manifest.task, "raw");
  EXPECT_THAT(raw->manifest.labels, IsEmpty());
  EXPECT_THAT(raw->notes, Contains(AllOf(HasSubstr("not used"), HasSubstr("metadata 'task'"))));
}

TEST_F(M02, GivenAnOpenSize_WhenItIsNoMultipleOfTheStride_ThenBothAreNamed) {
  const Model model{.outputs = {{1, 84, "rows"}},
                    .metadata = {{"names", names(80)}, {"stride", "32"}},
                    .input = {1, 3, "h", "w"}};
  PrepareOptions options;
  options.width = 640;
  options.height = 500;
  EXPECT_THAT(refusal(model, options),
              AllOf(HasSubstr("--height"), HasSubstr("500"), HasSubstr("stride"), HasSubstr("32")));
}

}  // namespace
}  // namespace penstock
