// SPDX-License-Identifier: Apache-2.0
//
// `penstock burst serve` as its clients and whoever starts it see it.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "penstock/burst/burst_client.h"
#include "penstock/burst/remote_model.h"
#include "penstock/memory/shared_file.h"
#include "penstock/memory/tensor.h"
#include "tests/e2e/penstock_process.h"

namespace penstock::e2e {
namespace {

class BurstServeTest : public testing::Test {
 protected:
  void SetUp() override {
    gst_init(nullptr, nullptr);
    folder_ = fresh_folder();
    model_ = square_model(folder_).string();
    // A socket's name has 107 bytes at most, and folders of tests have long ones.
    std::string short_folder = (std::filesystem::temp_directory_path() / "pen-XXXXXX").string();
    ASSERT_NE(::mkdtemp(short_folder.data()), nullptr);
    socket_ = short_folder + "/burst";
    metrics_ = (folder_ / "burst.prom").string();
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(std::filesystem::path(socket_).parent_path(), ignored);
  }
  std::vector<std::string> words(std::vector<std::string> more = {}) const {
    std::vector<std::string> all{"burst",    "serve", "--model", "squares=" + model_,
                                 "--socket", socket_};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// When it is there.
  std::shared_ptr<RemoteModel> connect(const std::string& name) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (true) {
      auto model = RemoteModel::connect(socket_, name);
      if (model) return std::move(*model);
      if (model.error().kind() == ErrorKind::kNotFound && std::chrono::steady_clock::now() < end) {
        continue;
      }
      ADD_FAILURE() << model.error().message();
      return nullptr;
    }
  }
  /// One picture, where the model takes several.
  static Shape least_shape(const TensorSpec& spec) {
    Shape shape;
    for (const Dimension& dim : spec.dims) shape.push_back(dim.minimum);
    return shape;
  }
  static ErrorStatus execute(BurstClient& client, const BurstModel& model) {
    BurstClient::Execution execution{
        .inputs = {},
        .outputs = {},
        .deadline = Deadline::after(Clock::system(), std::chrono::seconds(60))};
    const auto argument = [](const TensorSpec& spec, MapAccess peers) {
      const std::size_t size = byte_size(spec.type, least_shape(spec)).value();
      return BurstClient::Argument{.memory = SharedFile::create(size, peers).value(),
                                   .offset = 0,
                                   .length = static_cast<std::uint32_t>(size)};
    };
    for (const TensorSpec& spec : model.inputs()) {
      execution.inputs.push_back(argument(spec, MapAccess::kRead));
      for (const std::int64_t dim : least_shape(spec)) {
        execution.inputs.back().dimensions.push_back(static_cast<std::uint32_t>(dim));
      }
    }
    for (const TensorSpec& spec : model.outputs()) {
      execution.outputs.push_back(argument(spec, MapAccess::kReadWrite));
    }
    const auto done = client.execute(execution);
    EXPECT_TRUE(done) << done.error().message;
    return done ? done->result.status : ErrorStatus::kGeneralFailure;
  }

  std::filesystem::path folder_;
  std::string model_, socket_, metrics_;
};

using X01_Serve = BurstServeTest;
using X04_Serve = BurstServeTest;

TEST_F(X04_Serve, GivenTwoModels_WhenServed_ThenBothRunAndMetricsTellIt) {
  PenstockProcess server(words({"--model", "again=" + model_, "--metrics", metrics_}));
  for (const char* name : {"squares", "again"}) {
    const auto model = connect(name);
    ASSERT_NE(model, nullptr);
    auto client = BurstClient::create(model);
    ASSERT_TRUE(client) << client.error().message();
    EXPECT_EQ(execute(**client, *model), ErrorStatus::kNone);
  }
  server.signal(SIGTERM);
  const Ended ended = server.wait();
  EXPECT_EQ(ended.code, 128 + SIGTERM) << ended.err;
  EXPECT_NE(ended.out.find("squares is served at " + socket_), std::string::npos) << ended.out;
  EXPECT_FALSE(std::filesystem::exists(socket_));
  const std::string text = read_text(metrics_);
  for (const char* line :
       {"penstock_burst_bursts_total 2\n", "penstock_burst_bursts 0\n",
        "penstock_burst_answers_total{status=\"none\"} 2\n", "penstock_burst_mapped_bytes 0\n",
        "penstock_burst_model_loaded{model=\"squares\"} 1\n",
        "penstock_burst_model_bursts{model=\"again\"} 0\n",
        "penstock_burst_execution_seconds_count 2\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST_F(X01_Serve, GivenAnIdleModel_WhenItIsWantedAgain_ThenItIsLoadedAgain) {
  PenstockProcess server(words({"--idle-unload", "0.001", "--metrics", metrics_}));
  const auto model = connect("squares");
  ASSERT_NE(model, nullptr);
  const std::string gone = "penstock_burst_model_loaded{model=\"squares\"} 0\n";
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (read_text(metrics_).find(gone) == std::string::npos &&
         std::chrono::steady_clock::now() < end) {
  }
  ASSERT_NE(read_text(metrics_).find(gone), std::string::npos);
  auto client = BurstClient::create(model);
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(execute(**client, *model), ErrorStatus::kNone);
  server.signal(SIGINT);
  EXPECT_EQ(server.wait().code, 128 + SIGINT);
}

TEST_F(X04_Serve, GivenAServerThere_WhenAnotherIsStarted_ThenItIsRefusedAndTheFirstStays) {
  PenstockProcess server(words());
  ASSERT_NE(connect("squares"), nullptr);
  const Ended second = run_penstock(words());
  EXPECT_EQ(second.code, 64) << second.err;
  EXPECT_NE(second.err.find("a server listens there"), std::string::npos) << second.err;
  EXPECT_NE(connect("squares"), nullptr);
  server.signal(SIGKILL);
  server.wait();
  EXPECT_TRUE(std::filesystem::exists(socket_)) << "nobody was there to remove it";
  PenstockProcess third(words());
  EXPECT_NE(connect("squares"), nullptr);
}

TEST_F(X04_Serve, GivenWhatCanNotBeServed_WhenStarted_ThenTheMessageNamesIt) {
  const auto refused = [](const std::vector<std::string>& arguments, int code,
                          const std::string& what) {
    const Ended ended = run_penstock(arguments);
    EXPECT_EQ(ended.code, code) << ended.err;
    EXPECT_NE(ended.err.find(what), std::string::npos) << ended.err;
  };
  refused({"burst", "serve", "--model", "nobody", "--socket", socket_}, 66, "nobody");
  refused(words({"--model", "squares=" + model_}), 64, "another model is served as 'squares'");
  refused(words({"--model", "=" + model_}), 64, "NAME=MODEL");
  refused({"burst", "serve", "--model", model_, "--socket", (folder_ / "none" / "s").string()}, 66,
          "none/s");
  refused({"burst", "serve", "--model", model_, "--socket", std::string(200, 's')}, 64, "sss");
  refused(words({"--metrics", (folder_ / "none" / "m").string()}), 73, "none/m");
  refused(words({"--max-clients", "0"}), 64, "--max-clients");
  std::ofstream(socket_) << "a file of somebody's";
  refused(words(), 64, "something else has this name");
  EXPECT_EQ(read_text(socket_), "a file of somebody's");
}

TEST_F(X04_Serve, GivenTooFewDescriptors_WhenStarted_ThenItSaysWhatItNeeds) {
  const Ended ended = run_penstock(words(), {.open_files_limit = 64});
  EXPECT_EQ(ended.code, 71) << ended.err;
  EXPECT_NE(ended.err.find("ulimit -n"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace penstock::e2e
