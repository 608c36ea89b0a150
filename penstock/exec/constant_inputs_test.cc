// SPDX-License-Identifier: Apache-2.0
//
// Inputs besides the picture (contract M03): bound by name to the manifest's constants, or refused.
#include "penstock/exec/constant_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>

#include "penstock/base/str_format.h"
#include "penstock/exec/frame_inference.h"
#include "penstock/media/test_frames.h"
#include "penstock/model/testing/test_models.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using testing::make_device;

const Dimension kBatch{1, 64, "N"};

TensorSpec spec_of(const std::string& name, DataType type, std::vector<Dimension> dims) {
  return {.name = name, .type = type, .layout = TensorLayout::kAny, .dims = std::move(dims)};
}

class M03 : public ::testing::TestWithParam<const char*> {
 protected:
  Manifest manifest_with(std::vector<InputConstant> constants) {
    Manifest manifest;
    manifest.preprocess.input_name = "picture";
    manifest.constants = std::move(constants);
    return manifest;
  }
  std::string refusal(const TensorSpec& spec, std::vector<InputConstant> constants,
                      std::size_t most_slots = 64) {
    const auto made =
        ConstantInputs::create(std::array{spec}, manifest_with(std::move(constants)), most_slots);
    return made ? "accepted" : made.error().message();
  }

  const DevicePtr device_ = make_device(GetParam());
};
INSTANTIATE_TEST_SUITE_P(cpu, M03, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, M03, ::testing::Values("sim"));

TEST_P(M03, GivenConstants_WhenMadeForABatch_ThenEachItemHasThemInTheInputsType) {
  const std::array specs{spec_of("sizes", DataType::kInt64, {kBatch, Dimension::fixed(2)}),
                         spec_of("picture", DataType::kFloat32, {kBatch}),
                         spec_of("factor", DataType::kFloat32, {Dimension::fixed(1)})};
  auto inputs = ConstantInputs::create(specs,
                                       manifest_with({{.input = "factor", .values = {0.5}},
                                                      {.input = "sizes", .values = {640, -480}}}),
                                       3);
  ASSERT_TRUE(inputs) << inputs.error().message();
  for (int again = 0; again < 2; ++again) {
    const auto tensors = inputs->get(*device_, 3);
    ASSERT_TRUE(tensors) << tensors.error().message();
    ASSERT_EQ(tensors->size(), 2u);
    const Tensor& sizes = (*tensors)[0];
    EXPECT_EQ(sizes.name, "sizes");
    EXPECT_EQ(sizes.shape, (Shape{3, 2}));
    EXPECT_TRUE(check(sizes, specs[0], device_->id()));
    const auto bytes = testing::read_storage(*device_, sizes.data.storage);
    std::array<std::int64_t, 6> numbers;
    ASSERT_GE(bytes.size(), sizeof numbers);
    std::memcpy(numbers.data(), bytes.data(), sizeof numbers);
    EXPECT_THAT(numbers, ::testing::ElementsAre(640, -480, 640, -480, 640, -480));
    EXPECT_EQ((*tensors)[1].shape, (Shape{1}));
    EXPECT_THAT(testing::read_tensor(*device_, (*tensors)[1]), ::testing::ElementsAre(0.5f));
  }
  EXPECT_EQ(device_->ledger().count(CopyClass::kUpload), 2u);
}

TEST_P(M03, GivenWhatDoesNotFit_WhenCreated_ThenTheInputIsNamed) {
  const TensorSpec sizes = spec_of("sizes", DataType::kInt32, {kBatch, Dimension::fixed(2)});
  EXPECT_THAT(refusal(sizes, {}), HasSubstr("nothing says what 'sizes' gets"));
  EXPECT_THAT(refusal(sizes, {{"sizes", {1}}}), HasSubstr("takes 2 numbers a batch item"));
  EXPECT_THAT(refusal(sizes, {{"sizes", {1, 2.5}}}), HasSubstr("can't hold the constant 2.5"));
  EXPECT_THAT(refusal(sizes, {{"sizes", {1, 3e9}}}), HasSubstr("'sizes' is int32"));
  EXPECT_EQ(refusal(sizes, {{"sizes", {1, 2147483647}}}), "accepted");
  const TensorSpec open = spec_of("sizes", DataType::kFloat32, {kBatch, Dimension{1, 9, "M"}});
  EXPECT_THAT(refusal(open, {{"sizes", {1}}}), HasSubstr("dimension 1 is open"));
  const TensorSpec flag = spec_of("flag", DataType::kBool, {Dimension::fixed(1)});
  EXPECT_THAT(refusal(flag, {{"flag", {1}}}), HasSubstr("bool"));
  const TensorSpec real = spec_of("real", DataType::kFloat32, {Dimension::fixed(1)});
  EXPECT_THAT(refusal(real, {{"real", {1e300}}}), HasSubstr("can't hold the constant 1e+300"));
  // The largest int64 that a double can say; 2^63 itself is one too many.
  const TensorSpec wide = spec_of("wide", DataType::kInt64, {Dimension::fixed(1)});
  EXPECT_EQ(refusal(wide, {{"wide", {9223372036854774784.0}}}), "accepted");
  EXPECT_THAT(refusal(wide, {{"wide", {9223372036854775808.0}}}), HasSubstr("can't hold"));
  EXPECT_EQ(refusal(wide, {{"wide", {-9223372036854775808.0}}}), "accepted");
  EXPECT_THAT(refusal(wide, {{"wide", {std::numeric_limits<double>::quiet_NaN()}}}),
              HasSubstr("can't hold"));
}

// 4096 numbers of 8 bytes are 32 KiB an item; 256 KiB may be uploaded (contract A01).
TEST_P(M03, GivenAConstantTooLargeForTheBatch_WhenCreated_ThenThatIsToldBeforeAnyBatch) {
  const std::vector<InputConstant> constants{{"table", std::vector<double>(4096, 1)}};
  const TensorSpec table = spec_of("table", DataType::kInt64, {kBatch, Dimension::fixed(4096)});
  auto eight = ConstantInputs::create(std::array{table}, manifest_with(constants), 8);
  ASSERT_TRUE(eight) << eight.error().message();
  const auto made = eight->get(*device_, 8);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->front().data.size, 262144u);
  EXPECT_THAT(refusal(table, constants, 9),
              ::testing::AllOf(HasSubstr("'table'"), HasSubstr("batch of 9"),
                               HasSubstr("262144 that may be uploaded"), HasSubstr("at most 8")));
  // The same numbers for the whole batch are uploaded once.
  const TensorSpec once = spec_of("table", DataType::kInt64, {Dimension::fixed(4096)});
  EXPECT_EQ(refusal(once, constants, 64), "accepted");
}

/// Answers one box from (0, 0) to the numbers of "sizes", whatever the picture.
model_testing::TestModel size_teller() {
  model_testing::OnnxBuilder graph;
  graph.input("picture", DataType::kFloat32, {"N", 3, 32, 32})
      .input("sizes", DataType::kInt64, {"N", 2})
      .output("boxes", DataType::kFloat32, {"N", 1, 6})
      .constant("score_class", {1, 2}, std::vector<float>{0.75f, 0})
      .constant("nothing", {1}, std::vector<float>{0})
      .constant("one_one", {2}, std::vector<std::int64_t>{1, 1})
      .constant("boxes_shape", {3}, std::vector<std::int64_t>{-1, 1, 6});
  graph.node("Cast", {"sizes"}, {"corner"}, {{"to", std::int64_t{1}}})
      .node("Mul", {"corner", "nothing"}, {"origin"})
      .node("ReduceMean", {"picture"}, {"mean"},
            {{"axes", std::vector<std::int64_t>{2, 3}}, {"keepdims", std::int64_t{0}}})
      .node("ReduceSum", {"mean"}, {"level"}, {{"keepdims", std::int64_t{1}}})
      .node("Mul", {"level", "nothing"}, {"zero"})
      .node("Reshape", {"zero", "one_one"}, {"zero_row"})
      .node("Add", {"origin", "zero_row"}, {"start"})
      .node("Add", {"origin", "score_class"}, {"tail"})
      .node("Concat", {"start", "corner", "tail"}, {"row"}, {{"axis", std::int64_t{1}}})
      .node("Reshape", {"row", "boxes_shape"}, {"boxes"});
  model_testing::TestModel model;
  model.name = "size-teller";
  model.onnx = graph.build();
  model.inputs = {
      spec_of("picture", DataType::kFloat32,
              {kBatch, Dimension::fixed(3), Dimension::fixed(32), Dimension::fixed(32)}),
      spec_of("sizes", DataType::kInt64, {kBatch, Dimension::fixed(2)})};
  model.outputs = {
      spec_of("boxes", DataType::kFloat32, {kBatch, Dimension::fixed(1), Dimension::fixed(6)})};
  model.family = "yolo-end-to-end";
  model.labels = {"thing"};
  model.preprocess.input_name = "picture";
  model.preprocess.width = model.preprocess.height = 32;
  return model;
}

/// As raw tensors: the mean of the picture's channels plus that of a table of 4096 numbers an item.
model_testing::TestModel table_reader() {
  model_testing::OnnxBuilder graph;
  graph.input("picture", DataType::kFloat32, {"N", 3, 32, 32})
      .input("table", DataType::kInt64, {"N", 4096})
      .output("sum", DataType::kFloat32, {"N", 3})
      .node("Cast", {"table"}, {"numbers"}, {{"to", std::int64_t{1}}})
      .node("ReduceMean", {"numbers"}, {"mean_number"}, {{"axes", std::vector<std::int64_t>{1}}})
      .node("ReduceMean", {"picture"}, {"mean"},
            {{"axes", std::vector<std::int64_t>{2, 3}}, {"keepdims", std::int64_t{0}}})
      .node("Add", {"mean", "mean_number"}, {"sum"});
  model_testing::TestModel model;
  model.name = "table-reader";
  model.onnx = graph.build();
  model.inputs = {
      spec_of("picture", DataType::kFloat32,
              {kBatch, Dimension::fixed(3), Dimension::fixed(32), Dimension::fixed(32)}),
      spec_of("table", DataType::kInt64, {kBatch, Dimension::fixed(4096)})};
  model.outputs = {spec_of("sum", DataType::kFloat32, {kBatch, Dimension::fixed(3)})};
  model.task = model.family = "raw";
  model.postprocess = " ";
  model.labels = {};
  model.preprocess.input_name = "picture";
  model.preprocess.width = model.preprocess.height = 32;
  return model;
}

TEST_P(M03, GivenAModelWithAnotherInput_WhenInferred_ThenItGetsItsConstantByName) {
  const auto folder =
      std::filesystem::path(::testing::TempDir()) / str_format("penstock-constants-{}", getpid());
  auto manifest = load_manifest(model_testing::write_model_folder(size_teller(), folder));
  ASSERT_TRUE(manifest) << manifest.error().message();
  const auto refused = FrameInference::open(device_, *manifest, {.workers = 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(refused.error().message(), HasSubstr("nothing says what 'sizes' gets"));

  manifest->constants = {{.input = "sizes", .values = {16, 8}}};
  const auto inference = FrameInference::open(device_, *manifest, {.workers = 1});
  ASSERT_TRUE(inference) << inference.error().message();
  auto future = (*inference)
                    ->executor()
                    .submit({.frame = testing::make_frame(*device_, testing::Picture(32, 32)),
                             .roi = {},
                             .source = {"camera"},
                             .generation = 0},
                            WhenFull::kWait);
  ASSERT_TRUE(future);
  const auto result = future->get();
  ASSERT_TRUE(result) << result.error().message();
  ASSERT_EQ(result->objects.size(), 1u);
  EXPECT_FLOAT_EQ(result->objects[0].width, 16);
  EXPECT_FLOAT_EQ(result->objects[0].height, 8);
}

TEST_P(M03, GivenAConstantTooLargeForTheBatch_WhenOpened_ThenItIsRefusedThen) {
  const auto folder =
      std::filesystem::path(::testing::TempDir()) / str_format("penstock-table-{}", getpid());
  auto manifest = load_manifest(model_testing::write_model_folder(table_reader(), folder));
  ASSERT_TRUE(manifest) << manifest.error().message();
  manifest->constants = {{.input = "table", .values = std::vector<double>(4096, 1)}};
  InferenceOptions options{.workers = 1};
  options.batch_size = 8;
  const auto eight = FrameInference::open(device_, *manifest, options);
  EXPECT_TRUE(eight) << eight.error().message();
  options.batch_size = 9;
  const auto nine = FrameInference::open(device_, *manifest, options);
  ASSERT_FALSE(nine);
  EXPECT_EQ(nine.error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(nine.error().message(), HasSubstr("'table'"));
}

/// Answers one box from (0, 0) to a tenth of the mean red and green, its score a two hundredth of
/// the mean blue, from pictures of `type` and `layout`, as floats or halves.
model_testing::TestModel level_teller(DataType type, DataType told, TensorLayout layout) {
  constexpr std::int64_t kToFloat = 1;
  constexpr std::int64_t kToHalf = 10;
  model_testing::OnnxBuilder graph;
  const bool last = layout == TensorLayout::kNhwc;
  const Shape shape = last ? Shape{1, 32, 32, 3} : Shape{1, 3, 32, 32};
  graph.input("picture", type, {shape[0], shape[1], shape[2], shape[3]})
      .output("boxes", told, {1, 1, 6})
      .constant("origin", {1, 2}, std::vector<float>{0, 0})
      .constant("class", {1, 1}, std::vector<float>{0})
      .constant("shares", {1, 3}, std::vector<float>{0.1f, 0.1f, 0.005f})
      .constant("boxes_shape", {3}, std::vector<std::int64_t>{1, 1, 6})
      .node("Cast", {"picture"}, {"levels"}, {{"to", kToFloat}})
      .node("ReduceMean", {"levels"}, {"mean"},
            {{"axes", std::vector<std::int64_t>{last ? 1 : 2, last ? 2 : 3}},
             {"keepdims", std::int64_t{0}}})
      .node("Mul", {"mean", "shares"}, {"told"})
      .node("Concat", {"origin", "told", "class"}, {"row"}, {{"axis", std::int64_t{1}}})
      .node("Reshape", {"row", "boxes_shape"}, {"float_boxes"})
      .node("Cast", {"float_boxes"}, {"boxes"},
            {{"to", told == DataType::kFloat16 ? kToHalf : kToFloat}});
  model_testing::TestModel model;
  model.name =
      str_format("level-teller-{}-{}-{}", to_string(type), to_string(told), to_string(layout));
  model.onnx = graph.build();
  const auto fixed = [](std::int64_t value) { return Dimension::fixed(value); };
  model.inputs = {spec_of("picture", type,
                          {fixed(shape[0]), fixed(shape[1]), fixed(shape[2]), fixed(shape[3])})};
  model.inputs[0].layout = layout;
  model.outputs = {spec_of("boxes", told, {fixed(1), fixed(1), fixed(6)})};
  model.family = "yolo-end-to-end";
  model.labels = {"thing"};
  model.preprocess.input_name = "picture";
  model.preprocess.layout = layout;
  model.preprocess.width = model.preprocess.height = 32;
  return model;
}

TEST_P(M03, GivenPicturesOfEachTypeAndLayout_WhenInferred_ThenTheModelSeesTheSameLevels) {
  using enum DataType;
  struct Case {
    DataType type, told;
    TensorLayout layout;
  };
  // Red 50, green 100 and blue 200 in BT.709 limited.
  const testing::Picture picture(32, 32, 99, 177, 102);
  for (const Case& c : {Case{kFloat32, kFloat32, TensorLayout::kNchw},
                        {kFloat16, kFloat16, TensorLayout::kNchw},
                        {kUint8, kFloat16, TensorLayout::kNchw},
                        {kUint8, kFloat32, TensorLayout::kNchw},
                        {kFloat32, kFloat32, TensorLayout::kNhwc},
                        {kFloat16, kFloat16, TensorLayout::kNhwc},
                        {kUint8, kFloat32, TensorLayout::kNhwc}}) {
    const model_testing::TestModel model = level_teller(c.type, c.told, c.layout);
    SCOPED_TRACE(model.name);
    const auto folder = std::filesystem::path(::testing::TempDir()) /
                        str_format("penstock-{}-{}", model.name, getpid());
    const auto manifest = load_manifest(model_testing::write_model_folder(model, folder));
    ASSERT_TRUE(manifest) << manifest.error().message();
    EXPECT_EQ(manifest->preprocess.type, c.type);
    const auto inference = FrameInference::open(device_, *manifest, {.workers = 1});
    ASSERT_TRUE(inference) << inference.error().message();
    auto future = (*inference)
                      ->executor()
                      .submit({.frame = testing::make_frame(*device_, picture),
                               .roi = {},
                               .source = {"camera"},
                               .generation = 0},
                              WhenFull::kWait);
    ASSERT_TRUE(future);
    const auto result = future->get();
    ASSERT_TRUE(result) << result.error().message();
    ASSERT_EQ(result->objects.size(), 1u);
    EXPECT_NEAR(result->objects[0].width, 5, 0.16f);
    EXPECT_NEAR(result->objects[0].height, 10, 0.16f);
    EXPECT_NEAR(result->objects[0].confidence, 1, 0.008f);
  }
}

}  // namespace
}  // namespace penstock
