// SPDX-License-Identifier: Apache-2.0
//
// Contract M05 with a provider that really is another than the CPU's: XNNPACK, in the library of
// the distribution. It takes products of matrices and no sine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "penstock/media/test_frames.h"
#include "penstock/model/session.h"
#include "penstock/model/testing/session_support.h"

namespace penstock {
namespace {

using namespace model_testing;  // NOLINT: the suites' own vocabulary
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TensorSpec row(const std::string& name) {
  return {name, DataType::kFloat32, TensorLayout::kAny, {Dimension::fixed(1), Dimension::fixed(2)}};
}

/// y = sin(x m) m, and the nodes are named after their outputs.
std::string products_around_a_sine() {
  return OnnxBuilder()
      .input("x", DataType::kFloat32, {1, 2})
      .output("y", DataType::kFloat32, {1, 2})
      .constant("m", {2, 2}, std::vector<float>{1, 2, 3, 4})
      .node("MatMul", {"x", "m"}, {"first"})
      .node("Sin", {"first"}, {"sine"})
      .node("MatMul", {"sine", "m"}, {"y"})
      .build();
}

class M05_Xnnpack : public ::testing::Test {
 protected:
  void SetUp() override {
    // In the userland of packaging/packages.txt the library is there and has it, and these run. A
    // host that is built on as it is may have another library, or none.
    const auto providers = onnxruntime_providers(PENSTOCK_ONNXRUNTIME_SYSTEM);
    if (!providers) GTEST_SKIP() << providers.error().message();
    if (!std::ranges::contains(*providers, "XnnpackExecutionProvider")) {
      GTEST_SKIP() << PENSTOCK_ONNXRUNTIME_SYSTEM << " has no XNNPACK";
    }
    manifest_ = bare_manifest(folder_, products_around_a_sine(), {row("x")}, {row("y")});
    manifest_.provider = "XnnpackExecutionProvider";
  }
  Result<std::shared_ptr<Session>> open() {
    return open_session(device_, manifest_, {.engine_library = PENSTOCK_ONNXRUNTIME_SYSTEM});
  }

  const TemporaryFolder folder_;
  const DevicePtr device_ = testing::make_device("cpu");
  Manifest manifest_;
};

TEST_F(M05_Xnnpack, GivenANodeThatItDoesNotTake_WhenOpened_ThenThatNodeAloneIsNamed) {
  const auto session = open();
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().message(),
              AllOf(HasSubstr("XnnpackExecutionProvider"), HasSubstr("'sine'"),
                    Not(HasSubstr("'first'")), Not(HasSubstr("'y'"))));
}

TEST_F(M05_Xnnpack, GivenThatNodeIsAllowedOnTheCpu_WhenRun_ThenBothComputeTheirPart) {
  manifest_.cpu_nodes = {"sine"};
  const auto session = open();
  ASSERT_TRUE(session) << session.error().message();
  const auto outputs = (*session)->run(std::vector{floats(*device_, "x", {1, 2}, {0.5f, -0.25f})});
  ASSERT_TRUE(outputs) << outputs.error().message();
  const auto y = values_of(*device_, outputs->front());
  ASSERT_EQ(y.size(), 2u);
  const float a = std::sin(0.5f * 1 - 0.25f * 3), b = std::sin(0.5f * 2 - 0.25f * 4);
  EXPECT_NEAR(y[0], a * 1 + b * 3, 1e-5);
  EXPECT_NEAR(y[1], a * 2 + b * 4, 1e-5);
}

TEST_F(M05_Xnnpack, GivenAModelOfWhichItTakesNothing_WhenOpened_ThenThatIsSaid) {
  manifest_ = bare_manifest(folder_,
                            OnnxBuilder()
                                .input("x", DataType::kFloat32, {1, 2})
                                .output("y", DataType::kFloat32, {1, 2})
                                .node("Sin", {"x"}, {"y"})
                                .build(),
                            {row("x")}, {row("y")});
  manifest_.provider = "XnnpackExecutionProvider";
  manifest_.cpu_nodes = {"y"};
  const auto session = open();
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().message(), HasSubstr("takes none of the model's 1 nodes"));
}

}  // namespace
}  // namespace penstock
