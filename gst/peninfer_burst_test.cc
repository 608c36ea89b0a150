// SPDX-License-Identifier: Apache-2.0
//
// peninfer whose model runs behind a burst (contract X05, X03): the same findings, nothing copied
// on this side, one error when the server goes, and no frame lost when it comes back.
#include <gst/check/gstharness.h>
#include <gst/gst.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gst/penanalysis_meta.h"
#include "gst/testing/infer_fixture.h"
#include "penstock/burst/burst_host.h"
#include "penstock/burst/session_model.h"
#include "penstock/model/manifest.h"

namespace penstock::gst {
namespace {

class BurstInferTest : public InferFixture {
 protected:
  void SetUp() override {
    InferFixture::SetUp();
    std::string name = (std::filesystem::temp_directory_path() / "penstock-infer-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    serve();
  }
  void TearDown() override {
    InferFixture::TearDown();
    host_.reset();
    std::filesystem::remove_all(folder_);
  }
  std::string socket() const { return (folder_ / "burst").string(); }

  void serve(const std::string& hash = {}) {
    host_.reset();
    auto manifest = load_manifest(model_folder() / "manifest.json");
    ASSERT_TRUE(manifest) << manifest.error().message();
    server_device_ = *open_device({DeviceKind::kCpu, 0});
    auto model = SessionModel::create(
        server_device_,
        [device = server_device_, loaded = *manifest] { return open_session(device, loaded); },
        {.name = manifest->name, .artefact_hash = hash.empty() ? manifest->artefact_sha256 : hash});
    ASSERT_TRUE(model) << model.error().message();
    auto host = BurstHost::listen(socket(), {{manifest->name, *model}});
    ASSERT_TRUE(host) << host.error().message();
    host_ = std::move(*host);
  }

  void push(int frame) {
    EXPECT_EQ(gst_harness_push(harness_.get(), make_frame(pts(frame)).release()), GST_FLOW_OK);
  }
  /// The next frame that leaves has the model's two boxes.
  void expect_boxes() {
    const BufferPtr out(gst_harness_pull(harness_.get()));
    ASSERT_NE(out, nullptr);
    const Analysis* analysis = read_analysis(out.get());
    ASSERT_NE(analysis, nullptr);
    ASSERT_EQ(analysis->result.objects.size(), expected_boxes().size());
    for (std::size_t i = 0; i < expected_boxes().size(); ++i) {
      EXPECT_EQ(analysis->result.objects[i].label, expected_boxes()[i].label);
      EXPECT_NEAR(analysis->result.objects[i].x, expected_boxes()[i].x, 0.5);
    }
  }

  std::vector<std::string> errors_;
  std::filesystem::path folder_;
  DevicePtr server_device_;
  std::unique_ptr<BurstHost> host_;
};

using X05_Infer = BurstInferTest;
using X03_Infer = BurstInferTest;
using Q05_Infer = BurstInferTest;
INSTANTIATE_TEST_SUITE_P(cpu, X05_Infer, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(cpu, X03_Infer, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(cpu, Q05_Infer, ::testing::Values("cpu"));

TEST_P(X05_Infer, GivenAServer_WhenFramesAreInferred_ThenTheyHaveTheModelsBoxes) {
  play({"burst=" + socket()});
  for (int i = 0; i < 5; ++i) push(i);
  for (int i = 0; i < 5; ++i) expect_boxes();
  EXPECT_TRUE(errors().empty());
}

TEST_P(X03_Infer, GivenAServer_WhenFramesAreInferred_ThenNoTensorIsCopiedOnTheWayThere) {
  play({"burst=" + socket()});
  for (int i = 0; i < 5; ++i) push(i);
  for (int i = 0; i < 5; ++i) expect_boxes();
  GstStructure* stats = nullptr;
  g_object_get(element_, "stats", &stats, nullptr);
  ASSERT_NE(stats, nullptr);
  char* const raw = gst_structure_to_string(stats);
  gst_structure_free(stats);
  const std::string text = raw;
  g_free(raw);
  EXPECT_NE(text.find("media/preprocess"), std::string::npos) << text;
  EXPECT_EQ(text.find("burst/staging"), std::string::npos) << text;
  // The server copies nothing that is as large as a picture's tensor either.
  for (const auto& row : server_device_->ledger().rows()) {
    EXPECT_NE(row.site, "burst/snapshot");
  }
}

TEST_P(X05_Infer, GivenAServerWithAnotherArtefact_WhenOpened_ThenBothHashesAreNamed) {
  serve("beef");
  const auto element = make_element({"burst=" + socket()});
  EXPECT_EQ(gst_element_set_state(element.get(), GST_STATE_READY), GST_STATE_CHANGE_FAILURE);
  const auto said = errors();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("beef"), std::string::npos) << said[0];
  gst_element_set_state(element.get(), GST_STATE_NULL);
}

TEST_P(X05_Infer, GivenNobodyAtTheSocket_WhenOpened_ThenTheErrorNamesIt) {
  const auto element = make_element({"burst=/nonexistent/socket"});
  EXPECT_EQ(gst_element_set_state(element.get(), GST_STATE_READY), GST_STATE_CHANGE_FAILURE);
  const auto said = errors();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("/nonexistent/socket"), std::string::npos) << said[0];
  gst_element_set_state(element.get(), GST_STATE_NULL);
}

TEST_P(Q05_Infer, GivenAServerThatGoes_WhenFramesFollow_ThenThereIsOneErrorThatNamesIt) {
  play({"burst=" + socket()});
  push(0);
  expect_boxes();
  host_.reset();
  for (int i = 1; i < 50 && errors_.empty(); ++i) {
    gst_harness_push(harness_.get(), make_frame(pts(i)).release());
    for (auto& error : errors()) errors_.push_back(std::move(error));
  }
  gst_harness_push_event(harness_.get(), gst_event_new_eos());
  for (auto& error : errors()) errors_.push_back(std::move(error));
  ASSERT_EQ(errors_.size(), 1u);
  EXPECT_NE(errors_[0].find(socket()), std::string::npos) << errors_[0];
}

TEST_P(Q05_Infer, GivenReconnecting_WhenTheServerComesBack_ThenEveryFrameLeavesWithItsBoxes) {
  play({"burst=" + socket(), "burst-reconnect=true", "queue-depth=8"});
  push(0);
  expect_boxes();
  host_.reset();
  for (int i = 1; i < 5; ++i) push(i);
  serve();
  for (int i = 5; i < 8; ++i) push(i);
  for (int i = 1; i < 8; ++i) expect_boxes();
  EXPECT_TRUE(errors().empty());
}

}  // namespace
}  // namespace penstock::gst
