// SPDX-License-Identifier: Apache-2.0
//
// How providers are asked for (contract M05), against a simulated library that claims to have them:
// names and options as ONNX Runtime knows them, and which nodes may stay on the CPU. No provider
// but the CPU's runs here.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "penstock/media/test_frames.h"
#include "penstock/model/session.h"
#include "penstock/model/testing/session_support.h"
#include "penstock/model/testing/temporary_folder.h"
#include "penstock/model/testing/test_models.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

class SimulatedProviders : public ::testing::Test {
 protected:
  SimulatedProviders() {
    setenv("PENSTOCK_SHIM_ORT", PENSTOCK_ONNXRUNTIME_DEFAULT, 1);
    void* library = dlopen(PENSTOCK_ORT_SHIM, RTLD_NOW | RTLD_LOCAL);
    take_calls_ = reinterpret_cast<const char* (*)()>(dlsym(library, "ort_shim_take_calls"));
    place_ = reinterpret_cast<void (*)(const char*)>(dlsym(library, "ort_shim_place"));
    const auto model = model_testing::make_square_finder_nanodet(64);
    manifest_ = load_manifest(model_testing::write_model_folder(model, folder_.path())).value();
  }

  ~SimulatedProviders() override { place_(""); }

  std::string asked_for(const std::string& provider,
                        std::vector<std::pair<std::string, std::string>> options) {
    manifest_.provider = provider;
    manifest_.provider_options = std::move(options);
    static_cast<void>(take_calls_());
    const auto opened =
        open_session(testing::make_device("cpu"), manifest_, {.engine_library = PENSTOCK_ORT_SHIM});
    // The simulated provider takes no node, and none may be left on the CPU.
    EXPECT_FALSE(opened);
    message_ = opened ? "" : opened.error().message();
    return take_calls_();
  }

  const model_testing::TemporaryFolder folder_;
  Manifest manifest_;
  std::string message_;
  const char* (*take_calls_)() = nullptr;
  void (*place_)(const char*) = nullptr;
};

TEST_F(SimulatedProviders, GivenEachProvider_WhenOpened_ThenItGetsItsNameAndOptions) {
  EXPECT_EQ(asked_for("XnnpackExecutionProvider", {{"intra_op_num_threads", "2"}}),
            "XNNPACK intra_op_num_threads=2\n");
  EXPECT_EQ(asked_for("OpenVINOExecutionProvider", {{"device_type", "GPU"}, {"precision", "FP16"}}),
            "OpenVINO device_type=GPU precision=FP16\n");
  EXPECT_EQ(asked_for("CUDAExecutionProvider", {{"device_id", "1"}}),
            "options device_id=1\nCUDA\n");
  EXPECT_EQ(asked_for("TensorrtExecutionProvider", {{"trt_fp16_enable", "1"}}),
            "options trt_fp16_enable=1\nTensorRT\n");
  EXPECT_EQ(asked_for("DnnlExecutionProvider", {{"use_arena", "0"}}),
            "options use_arena=0\nDnnl\n");
  EXPECT_EQ(
      asked_for("MIGraphXExecutionProvider", {{"device_id", "1"}, {"migraphx_fp16_enable", "1"}}),
      "MIGraphX device_id=1 fp16=1\n");
}

TEST_F(SimulatedProviders, GivenNodesThatItDoesNotTake_WhenOpened_ThenThatIsAnError) {
  asked_for("XnnpackExecutionProvider", {});
  EXPECT_THAT(message_, HasSubstr("XnnpackExecutionProvider"));
  EXPECT_THAT(message_, HasSubstr("takes none of the model's"));
}

TEST_F(SimulatedProviders, GivenAnOptionThatItDoesNotHave_WhenOpened_ThenItIsNamed) {
  EXPECT_EQ(asked_for("MIGraphXExecutionProvider", {{"speed", "11"}}), "");
  EXPECT_THAT(message_, HasSubstr("'speed' = '11'"));
  EXPECT_EQ(asked_for("MIGraphXExecutionProvider", {{"device_id", "one"}}), "");
  EXPECT_THAT(message_, HasSubstr("'device_id' = 'one'"));
}

class M05_Simulated : public SimulatedProviders {
 protected:
  M05_Simulated() {
    manifest_ = bare_manifest(folder_, model_testing::add_model(),
                              {model_testing::rows_of_two("a"), model_testing::rows_of_two("b")},
                              {model_testing::rows_of_two("y")});
    manifest_.provider = "XnnpackExecutionProvider";
    place_(
        "Node placements\n"
        " Node(s) placed on [XnnpackExecutionProvider]. Number of nodes: 1\n"
        "  Conv (c)\n"
        " Node(s) placed on [CPUExecutionProvider]. Number of nodes: 2\n"
        "  Add (y)\n"
        "  Shape (shape of y)");
  }
  Result<std::shared_ptr<Session>> open() {
    return open_session(device_, manifest_, {.engine_library = PENSTOCK_ORT_SHIM});
  }
  const DevicePtr device_ = testing::make_device("cpu");
};

TEST_F(M05_Simulated, GivenNodesOnTheCpuThatTheManifestAllows_WhenOpened_ThenItRuns) {
  manifest_.cpu_nodes = {"y", "shape of y"};
  const auto session = open();
  ASSERT_TRUE(session) << session.error().message();
  for (int run = 0; run < 2; ++run) {
    const auto outputs =
        (*session)->run(std::vector{model_testing::floats(*device_, "a", {1, 2}, {1, 2}),
                                    model_testing::floats(*device_, "b", {1, 2}, {10, 20})});
    ASSERT_TRUE(outputs) << outputs.error().message();
    EXPECT_THAT(model_testing::values_of(*device_, outputs->front()),
                ::testing::ElementsAre(11, 22));
  }
}

TEST_F(M05_Simulated, GivenNodesOnTheCpuThatItDoesNotAllow_WhenOpened_ThenTheyAreNamed) {
  manifest_.cpu_nodes = {"y"};
  const auto session = open();
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(session.error().message(),
              ::testing::AllOf(HasSubstr("model 'tiny' (onnxruntime 1.23.0, Xnnpack"),
                               HasSubstr("does not allow: 'shape of y'")));
}

TEST_F(M05_Simulated, GivenAPlacementThatCanNotBeRead_WhenOpened_ThenItIsAnError) {
  manifest_.cpu_nodes = {"y", "shape of y"};
  place_("Node placements\n everything is fine");
  const auto session = open();
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().message(), HasSubstr("cannot tell which nodes are left on the CPU"));
}

// A new environment often lies where the old one was.
TEST_F(M05_Simulated, GivenARuntimeThatEnded_WhenAPluginIsAskedForAgain_ThenTheNewOneLoadsIt) {
  manifest_.provider = "PluginExecutionProvider";
  const auto library = std::filesystem::canonical(folder_.write("libplugin.so", "")).string();
  static_cast<void>(take_calls_());
  for (int run = 0; run < 8; ++run) {
    const auto opened = open_session(
        device_, manifest_, {.engine_library = PENSTOCK_ORT_SHIM, .provider_library = library});
    ASSERT_FALSE(opened) << "the simulated plugin has no devices";
    EXPECT_THAT(opened.error().message(), HasSubstr("does not offer PluginExecutionProvider"));
    EXPECT_EQ(take_calls_(), "register " + library + "\n") << run;
  }
}

TEST_F(M05_Simulated, GivenARuntimeThatStays_WhenAPluginIsAskedForAgain_ThenItWasLoadedOnce) {
  manifest_.provider = "CPUExecutionProvider";
  const auto kept = open();
  ASSERT_TRUE(kept) << kept.error().message();
  manifest_.provider = "PluginExecutionProvider";
  const auto library = folder_.write("libplugin.so", "");
  static_cast<void>(take_calls_());
  for (int run = 0; run < 2; ++run) {
    EXPECT_FALSE(open_session(device_, manifest_,
                              {.engine_library = PENSTOCK_ORT_SHIM, .provider_library = library}));
  }
  EXPECT_EQ(take_calls_(), "register " + std::filesystem::canonical(library).string() + "\n");
}

TEST_F(M05_Simulated, GivenTheCpusOwnProvider_WhenOpened_ThenNoPlacementIsAskedFor) {
  manifest_.provider = "CPUExecutionProvider";
  EXPECT_TRUE(open());
}

}  // namespace
}  // namespace penstock
