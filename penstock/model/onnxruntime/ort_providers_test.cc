// SPDX-License-Identifier: Apache-2.0
//
// How providers are asked for (contract M05), against a simulated library that claims to have them:
// names and options as ONNX Runtime knows them. No provider but the CPU's runs here.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "penstock/media/test_frames.h"
#include "penstock/model/session.h"
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
    const auto model = model_testing::make_square_finder_nanodet(64);
    manifest_ = load_manifest(model_testing::write_model_folder(model, folder_.path())).value();
  }

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
  EXPECT_THAT(message_, HasSubstr("CPU"));
}

TEST_F(SimulatedProviders, GivenAnOptionThatItDoesNotHave_WhenOpened_ThenItIsNamed) {
  EXPECT_EQ(asked_for("MIGraphXExecutionProvider", {{"speed", "11"}}), "");
  EXPECT_THAT(message_, HasSubstr("'speed' = '11'"));
  EXPECT_EQ(asked_for("MIGraphXExecutionProvider", {{"device_id", "one"}}), "");
  EXPECT_THAT(message_, HasSubstr("'device_id' = 'one'"));
}

}  // namespace
}  // namespace penstock
