// SPDX-License-Identifier: Apache-2.0
//
// Contract P02 for the families of the whole picture: outputs written down by hand, results
// computed by hand; and P03: what they read back, to the byte.
#include "penstock/task/whole_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "penstock/task/test_whole_picture.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(cpu, P02, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P02, ::testing::Values("sim"));
INSTANTIATE_TEST_SUITE_P(cpu, P03, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P03, ::testing::Values("sim"));
INSTANTIATE_TEST_SUITE_P(cpu, P04, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P04, ::testing::Values("sim"));

using Scores = std::vector<std::pair<int, float>>;

void expect_classes(const Result<Decoded>& got, const Scores& wanted) {
  ASSERT_TRUE(got) << message_of(got);
  ASSERT_EQ(got->classes.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(got->classes[i].class_id, wanted[i].first);
    EXPECT_FLOAT_EQ(got->classes[i].score, wanted[i].second);
  }
}

// ---- classification ----

TEST_P(P02, GivenProbabilities_WhenClassified_ThenTheTopKComeAsTheyAre) {
  const std::vector<float> values{0.1f, 0.3f, 0.05f, 0.3f, 0.25f};
  for (const Shape& shape : {Shape{1, 5}, Shape{1, 5, 1, 1}, Shape{1, 1, 1, 5}}) {
    SCOPED_TRACE(to_string(shape));
    const std::vector<Output> outputs{floats(shape, values)};
    Manifest manifest = manifest_of("classification", outputs, 5);
    manifest.top_k = 3;
    expect_classes(decode(manifest, outputs), {{1, 0.3f}, {3, 0.3f}, {4, 0.25f}});
    manifest.top_k = 100;
    expect_classes(decode(manifest, outputs, {.threshold = 0.1f}),
                   {{1, 0.3f}, {3, 0.3f}, {4, 0.25f}, {0, 0.1f}});
    expect_classes(decode(manifest, outputs, {.threshold = 0.9f}), {});
  }
}

TEST_P(P02, GivenLogits_WhenClassified_ThenSoftmaxIsAppliedOnceAndStably) {
  // e^0 : e^ln2 : e^ln5 = 1 : 2 : 5, wherever the logits lie.
  for (const float base : {0.0f, 1000.0f, -1000.0f}) {
    SCOPED_TRACE(base);
    const std::vector<Output> outputs{
        floats({1, 3}, {base, base + std::log(2.0f), base + std::log(5.0f)})};
    Manifest manifest = manifest_of("classification", outputs, 3);
    manifest.scores = ScoreKind::kLogits;
    const auto decoded = decode(manifest, outputs);
    ASSERT_TRUE(decoded) << message_of(decoded);
    ASSERT_EQ(decoded->classes.size(), 3u);
    // Logits near 1000 are floats 6e-5 apart.
    EXPECT_NEAR(decoded->classes[0].score, 5.0 / 8, 1e-4);
    EXPECT_NEAR(decoded->classes[1].score, 2.0 / 8, 1e-4);
    EXPECT_NEAR(decoded->classes[2].score, 1.0 / 8, 1e-4);
    EXPECT_EQ(decoded->classes[0].class_id, 2);
  }
}

TEST_P(P02, GivenScoresThatAreNoNumbers_WhenClassified_ThenTheyNeverWinNorSpoilTheRest) {
  const std::vector<Output> outputs{floats({1, 6}, {kNan, 0, kInf, std::log(3.0f), -kInf, kNan})};
  Manifest manifest = manifest_of("classification", outputs, 6);
  manifest.scores = ScoreKind::kLogits;
  expect_classes(decode(manifest, outputs), {{3, 0.75f}, {1, 0.25f}});
  manifest.scores = ScoreKind::kProbabilities;
  expect_classes(decode(manifest, outputs), {{3, std::log(3.0f)}, {1, 0.0f}});
  const std::vector<Output> nothing{floats({1, 6}, {kNan, kNan, kInf, kInf, -kInf, kNan})};
  expect_classes(decode(manifest, nothing), {});
}

TEST_P(P02, GivenManyEqualScores_WhenClassified_ThenTheLowestIndicesWinInOrder) {
  std::vector<float> values(1000, 0.001f);
  values[999] = 0.5f;
  values[500] = 0.002f;
  const std::vector<Output> outputs{floats({1, 1000}, values)};
  const Manifest manifest = manifest_of("classification", outputs, 1000);
  expect_classes(decode(manifest, outputs),
                 {{999, 0.5f}, {500, 0.002f}, {0, 0.001f}, {1, 0.001f}, {2, 0.001f}});
}

TEST_P(P02, GivenABatch_WhenItem1IsClassified_ThenItsScoresAreRead) {
  const std::vector<Output> outputs{floats({2, 2}, {0.9f, 0.1f, 0.2f, 0.8f})};
  const Manifest manifest = manifest_of("classification", outputs, 2);
  expect_classes(decode(manifest, outputs, kReadAll, 1), {{1, 0.8f}, {0, 0.2f}});
  EXPECT_THAT(message_of(decode(manifest, outputs, kReadAll, 2)), HasSubstr("no batch item 2"));
}

TEST_P(P02, GivenOutputsThatDoNotFit_WhenOpened_ThenTheErrorSaysWhy) {
  struct Case {
    const char* task;
    std::vector<Output> outputs;
    int labels;
    const char* why;
  };
  const Output ten = floats({1, 10}, std::vector<float>(10));
  const Output map = floats({1, 2, 2, 2}, std::vector<float>(8));
  for (const Case& c : {
           Case{"classification", {ten}, 9, "9 labels for 10 classes"},
           Case{"classification", {ten, ten}, 10, "reads one output, the manifest names 2"},
           Case{"classification", {}, 10, "names 0: none"},
           Case{"classification", {map}, 2, "needs [N,classes]"},
           Case{"classification", {longs({1, 2}, {1, 2})}, 2, "int64"},
           Case{"semantic-segmentation", {map}, 2, "either axis"},
           Case{"semantic-segmentation", {map}, 0, "nothing tells"},
           Case{"semantic-segmentation", {map}, 3, "3 labels"},
           Case{"semantic-segmentation", {ten}, 10, "scores need"},
           Case{"semantic-segmentation",
                {floats({1, 1, 4, 2}, std::vector<float>(8))},
                1,
                "one channel"},
           Case{"embedding", {map}, 0, "needs [N,values]"},
           Case{"embedding", {ten, ten}, 0, "reads one output"},
           Case{"raw", {}, 0, "names no output"},
       }) {
    SCOPED_TRACE(std::string(c.task) + " " + c.why);
    const auto decoder = create_decoder(manifest_of(c.task, c.outputs, c.labels), {});
    ASSERT_FALSE(decoder);
    EXPECT_EQ(decoder.error().kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(decoder.error().message(), HasSubstr(c.why));
  }
}

TEST_P(P02, GivenOpenDimensions_WhenRun_ThenTheyAreCheckedThen) {
  const std::vector<Output> outputs{floats({1, 3}, {0.1f, 0.7f, 0.2f})};
  Manifest manifest = manifest_of("classification", outputs, 4);
  manifest.outputs[0].dims[1] = {1, 100, "C"};
  EXPECT_THAT(message_of(decode(manifest, outputs)), HasSubstr("4 labels for 3 classes"));
  manifest.labels.pop_back();
  EXPECT_TRUE(decode(manifest, outputs));
}

// ---- embedding ----

TEST_P(P02, GivenAnEmbedding_WhenDecoded_ThenItIsNormalisedWhereTheManifestSaysSo) {
  for (const Shape& shape : {Shape{2, 3}, Shape{2, 3, 1, 1}}) {
    const std::vector<Output> outputs{floats(shape, {1, 2, 2, 0, 30, -40})};
    Manifest manifest = manifest_of("embedding", outputs, 0);
    auto decoded = decode(manifest, outputs, kReadAll, 1);
    ASSERT_TRUE(decoded) << message_of(decoded);
    EXPECT_THAT(decoded->embedding, ElementsAre(0, 30, -40));
    manifest.normalise = true;
    decoded = decode(manifest, outputs, kReadAll, 1);
    ASSERT_TRUE(decoded) << message_of(decoded);
    EXPECT_THAT(decoded->embedding, ElementsAre(0, 0.6f, -0.8f));
  }
}

TEST_P(P02, GivenAnEmbeddingThatIsNone_WhenDecoded_ThenItIsUnusable) {
  for (const float wrong : {kNan, kInf, -kInf}) {
    const std::vector<Output> outputs{floats({1, 3}, {1, 2, wrong})};
    for (const bool normalise : {false, true}) {
      Manifest manifest = manifest_of("embedding", outputs, 0);
      manifest.normalise = normalise;
      const auto decoded = decode(manifest, outputs);
      ASSERT_TRUE(decoded) << message_of(decoded);
      EXPECT_EQ(decoded->unusable, "output 'out1': a value of the embedding is not finite");
      EXPECT_TRUE(decoded->embedding.empty());
    }
  }
  const std::vector<Output> zero{floats({1, 3}, {0, 0, 0})};
  Manifest manifest = manifest_of("embedding", zero, 0);
  auto decoded = decode(manifest, zero);
  ASSERT_TRUE(decoded) << message_of(decoded);
  EXPECT_EQ(decoded->unusable, "");
  EXPECT_THAT(decoded->embedding, ElementsAre(0, 0, 0));
  manifest.normalise = true;
  decoded = decode(manifest, zero);
  ASSERT_TRUE(decoded) << message_of(decoded);
  EXPECT_EQ(decoded->unusable, "output 'out1': an embedding of length 0 can't be normalised");
  EXPECT_TRUE(decoded->embedding.empty());
}

// ---- raw ----

TEST_P(P02, GivenRawOutputs_WhenReadBack_ThenEveryTypeComesExactly) {
  const std::int64_t most = std::int64_t{1} << 53;
  const std::vector<Output> outputs{
      floats({2, 2}, {0, 0, 0.1f, kInf}),
      longs({2, 2}, {0, 0, most - 1, -most}),
      // One half, the smallest subnormal, the largest finite half, minus infinity.
      {DataType::kFloat16, {2, 2}, bytes_of(std::vector<std::uint16_t>{0, 0, 0x3800, 0x0001})},
      {DataType::kFloat16, {2, 2}, bytes_of(std::vector<std::uint16_t>{0, 0, 0x7bff, 0xfc00})},
      {DataType::kFloat64, {2, 1}, bytes_of(std::vector<double>{0, 0.1})},
      {DataType::kInt32, {2, 1}, bytes_of(std::vector<std::int32_t>{0, -2147483647})},
      {DataType::kInt8, {2, 1}, bytes_of(std::vector<std::int8_t>{0, -128})},
      {DataType::kUint8, {2, 1}, bytes_of(std::vector<std::uint8_t>{0, 255})},
      {DataType::kBool, {2, 1}, bytes_of(std::vector<std::uint8_t>{0, 1})}};
  const auto decoded = decode(manifest_of("raw", outputs, 0), outputs, {.read_tensors = true}, 1);
  ASSERT_TRUE(decoded) << message_of(decoded);
  ASSERT_EQ(decoded->tensors.size(), outputs.size());
  EXPECT_EQ(decoded->tensors[0].name, "out1");
  EXPECT_EQ(decoded->tensors[0].shape, (Shape{1, 2}));
  EXPECT_THAT(decoded->tensors[0].values, ElementsAre(double{0.1f}, double{kInf}));
  EXPECT_THAT(decoded->tensors[1].values, ElementsAre(9007199254740991.0, -9007199254740992.0));
  EXPECT_THAT(decoded->tensors[2].values, ElementsAre(0.5, 5.9604644775390625e-08));
  EXPECT_THAT(decoded->tensors[3].values, ElementsAre(65504.0, double{-kInf}));
  EXPECT_THAT(decoded->tensors[4].values, ElementsAre(0.1));
  EXPECT_THAT(decoded->tensors[5].values, ElementsAre(-2147483647.0));
  EXPECT_THAT(decoded->tensors[6].values, ElementsAre(-128.0));
  EXPECT_THAT(decoded->tensors[7].values, ElementsAre(255.0));
  EXPECT_THAT(decoded->tensors[8].values, ElementsAre(1.0));
}

TEST_P(P02, GivenAnIntegerThatNoDoubleHolds_WhenReadBack_ThenTheTensorIsNamed) {
  const std::vector<Output> outputs{longs({1, 1}, {(std::int64_t{1} << 53) + 1})};
  EXPECT_THAT(message_of(decode(manifest_of("raw", outputs, 0), outputs, {.read_tensors = true})),
              HasSubstr("output 'out1': 9007199254740993"));
  EXPECT_TRUE(decode(manifest_of("raw", outputs, 0), outputs));
}

TEST_P(P02, GivenAModelOfOneFrame_WhenReadBack_ThenOutputsWithoutBatchAreWhole) {
  const std::vector<Output> outputs{floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({}, {7})};
  Manifest manifest = manifest_of("raw", outputs, 0);
  EXPECT_THAT(message_of(decode(manifest, outputs)), HasSubstr("'out2' has no batch dimension"));
  manifest.inputs = {{.name = "in", .dims = {Dimension::fixed(1), Dimension::fixed(3)}}};
  const auto decoded = decode(manifest, outputs, {.read_tensors = true});
  ASSERT_TRUE(decoded) << message_of(decoded);
  EXPECT_EQ(decoded->tensors[0].shape, (Shape{2, 3}));
  EXPECT_EQ(decoded->tensors[0].values.size(), 6u);
  EXPECT_EQ(decoded->tensors[1].values, (std::vector<double>{7}));
  manifest.inputs[0].dims[0] = {1, 64, "N"};
  manifest.outputs.pop_back();
  EXPECT_THAT(message_of(decode(manifest, {outputs[0]})),
              HasSubstr("'out1': its first dimension of 2 is not the batch of input 'in'"));
}

TEST_P(P02, GivenAModelOfOneFrameWithConstants_WhenReadBack_ThenOutputsAreWholeToo) {
  const std::vector<Output> outputs{floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({}, {7})};
  Manifest manifest = manifest_of("raw", outputs, 0);
  // The constant's first dimension is no batch.
  manifest.inputs = {{.name = "size", .dims = {Dimension::fixed(2)}},
                     {.name = "picture", .dims = {Dimension::fixed(1), Dimension::fixed(3)}}};
  manifest.preprocess.input_name = "picture";
  const auto decoded = decode(manifest, outputs, {.read_tensors = true});
  ASSERT_TRUE(decoded) << message_of(decoded);
  EXPECT_EQ(decoded->tensors[0].shape, (Shape{2, 3}));
  EXPECT_EQ(decoded->tensors[0].values, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(decoded->tensors[1].values, (std::vector<double>{7}));
  manifest.inputs[1].dims[0] = {1, 64, "N"};
  manifest.outputs.pop_back();
  EXPECT_THAT(message_of(decode(manifest, {outputs[0]})),
              HasSubstr("'out1': its first dimension of 2 is not the batch of input 'picture'"));
}

// ---- what is read back ----

std::uint64_t read_back_bytes(Device& device) {
  return device.ledger().bytes(CopyClass::kReadback);
}

TEST_P(P03, GivenEachFamily_WhenDecoded_ThenOnlyItsRecordsAreReadBack) {
  struct Case {
    const char* task;
    Output output;
    int labels;
    std::uint64_t bytes;
  };
  for (const Case& c : {
           Case{"classification", floats({2, 1000}, std::vector<float>(2000, 0.1f)), 1000, 5 * 8},
           Case{"classification", floats({2, 3}, std::vector<float>(6, 0.1f)), 3, 3 * 8},
           Case{"semantic-segmentation", floats({2, 3, 64, 80}, std::vector<float>(30720)), 3,
                3 * 4},
           Case{"semantic-segmentation", floats({2, 1, 64, 80}, std::vector<float>(10240)), 0,
                2 * 4},
           Case{"embedding", floats({2, 512}, std::vector<float>(1024, 1.0f)), 0, 512 * 4},
           Case{"raw", floats({2, 512}, std::vector<float>(1024)), 0, 0},
           Case{"text-recognition", floats({2, 40, 3}, std::vector<float>(240)), 3, 40 * 8},
       }) {
    SCOPED_TRACE(c.task);
    const std::uint64_t before = read_back_bytes(*device_);
    const std::uint64_t tensors = device_->ledger().count(CopyClass::kTensor);
    const auto decoded = decode(manifest_of(c.task, {c.output}, c.labels), {c.output}, kReadAll, 1);
    ASSERT_TRUE(decoded) << message_of(decoded);
    EXPECT_EQ(read_back_bytes(*device_) - before, c.bytes);
    EXPECT_EQ(device_->ledger().count(CopyClass::kTensor), tensors) << "tensors are not copied";
  }
  for (const CopyLedger::Row& row : device_->ledger().rows()) {
    if (row.copy_class != CopyClass::kReadback) continue;
    EXPECT_EQ(row.site, "memory/metadata");
  }
}

TEST_P(P03, GivenRawOutputs_WhenNotAskedFor_ThenTheyStayOnTheDeviceAndAlive) {
  const std::vector<Output> outputs{floats({2, 2}, {1, 2, 3, 4}), longs({2, 1}, {5, 6})};
  const auto decoded = decode(manifest_of("raw", outputs, 0), outputs, kReadAll, 1);
  ASSERT_TRUE(decoded) << message_of(decoded);
  EXPECT_TRUE(decoded->tensors.empty());
  ASSERT_EQ(decoded->device.tensors.size(), 2u);
  EXPECT_EQ(decoded->device.item, 1);
  EXPECT_EQ(decoded->device.tensors[0].shape, (Shape{2, 2}));
  EXPECT_EQ(testing::read_tensor(*device_, decoded->device.tensors[0]),
            (std::vector<float>{1, 2, 3, 4}));
}

TEST_P(P03, GivenRawOutputs_WhenAskedFor_ThenTheFramesBytesAreReadBackAndNoMore) {
  const std::vector<Output> outputs{floats({4, 10}, std::vector<float>(40)),
                                    longs({4, 3}, std::vector<std::int64_t>(12))};
  const std::uint64_t before = read_back_bytes(*device_);
  ASSERT_TRUE(decode(manifest_of("raw", outputs, 0), outputs, {.read_tensors = true}, 3));
  EXPECT_EQ(read_back_bytes(*device_) - before, 10u * 4 + 3 * 8);
}

TEST_P(P04, GivenMoreThanMayBeReadBack_WhenOpenedOrRun_ThenItIsRefused) {
  const std::int64_t limit = (256 << 10) / 4;
  const auto open = [&](const char* task, std::int64_t first, std::int64_t second) {
    Manifest manifest = manifest_of(task, {{.shape = {1, first}, .bytes = {}}}, 0);
    if (second > 0) {
      manifest.outputs.push_back(manifest.outputs[0]);
      manifest.outputs[1].dims[1] = Dimension::fixed(second);
    }
    const auto decoder = create_decoder(manifest, {.read_tensors = true});
    return decoder ? std::string() : std::string(to_string(decoder.error().kind()));
  };
  EXPECT_EQ(open("embedding", limit, 0), "");
  EXPECT_EQ(open("embedding", limit + 1, 0), "exhausted");
  EXPECT_EQ(open("raw", limit - 1, 1), "");
  EXPECT_EQ(open("raw", limit, 1), "exhausted");
  EXPECT_EQ(open("classification", kMaxClasses + 1, 0), "exhausted");
  Manifest map = manifest_of("semantic-segmentation",
                             {{.shape = {1, 1, 1 << 14, (1 << 12) + 1}, .bytes = {}}}, 0);
  const auto decoder = create_decoder(map, {});
  ASSERT_FALSE(decoder);
  EXPECT_EQ(decoder.error().kind(), ErrorKind::kExhausted);

  const std::vector<Output> outputs{
      floats({1, limit + 1}, std::vector<float>(std::size_t(limit + 1)))};
  Manifest open_dims = manifest_of("raw", outputs, 0);
  open_dims.outputs[0].dims[1] = {1, 1 << 20, "D"};
  EXPECT_THAT(message_of(decode(open_dims, outputs, {.read_tensors = true})),
              HasSubstr("262148 bytes a frame"));
  EXPECT_TRUE(decode(open_dims, outputs));
}

}  // namespace
}  // namespace penstock
