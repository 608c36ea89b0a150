// SPDX-License-Identifier: Apache-2.0
//
// Contract M06: whatever the file is, opening it gives one clear error (or a session whose runs
// do).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "penstock/base/str_format.h"
#include "penstock/memory/cpu/cpu_device.h"
#include "penstock/model/onnx_reader.h"
#include "penstock/model/session.h"
#include "penstock/model/testing/session_support.h"
#include "penstock/model/testing/test_models.h"

namespace penstock {
namespace {

using namespace model_testing;  // NOLINT: the suite's own vocabulary
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class HostileModel {
 public:
  /// Opens `onnx` as the adding model.
  Result<std::shared_ptr<Session>> open(const std::string& onnx,
                                        const SessionOptions& options = {}) {
    return open_session(
        device_,
        bare_manifest(folder_, onnx, {rows_of_two("a"), rows_of_two("b")}, {rows_of_two("y")}),
        options);
  }
  /// The one error of opening `onnx`, which must be a single line that names the model.
  Error refusal(const std::string& onnx) {
    auto opened = open(onnx);
    if (opened) {
      ADD_FAILURE() << "was opened";
      return {ErrorKind::kInternal, ""};
    }
    EXPECT_THAT(opened.error().message(),
                AllOf(HasSubstr("model 'tiny' (onnxruntime"), Not(HasSubstr("\n"))));
    return opened.error();
  }
  Result<std::vector<Tensor>> run(Session& session) {
    return session.run(
        std::vector{floats(*device_, "a", {1, 2}, {1, 2}), floats(*device_, "b", {1, 2}, {3, 4})});
  }
  const TemporaryFolder& folder() const { return folder_; }
  const DevicePtr& device() const { return device_; }

 private:
  TemporaryFolder folder_;
  DevicePtr device_ = make_cpu_device({});
};

OnnxBuilder two_inputs() {
  OnnxBuilder model;
  model.input("a", DataType::kFloat32, {"N", 2})
      .input("b", DataType::kFloat32, {"N", 2})
      .output("y", DataType::kFloat32, {"N", 2});
  return model;
}

TEST(M06, GivenAModelCutAtEveryKibibyte_WhenOpened_ThenItIsRefused) {
  HostileModel hostile;
  const std::string whole = make_square_finder_nanodet(128).onnx;
  ASSERT_GT(whole.size(), 50u * 1024);
  for (std::size_t size = 0; size < whole.size(); size += 1024) {
    SCOPED_TRACE(size);
    EXPECT_EQ(hostile.refusal(whole.substr(0, size)).kind(), ErrorKind::kCorrupt);
  }
}

TEST(M06, GivenASmallModelCutAtEveryByte_WhenOpened_ThenItIsRefused) {
  HostileModel hostile;
  const std::string whole = add_model();
  ASSERT_TRUE(hostile.open(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    hostile.refusal(whole.substr(0, size));
  }
}

TEST(M06, GivenBytesThatAreNoModel_WhenOpened_ThenTheyAreRefusedAsCorrupt) {
  HostileModel hostile;
  std::mt19937 random(7);
  std::string noise(100000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  for (const std::string& bytes :
       {std::string(), std::string("hello"), std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16),
        noise, std::string(100000, '\0'), std::string(100000, '\xff')}) {
    SCOPED_TRACE(bytes.substr(0, 8));
    const Error error = hostile.refusal(bytes);
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    EXPECT_THAT(error.message(), HasSubstr("not a plausible ONNX model"));
  }
}

TEST(M06, GivenFlippedBytes_WhenOpenedAndRun_ThenItFailsOrWorksButNeverCrashes) {
  HostileModel hostile;
  const std::string whole = add_model();
  std::mt19937 random(42);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    for (int flips = 0; flips < 1 + i % 3; ++flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    auto opened = hostile.open(bytes);
    if (opened) {
      static_cast<void>(hostile.run(**opened));
    } else {
      ++refused;
      EXPECT_THAT(opened.error().message(), HasSubstr("model 'tiny'"));
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(M06, GivenACyclicGraph_WhenOpened_ThenItIsRefused) {
  HostileModel hostile;
  OnnxBuilder model = two_inputs();
  model.node("Add", {"a", "q"}, {"p"})
      .node("Add", {"p", "b"}, {"q"})
      .node("Identity", {"q"}, {"y"});
  hostile.refusal(model.build());
}

TEST(M06, GivenAnUnknownOperatorOrDomain_WhenOpened_ThenItIsNamed) {
  HostileModel hostile;
  OnnxBuilder op = two_inputs();
  op.node("Frobnicate", {"a", "b"}, {"y"});
  EXPECT_THAT(hostile.refusal(op.build()).message(), HasSubstr("Frobnicate"));
  OnnxBuilder domain = two_inputs();
  domain.node("Add", {"a", "b"}, {"y"}, {}, "com.example");
  EXPECT_THAT(hostile.refusal(domain.build()).message(), HasSubstr("com.example"));
}

TEST(M06, GivenAShapeThatOverflows_WhenOpened_ThenTheTensorIsNamed) {
  HostileModel hostile;
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  OnnxBuilder constant = two_inputs();
  constant.constant("w", {kHuge, kHuge}, std::vector<float>{1}).node("Add", {"a", "w"}, {"y"});
  EXPECT_THAT(hostile.refusal(constant.build()).message(),
              AllOf(HasSubstr("tensor 'w'"), HasSubstr("overflowing shape")));
  OnnxBuilder claim = two_inputs();
  claim.constant("w", {1, kHuge}, std::vector<float>{1}).node("Add", {"a", "w"}, {"y"});
  EXPECT_THAT(hostile.refusal(claim.build()).message(),
              HasSubstr("tensor 'w' claims 1099511627776 elements"));
  OnnxBuilder negative = two_inputs();
  negative.constant("w", {-1, 2}, std::vector<float>{1, 2}).node("Add", {"a", "w"}, {"y"});
  EXPECT_THAT(hostile.refusal(negative.build()).message(), HasSubstr("tensor 'w'"));
  OnnxBuilder input;
  input.input("a", DataType::kFloat32, {kHuge, kHuge})
      .output("y", DataType::kFloat32, {1})
      .node("ReduceSum", {"a"}, {"y"});
  EXPECT_THAT(hostile.refusal(input.build()).message(), HasSubstr("value 'a'"));
}

TEST(M06, GivenExternalData_WhenItIsNoHashedArtefact_ThenItIsRefusedUnread) {
  HostileModel hostile;
  hostile.folder().write("beside.bin", std::string(8, '\0'));
  for (const char* location :
       {"../../etc/passwd", "/etc/passwd", "beside.bin", "./beside.bin", ""}) {
    SCOPED_TRACE(location);
    OnnxBuilder model = two_inputs();
    model.external_constant("w", {1, 2}, location).node("Add", {"a", "w"}, {"y"});
    const Error error = hostile.refusal(model.build());
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    EXPECT_THAT(error.message(), HasSubstr(std::string("external data from '") + location + "'"));
  }
}

TEST(M06, GivenExternalDataThatTheManifestNames_WhenRun_ThenItIsUsed) {
  HostileModel hostile;
  const std::vector<float> weights{100, 200};
  hostile.folder().write("weights.bin", {reinterpret_cast<const char*>(weights.data()),
                                         weights.size() * sizeof(float)});
  OnnxBuilder model;
  model.input("a", DataType::kFloat32, {"N", 2})
      .output("y", DataType::kFloat32, {"N", 2})
      .external_constant("w", {1, 2}, "weights.bin")
      .node("Add", {"a", "w"}, {"y"});
  Manifest manifest =
      bare_manifest(hostile.folder(), model.build(), {rows_of_two("a")}, {rows_of_two("y")});
  manifest.data = {{.path = "weights.bin"}};
  auto opened = open_session(hostile.device(), manifest);
  ASSERT_TRUE(opened) << opened.error().message();
  const auto outputs = (*opened)->run(std::vector{floats(*hostile.device(), "a", {1, 2}, {1, 2})});
  ASSERT_TRUE(outputs) << outputs.error().message();
  EXPECT_THAT(values_of(*hostile.device(), outputs->front()), testing::ElementsAre(101, 202));
}

TEST(M06, GivenElementsOfFewerBitsThanAByte_WhenRead_ThenAByteHasSeveralAndNoMore) {
  struct Type {
    std::int64_t onnx, elements_a_byte;
  };
  // int8; then uint4, int4, float4e2m1; uint2, int2.
  for (const Type type : {Type{3, 1}, {21, 2}, {22, 2}, {23, 2}, {25, 4}, {26, 4}}) {
    SCOPED_TRACE(type.onnx);
    const std::string bytes(4096, '\x12');
    const auto summary_of = [&](std::int64_t elements) {
      OnnxBuilder model = two_inputs();
      model.raw_constant("w", type.onnx, {1, elements}, bytes).node("Add", {"a", "b"}, {"y"});
      const std::string onnx = model.build();
      EXPECT_LT(onnx.size(), 4096u + 512u);
      return read_onnx_summary(std::as_bytes(std::span(onnx)));
    };
    const auto full = summary_of(4096 * type.elements_a_byte);
    EXPECT_TRUE(full) << full.error().message();
    const auto claimed = summary_of((4096 + 512) * type.elements_a_byte);
    ASSERT_FALSE(claimed);
    EXPECT_EQ(claimed.error().kind(), ErrorKind::kCorrupt);
    EXPECT_THAT(claimed.error().message(), HasSubstr("tensor 'w' claims"));
  }
}

TEST(M06, GivenAFileThatChangedAfterItsManifestWasRead_WhenOpened_ThenItIsRefused) {
  HostileModel hostile;
  const Manifest manifest = bare_manifest(hostile.folder(), add_model(),
                                          {rows_of_two("a"), rows_of_two("b")}, {rows_of_two("y")});
  OnnxBuilder swapped = two_inputs();
  swapped.node("Sub", {"a", "b"}, {"y"});
  hostile.folder().write("model.onnx", swapped.build());
  const auto opened = open_session(hostile.device(), manifest);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(opened.error().message(), HasSubstr("changed since its manifest was read"));
}

// 2^36 floats are 256 GiB. The arena's own limit must refuse them: an allocator without one would
// ask the kernel, which may say yes and kill somebody later.
constexpr std::int64_t kVast = std::int64_t{1} << 36;
constexpr const char* kArenaRefusal = "smaller than requested bytes of 274877906944";

TEST(M06, GivenAGraphThatAsksForGigabytes_WhenRun_ThenTheRunFailsAndTheNextWorks) {
  HostileModel hostile;
  OnnxBuilder model = two_inputs();
  model.constant("size", {1}, std::vector<std::int64_t>{kVast})
      .constant("first", {1}, std::vector<std::int64_t>{0})
      .constant("flat", {1}, std::vector<std::int64_t>{-1})
      .node("Reshape", {"b", "flat"}, {"b_flat"})
      .node("Gather", {"b_flat", "first"}, {"b_first"})
      .node("Expand", {"b_first", "size"}, {"vast"})
      .node("ReduceMax", {"vast"}, {"top"}, {{"keepdims", std::int64_t{0}}})
      .node("Add", {"a", "top"}, {"y"});
  auto opened = hostile.open(model.build());
  ASSERT_TRUE(opened) << opened.error().message();
  const auto outputs = hostile.run(**opened);
  const Result<void> outcome =
      outputs ? outputs->front().ready.wait() : std::unexpected(outputs.error());
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message(),
              AllOf(HasSubstr("model 'tiny'"), HasSubstr(kArenaRefusal)));
  auto next = hostile.open(add_model());
  ASSERT_TRUE(next) << next.error().message();
  EXPECT_TRUE(hostile.run(**next));
}

TEST(M06, GivenAConstantOfGigabytes_WhenOpened_ThenItIsNotMadeWhileLoading) {
  HostileModel hostile;
  OnnxBuilder model = two_inputs();
  model.constant("size", {1}, std::vector<std::int64_t>{kVast})
      .node("ConstantOfShape", {"size"}, {"vast"})
      .node("ReduceMax", {"vast"}, {"top"}, {{"keepdims", std::int64_t{0}}})
      .node("Add", {"a", "top"}, {"y"});
  auto opened = hostile.open(model.build());
  ASSERT_TRUE(opened) << opened.error().message();
  const auto outputs = hostile.run(**opened);
  const Result<void> outcome =
      outputs ? outputs->front().ready.wait() : std::unexpected(outputs.error());
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message(), HasSubstr(kArenaRefusal));
}

/// Products of matrices that follow one another: hours of work in a small file. `start` is the
/// matrix.
OnnxBuilder endless_products(const std::string& start) {
  OnnxBuilder model = two_inputs();
  std::string last = start;
  for (int i = 0; i < 4000; ++i) {
    const std::string next = str_format("product{}", i);
    model.node("MatMul", {last, start}, {next});
    last = next;
  }
  model.node("ReduceMax", {last}, {"top"}, {{"keepdims", std::int64_t{0}}})
      .node("Add", {"a", "top"}, {"y"});
  return model;
}

/// endless_products() of a matrix that its input makes, so that no optimiser sees it.
std::string hours_of_work() {
  OnnxBuilder model = endless_products("matrix");
  model.constant("size", {2}, std::vector<std::int64_t>{1024, 1024})
      .constant("first", {1}, std::vector<std::int64_t>{0})
      .constant("flat", {1}, std::vector<std::int64_t>{-1})
      .node("Reshape", {"b", "flat"}, {"b_flat"})
      .node("Gather", {"b_flat", "first"}, {"b_first"})
      .node("Expand", {"b_first", "size"}, {"matrix"});
  return model.build();
}

TEST(M06, GivenAModelThatNeedsHours_WhenInterrupted_ThenItEndsAsCancelled) {
  HostileModel hostile;
  auto opened = hostile.open(hours_of_work());
  ASSERT_TRUE(opened) << opened.error().message();
  std::thread interrupter([session = *opened] { session->interrupt(); });
  const auto outputs = hostile.run(**opened);
  const Result<void> outcome =
      outputs ? outputs->front().ready.wait() : std::unexpected(outputs.error());
  interrupter.join();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind(), ErrorKind::kCancelled);
}

TEST(M06, GivenAModelThatNeedsHours_WhenRun_ThenItIsStoppedAtTheLimit) {
  HostileModel hostile;
  auto opened = hostile.open(hours_of_work(), {.run_limit = std::chrono::seconds(3)});
  ASSERT_TRUE(opened) << opened.error().message();
  const auto outputs = hostile.run(**opened);
  const Result<void> outcome =
      outputs ? outputs->front().ready.wait() : std::unexpected(outputs.error());
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message(), HasSubstr("took longer than the limit of 3 s"));
}

TEST(M06, GivenAnAttributeOfTwoGibibytes_WhenRead_ThenItIsRefusedUnallocated) {
  HostileModel hostile;
  // graph (7) of node (1) of attribute (5) whose text (4) says that it has 2^31 bytes.
  const std::string attribute("\x22\x80\x80\x80\x80\x08", 6);
  std::string node("\x2a");
  node += static_cast<char>(attribute.size());
  node += attribute;
  std::string graph("\x0a");
  graph += static_cast<char>(node.size());
  graph += node;
  std::string model("\x08\x08\x3a", 3);
  model += static_cast<char>(graph.size());
  model += graph;
  EXPECT_EQ(hostile.refusal(model).kind(), ErrorKind::kCorrupt);
}

TEST(M06, GivenGraphsNestedTooDeeply_WhenRead_ThenTheyAreRefused) {
  // attribute (g = 6) of node (attribute = 5) of graph (node = 1), 40 times over.
  const auto wrap = [](char key, const std::string& inner) {
    std::string out(1, key);
    std::size_t size = inner.size();
    while (size >= 0x80) {
      out.push_back(static_cast<char>(size | 0x80));
      size >>= 7;
    }
    out.push_back(static_cast<char>(size));
    return out + inner;
  };
  std::string graph;
  for (int i = 0; i < 40; ++i) {
    graph = wrap(1 << 3 | 2, wrap(5 << 3 | 2, wrap(6 << 3 | 2, graph)));
  }
  const std::string model = std::string("\x08\x08", 2) + wrap(7 << 3 | 2, graph);
  HostileModel hostile;
  EXPECT_THAT(hostile.refusal(model).message(), HasSubstr("nest deeper than 32"));
}

TEST(M06, GivenAFolderOrNothing_WhenInspected_ThenItIsAnError) {
  const TemporaryFolder folder;
  EXPECT_EQ(inspect_model(folder.path() / "none").error().kind(), ErrorKind::kNotFound);
  EXPECT_FALSE(inspect_model(folder.path()));
}

TEST(InspectModel, GivenAGeneratedModel_WhenInspected_ThenInputsAndOutputsAreListed) {
  const TemporaryFolder folder;
  const std::string onnx = OnnxBuilder()
                               .input("x", DataType::kUint8, {"N", 3, 32, 32})
                               .input("w", DataType::kFloat32, {1})
                               .output("y", DataType::kInt64, {"N", "found"})
                               .constant("w", {1}, std::vector<float>{1})
                               .external_constant("v", {1}, "v.bin")
                               .build();
  const auto summary = inspect_model(folder.write("model.onnx", onnx));
  ASSERT_TRUE(summary) << summary.error().message();
  EXPECT_EQ(summary->ir_version, 8);
  EXPECT_EQ(summary->producer, "penstock-test");
  ASSERT_EQ(summary->inputs.size(), 1u) << "an input with an initialiser is a default";
  EXPECT_EQ(summary->inputs[0].name, "x");
  EXPECT_EQ(summary->inputs[0].type, DataType::kUint8);
  ASSERT_EQ(summary->inputs[0].dims.size(), 4u);
  EXPECT_EQ(summary->inputs[0].dims[0].symbol, "N");
  EXPECT_EQ(summary->inputs[0].dims[2].minimum, 32);
  ASSERT_EQ(summary->outputs.size(), 1u);
  EXPECT_EQ(summary->outputs[0].dims[1].symbol, "found");
  EXPECT_THAT(summary->external_files, testing::ElementsAre("v.bin"));
}

}  // namespace
}  // namespace penstock
