// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/session.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "penstock/memory/testing/devices.h"
#include "penstock/model/testing/session_support.h"
#include "penstock/model/testing/test_models.h"

namespace penstock {
namespace {

using namespace model_testing;  // NOLINT: the suites' own vocabulary
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

/// The adding model on one device.
class AddSession : public testing::TestWithParam<TestDevice> {
 protected:
  void open(const SessionOptions& options = {}) {
    auto opened =
        open_session(device_,
                     bare_manifest(folder_, add_model(), {rows_of_two("a"), rows_of_two("b")},
                                   {rows_of_two("y")}),
                     options);
    ASSERT_TRUE(opened) << opened.error().message();
    session_ = *opened;
  }
  /// a = [[v, 1]], b = [[10, 20]].
  Result<std::vector<Tensor>> run(float v) {
    return session_->run(std::vector{floats(*device_, "a", {1, 2}, {v, 1}),
                                     floats(*device_, "b", {1, 2}, {10, 20})});
  }

  TemporaryFolder folder_;
  DevicePtr device_ = GetParam().open({});
  std::shared_ptr<Session> session_;
};

class M03 : public AddSession {};
INSTANTIATE_TEST_SUITE_P(cpu, M03, testing::Values(cpu_test_device()));
INSTANTIATE_TEST_SUITE_P(sim, M03, testing::Values(sim_test_device()));

TEST_P(M03, GivenFittingInputsInAnyOrder_WhenRun_ThenTheyAreMatchedByName) {
  open();
  const auto outputs = session_->run(std::vector{floats(*device_, "b", {2, 2}, {10, 20, 30, 40}),
                                                 floats(*device_, "a", {2, 2}, {1, 2, 3, 4})});
  ASSERT_TRUE(outputs) << outputs.error().message();
  ASSERT_EQ(outputs->size(), 1u);
  EXPECT_EQ(outputs->front().name, "y");
  EXPECT_EQ(outputs->front().shape, (Shape{2, 2}));
  EXPECT_THAT(values_of(*device_, outputs->front()), ElementsAre(11, 22, 33, 44));
}

TEST_P(M03, GivenAnInputThatDoesNotFit_WhenRun_ThenItIsRefusedByName) {
  open();
  const Tensor good = floats(*device_, "b", {1, 2}, {10, 20});
  const DevicePtr other_device = GetParam().open({});
  struct Case {
    const char* what;
    Tensor a;
    const char* message;
  };
  Tensor too_long = floats(*device_, "a", {1, 2}, {1, 2, 3});
  Tensor too_short = floats(*device_, "a", {1, 2}, {1});
  Tensor no_memory{
      .name = "a", .type = DataType::kFloat32, .shape = {1, 2}, .data = {}, .ready = {}};
  const std::vector<float> host_values{1, 2};
  Tensor elsewhere = no_memory;
  if (device_->id().kind == DeviceKind::kSim) {
    auto cpu = cpu_test_device().open({});
    elsewhere = floats(*cpu, "a", {1, 2}, host_values);
  } else {
    auto sim = sim_test_device().open({});
    elsewhere = floats(*sim, "a", {1, 2}, host_values);
  }
  const Case cases[] = {
      {"another name", floats(*device_, "c", {1, 2}, {1, 2}), "input 'a' is missing"},
      {"type", make_tensor<std::int32_t>(*device_, "a", DataType::kInt32, {1, 2}, {1, 2}), "int32"},
      {"rank", floats(*device_, "a", {2}, {1, 2}), "dimensions"},
      {"fixed dimension", floats(*device_, "a", {1, 3}, {1, 2, 3}), "dimension 1"},
      {"range", floats(*device_, "a", {5, 2}, std::vector<float>(10)), "dimension 0"},
      {"zero", floats(*device_, "a", {0, 2}, {1}), "dimension 0"},
      {"negative", floats(*device_, "a", {-1, 2}, {1, 2}), "dimension 0"},
      {"symbol across inputs", floats(*device_, "a", {2, 2}, {1, 2, 3, 4}), "'N' is already"},
      {"more bytes", too_long, "12 bytes"},
      {"fewer bytes", too_short, "4 bytes"},
      {"no memory", no_memory, "no memory"},
      {"another device", elsewhere, "memory is on"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const auto outputs = session_->run(std::vector{c.a, good});
    ASSERT_FALSE(outputs);
    EXPECT_EQ(outputs.error().kind(), ErrorKind::kInvalidArgument) << outputs.error().message();
    EXPECT_THAT(outputs.error().message(), HasSubstr(c.message));
    EXPECT_THAT(outputs.error().message(), HasSubstr("model 'tiny' (onnxruntime"));
  }
  EXPECT_EQ(session_->run(std::vector{good}).error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(session_->run({}).error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_TRUE(run(1)) << "the session goes on after refusals";
}

TEST_P(M03, GivenAFailedInputFence_WhenRun_ThenTheOutputsCarryThatFailure) {
  open();
  FenceSource broken;
  Tensor a = floats(*device_, "a", {1, 2}, {1, 2});
  a.ready = broken.fence();
  broken.signal(fail(ErrorKind::kDevice, "the kernel before it failed"));
  const auto outputs = session_->run(std::vector{a, floats(*device_, "b", {1, 2}, {1, 2})});
  const Result<void> outcome =
      outputs ? outputs->front().ready.wait() : std::unexpected(outputs.error());
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message(), HasSubstr("the kernel before it failed"));
}

class M04 : public AddSession {};
INSTANTIATE_TEST_SUITE_P(cpu, M04, testing::Values(cpu_test_device()));
INSTANTIATE_TEST_SUITE_P(sim, M04, testing::Values(sim_test_device()));

TEST_P(M04, GivenAHeldResult_WhenTheModelRunsAgainAndEnds_ThenTheResultIsUntouched) {
  open();
  const auto first = run(1);
  ASSERT_TRUE(first) << first.error().message();
  for (int i = 0; i < 8; ++i) {
    const auto next = run(100);
    ASSERT_TRUE(next);
    EXPECT_NE(next->front().data.storage, first->front().data.storage);
    EXPECT_THAT(values_of(*device_, next->front()), ElementsAre(110, 21));
  }
  session_.reset();
  EXPECT_THAT(values_of(*device_, first->front()), ElementsAre(11, 21));
}

TEST_P(M04, GivenAReleasedResult_WhenTheModelRunsAgain_ThenItsMemoryIsReused) {
  open();
  auto outputs = run(1);
  ASSERT_TRUE(outputs);
  ASSERT_TRUE(outputs->front().ready.wait());
  const std::uintptr_t address = outputs->front().data.storage->address();
  outputs->clear();
  for (int i = 0; i < 3; ++i) {
    auto again = run(2);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->front().data.storage->address(), address);
    EXPECT_THAT(values_of(*device_, again->front()), ElementsAre(12, 21));
  }
}

TEST_P(M04, GivenACopiedTensor_WhenTheOriginalIsReleased_ThenItsMemoryIsNotReused) {
  open();
  auto outputs = run(1);
  ASSERT_TRUE(outputs);
  const Tensor kept = outputs->front();
  outputs->clear();
  const auto next = run(5);
  ASSERT_TRUE(next);
  EXPECT_NE(next->front().data.storage->address(), kept.data.storage->address());
  EXPECT_THAT(values_of(*device_, kept), ElementsAre(11, 21));
}

TEST_P(M04, GivenTheBudgetIsHeld_WhenRun_ThenItIsExhaustedUntilAResultIsReleased) {
  open({.output_budget = 16});  // two results of 8 bytes
  auto first = run(1);
  const auto second = run(2);
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  const auto third = run(3);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().kind(), ErrorKind::kExhausted);
  EXPECT_THAT(third.error().message(), HasSubstr("output 'y'"));
  EXPECT_THAT(third.error().message(), HasSubstr("budget of 16"));
  ASSERT_TRUE(first->front().ready.wait());
  first->clear();
  const auto fourth = run(4);
  ASSERT_TRUE(fourth) << fourth.error().message();
  EXPECT_THAT(values_of(*device_, fourth->front()), ElementsAre(14, 21));
  EXPECT_THAT(values_of(*device_, second->front()), ElementsAre(12, 21));
}

TEST_P(M04, GivenPooledMemoryOfAnotherSize_WhenTheBudgetIsShort_ThenItMakesRoom) {
  open({.output_budget = 16});
  auto small = run(1);
  ASSERT_TRUE(small);
  ASSERT_TRUE(small->front().ready.wait());
  small->clear();  // 8 bytes pooled
  const auto large = session_->run(std::vector{floats(*device_, "a", {2, 2}, {1, 2, 3, 4}),
                                               floats(*device_, "b", {2, 2}, {0, 0, 0, 0})});
  ASSERT_TRUE(large) << large.error().message();
  EXPECT_THAT(values_of(*device_, large->front()), ElementsAre(1, 2, 3, 4));
}

TEST_P(M04, GivenOutputsOfKnownShape_WhenRun_ThenNoTensorIsCopied) {
  open();
  const auto outputs = run(1);
  ASSERT_TRUE(outputs);
  ASSERT_TRUE(outputs->front().ready.wait());
  EXPECT_EQ(device_->ledger().count(CopyClass::kTensor), 0u);
}

TEST_P(M04, GivenAnOutputOfUnknownShape_WhenRun_ThenItIsCopiedOnceAndOwned) {
  const std::string onnx = OnnxBuilder()
                               .input("x", DataType::kFloat32, {1, 5})
                               .output("where", DataType::kInt64, {2, "found"})
                               .output("same", DataType::kFloat32, {1, 5})
                               .node("NonZero", {"x"}, {"where"})
                               .node("Identity", {"x"}, {"same"})
                               .build();
  const TensorSpec row{
      "x", DataType::kFloat32, TensorLayout::kAny, {Dimension::fixed(1), Dimension::fixed(5)}};
  TensorSpec same = row;
  same.name = "same";
  const TensorSpec where{
      "where", DataType::kInt64, TensorLayout::kAny, {Dimension::fixed(2), {1, 5, "found"}}};
  auto opened = open_session(device_, bare_manifest(folder_, onnx, {row}, {where, same}));
  ASSERT_TRUE(opened) << opened.error().message();
  const auto outputs = (*opened)->run(std::vector{floats(*device_, "x", {1, 5}, {0, 7, 0, 0, 9})});
  ASSERT_TRUE(outputs) << outputs.error().message();
  EXPECT_EQ(outputs->at(0).shape, (Shape{2, 2}));
  ASSERT_TRUE(outputs->at(0).ready.wait());
  EXPECT_EQ(device_->ledger().count(CopyClass::kTensor), 1u);
  EXPECT_EQ(device_->ledger().bytes(CopyClass::kTensor), 4 * sizeof(std::int64_t));

  const auto none = (*opened)->run(std::vector{floats(*device_, "x", {1, 5}, {0, 0, 0, 0, 0})});
  ASSERT_TRUE(none) << none.error().message();
  EXPECT_EQ(none->at(0).shape, (Shape{2, 0}));
  opened->reset();
  EXPECT_THAT(values_of<std::int64_t>(*device_, outputs->at(0)), ElementsAre(0, 0, 1, 4));
  EXPECT_THAT(values_of(*device_, outputs->at(1)), ElementsAre(0, 7, 0, 0, 9));
}

/// Devices that run jobs later.
class M04_Queued : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(sim, M04_Queued, testing::Values(0));

TEST_P(M04_Queued, GivenAJobInFlight_WhenTheSessionEnds_ThenTheRunStillCompletes) {
  const TemporaryFolder folder;
  const auto device = SimDevice::create({.hold_jobs = false});
  auto opened = open_session(
      device,
      bare_manifest(folder, add_model(), {rows_of_two("a"), rows_of_two("b")}, {rows_of_two("y")}));
  ASSERT_TRUE(opened) << opened.error().message();
  std::vector<Tensor> inputs{floats(*device, "a", {1, 2}, {1, 2}),
                             floats(*device, "b", {1, 2}, {10, 20})};
  device->hold_jobs(true);
  auto kept = (*opened)->run(inputs);
  auto dropped = (*opened)->run(inputs);
  ASSERT_TRUE(kept);
  ASSERT_TRUE(dropped);
  const Fence dropped_fence = dropped->front().ready;
  EXPECT_FALSE(dropped_fence.has_passed());
  dropped->clear();
  inputs.clear();
  opened->reset();
  device->hold_jobs(false);
  EXPECT_TRUE(dropped_fence.wait());
  EXPECT_THAT(values_of(*device, kept->front()), ElementsAre(11, 22));
  kept->clear();
  EXPECT_EQ(device->live_storages(), 0u);
}

class M05 : public AddSession {
 protected:
  Error failure(const Manifest& manifest, const SessionOptions& options = {}) {
    auto opened = open_session(device_, manifest, options);
    EXPECT_FALSE(opened);
    return opened ? Error(ErrorKind::kInternal, "") : opened.error();
  }
  Manifest adding() {
    return bare_manifest(folder_, add_model(), {rows_of_two("a"), rows_of_two("b")},
                         {rows_of_two("y")});
  }
};
INSTANTIATE_TEST_SUITE_P(cpu, M05, testing::Values(cpu_test_device()));

TEST_P(M05, GivenTheConfiguredLibrary_WhenAsked_ThenItNamesItsVersionAndProviders) {
  const auto version = onnxruntime_version();
  ASSERT_TRUE(version) << version.error().message();
  EXPECT_THAT(*version, testing::StartsWith("1."));
  const auto providers = onnxruntime_providers();
  ASSERT_TRUE(providers) << providers.error().message();
  EXPECT_THAT(*providers, Contains("CPUExecutionProvider"));
  // RTLD_LOCAL: nobody else in the process sees its symbols.
  EXPECT_EQ(::dlsym(RTLD_DEFAULT, "OrtGetApiBase"), nullptr);
}

TEST_P(M05, GivenNoSuchLibrary_WhenOpened_ThenTheErrorNamesModelEngineAndCause) {
  const Error error = failure(adding(), {.engine_library = "/nowhere/libonnxruntime.so.1"});
  EXPECT_EQ(error.kind(), ErrorKind::kNotFound);
  EXPECT_THAT(error.message(), HasSubstr("model 'tiny' (onnxruntime)"));
  EXPECT_THAT(error.message(), HasSubstr("/nowhere/libonnxruntime.so.1"));
}

TEST_P(M05, GivenAnotherKindOfLibrary_WhenOpened_ThenItIsRefused) {
  const Error error = failure(adding(), {.engine_library = "libm.so.6"});
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.message(), HasSubstr("'libm.so.6' is no ONNX Runtime"));
}

TEST_P(M05, GivenAProviderThatTheLibraryLacks_WhenOpened_ThenTheErrorListsWhatItHas) {
  Manifest manifest = adding();
  manifest.provider = "MIGraphXExecutionProvider";
  const Error error = failure(manifest);
  EXPECT_EQ(error.kind(), ErrorKind::kNotFound);
  EXPECT_THAT(error.message(), HasSubstr("does not offer MIGraphXExecutionProvider"));
  EXPECT_THAT(error.message(), HasSubstr("CPUExecutionProvider"));
}

TEST_P(M05, GivenOptionsForTheCpuProvider_WhenOpened_ThenTheyAreRefused) {
  Manifest manifest = adding();
  manifest.provider_options = {{"threads", "2"}};
  const Error error = failure(manifest);
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("the manifest gives 'threads'"));
}

TEST_P(M05, GivenAProviderLibraryThatIsNone_WhenOpened_ThenTheErrorNamesIt) {
  Manifest manifest = adding();
  manifest.provider = "MadeUpExecutionProvider";
  const Error missing = failure(manifest, {.provider_library = "/nowhere/libprovider.so"});
  EXPECT_EQ(missing.kind(), ErrorKind::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr("/nowhere/libprovider.so"));
  // A file, but no library.
  const Error wrong = failure(manifest, {.provider_library = manifest.artefact});
  EXPECT_THAT(wrong.message(), HasSubstr("loading provider library"));
}

TEST_P(M05, GivenAnUnknownEngine_WhenOpened_ThenItIsRefused) {
  Manifest manifest = adding();
  manifest.engine = "abacus";
  EXPECT_THAT(failure(manifest).message(), HasSubstr("no engine 'abacus'"));
}

TEST_P(M05, GivenAManifestThatContradictsTheModel_WhenOpened_ThenTheTensorIsNamed) {
  Manifest other_name = adding();
  other_name.inputs[1].name = "c";
  EXPECT_THAT(failure(other_name).message(),
              HasSubstr("input 'c' is none of the model's: 'a', 'b'"));
  Manifest fewer = adding();
  fewer.inputs.pop_back();
  EXPECT_THAT(failure(fewer).message(), HasSubstr("model's input 'b' is missing"));
  Manifest other_output = adding();
  other_output.outputs[0].name = "z";
  EXPECT_THAT(failure(other_output).message(), HasSubstr("output 'z' is none of the model's: 'y'"));
  Manifest other_type = adding();
  other_type.inputs[0].type = DataType::kInt64;
  EXPECT_THAT(failure(other_type).message(), HasSubstr("'a' is float32 in the model, int64"));
  Manifest other_rank = adding();
  other_rank.inputs[0].dims.pop_back();
  EXPECT_THAT(failure(other_rank).message(), HasSubstr("'a' has 2 dimensions in the model, 1"));
  Manifest other_size = adding();
  other_size.outputs[0].dims[1] = Dimension::fixed(3);
  EXPECT_THAT(failure(other_size).message(), HasSubstr("dimension 1 of 'y' is 2 in the model"));
  EXPECT_EQ(failure(other_size).kind(), ErrorKind::kInvalidArgument);
}

TEST_P(M05, GivenAnImpossibleThreadCount_WhenOpened_ThenItIsRefused) {
  EXPECT_EQ(failure(adding(), {.threads = 0}).kind(), ErrorKind::kInvalidArgument);
}

TEST_P(M05, GivenAnOutputThatTheManifestLeavesOut_WhenRun_ThenTheOthersComeAlone) {
  const std::string onnx = OnnxBuilder()
                               .input("a", DataType::kFloat32, {"N", 2})
                               .output("y", DataType::kFloat32, {"N", 2})
                               .output("z", DataType::kFloat32, {"N", 2})
                               .node("Identity", {"a"}, {"y"})
                               .node("Neg", {"a"}, {"z"})
                               .build();
  auto opened =
      open_session(device_, bare_manifest(folder_, onnx, {rows_of_two("a")}, {rows_of_two("z")}));
  ASSERT_TRUE(opened) << opened.error().message();
  const auto outputs = (*opened)->run(std::vector{floats(*device_, "a", {1, 2}, {3, 4})});
  ASSERT_TRUE(outputs) << outputs.error().message();
  ASSERT_EQ(outputs->size(), 1u);
  EXPECT_THAT(values_of(*device_, outputs->front()), ElementsAre(-3, -4));
}

TEST_P(M05, GivenSeveralThreads_WhenTheyRunAtOnce_ThenEachGetsItsOwnResult) {
  open({.threads = 2, .concurrent_runs = 4});
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const auto value = static_cast<float>(static_cast<int>(t) * 1000 + i);
        const auto outputs = run(value);
        if (!outputs || values_of(*device_, outputs->front()) != std::vector{value + 10, 21.0f}) {
          ++wrong[t];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

}  // namespace
}  // namespace penstock
