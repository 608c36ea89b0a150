// SPDX-License-Identifier: Apache-2.0
//
// A small model that runs without an engine, and bursts on it: in this process, and through a
// host's socket. Tests only.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/burst/burst_client.h"
#include "penstock/burst/burst_host.h"
#include "penstock/burst/remote_model.h"
#include "penstock/burst/session_model.h"
#include "penstock/memory/device.h"
#include "penstock/memory/shared_file.h"
#include "penstock/model/session.h"

namespace penstock::testing {

inline Deadline soon() { return Deadline::after(Clock::system(), std::chrono::seconds(20)); }

/// values [1..100000] float32, places [2] int64 -> twice [n] float32, sum [1] int64: the sum of the
/// two places. A gate can hold a run up.
class SmallSession final : public Session {
 public:
  SmallSession() : device_(*open_device({DeviceKind::kCpu, 0})) {}

  const std::vector<TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<TensorSpec>& outputs() const override { return outputs_; }
  Result<std::vector<Tensor>> run(std::span<const Tensor> given) override {
    ++runs;
    if (before) before();
    for (std::size_t i = 0; i < given.size(); ++i) {
      PENSTOCK_TRY(check(given[i], inputs_.at(i), device_->id()));
    }
    const auto values = floats(given[0]);
    last_address = given[0].data.storage->host_bytes().data();
    std::array<std::int64_t, 2> places{};
    std::memcpy(places.data(), given[1].data.storage->host_bytes().data(), sizeof places);
    if (after_places) after_places();
    std::vector<float> twice(values.begin(), values.end());
    for (float& value : twice) value *= 2;
    const std::int64_t sum = places[0] + places[1];
    std::vector<Tensor> out;
    out.push_back(tensor("twice", DataType::kFloat32, {static_cast<std::int64_t>(twice.size())},
                         std::as_bytes(std::span(twice))));
    out.push_back(tensor("sum", DataType::kInt64, {1}, std::as_bytes(std::span(&sum, 1))));
    return out;
  }
  void interrupt() override {}

  std::function<void()> before;
  std::function<void()> after_places;
  std::atomic<int> runs{0};
  std::atomic<const std::byte*> last_address{nullptr};

 private:
  static std::span<const float> floats(const Tensor& tensor) {
    const auto bytes = tensor.data.storage->host_bytes().subspan(tensor.data.offset);
    return {reinterpret_cast<const float*>(bytes.data()), tensor.data.size / 4};
  }
  Tensor tensor(std::string name, DataType type, Shape shape, std::span<const std::byte> bytes) {
    auto storage = *device_->allocate(bytes.size());
    std::memcpy(storage->host_bytes().data(), bytes.data(), bytes.size());
    return {.name = std::move(name),
            .type = type,
            .shape = std::move(shape),
            .data = {.storage = std::move(storage), .offset = 0, .size = bytes.size()},
            .ready = {}};
  }

  DevicePtr device_;
  std::vector<TensorSpec> inputs_{
      {"values", DataType::kFloat32, TensorLayout::kAny, {{1, 100'000, "n"}}},
      {"places", DataType::kInt64, TensorLayout::kAny, {Dimension::fixed(2)}}};
  std::vector<TensorSpec> outputs_{
      {"twice", DataType::kFloat32, TensorLayout::kAny, {{1, 100'000, "n"}}},
      {"sum", DataType::kInt64, TensorLayout::kAny, {Dimension::fixed(1)}}};
};

enum class Way { kInProcess, kSocket };

inline std::string name_of(const ::testing::TestParamInfo<Way>& info) {
  return info.param == Way::kInProcess ? "in_process" : "socket";
}

/// A served SmallSession.
class BurstTest : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override { serve({}); }
  void TearDown() override {
    client_.reset();
    remote_.reset();
    host_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void serve(SessionModelOptions options, BurstHostOptions host = {}) {
    client_.reset();
    remote_.reset();
    host_.reset();
    session_ = std::make_shared<SmallSession>();
    device_ = *open_device({DeviceKind::kCpu, 0});
    metrics_ = std::make_shared<BurstMetrics>();
    options.name = "small";
    options.metrics = metrics_;
    if (options.artefact_hash.empty()) options.artefact_hash = "0123";
    auto model = SessionModel::create(
        device_, [session = session_]() -> Result<std::shared_ptr<Session>> { return session; },
        std::move(options));
    ASSERT_TRUE(model) << model.error().message();
    model_ = *model;
    if (GetParam() == Way::kInProcess) return;
    auto listening = BurstHost::listen(socket(), {{"small", model_}}, std::move(host));
    ASSERT_TRUE(listening) << listening.error().message();
    host_ = std::move(*listening);
  }

  std::filesystem::path socket() {
    if (folder_.empty()) {
      std::string name =
          (std::filesystem::temp_directory_path() / "penstock-burst-XXXXXX").string();
      EXPECT_NE(::mkdtemp(name.data()), nullptr);
      folder_ = name;
    }
    return folder_ / "burst";
  }

  /// The model as a client sees it.
  std::shared_ptr<BurstModel> seen() {
    if (GetParam() == Way::kInProcess) return model_;
    if (remote_ == nullptr) {
      auto remote = RemoteModel::connect(socket(), "small");
      EXPECT_TRUE(remote) << remote.error().message();
      if (remote) remote_ = *remote;
    }
    return remote_;
  }
  BurstClient& client() {
    if (client_ == nullptr) {
      auto client = BurstClient::create(seen());
      EXPECT_TRUE(client) << client.error().message();
      client_ = std::move(*client);
    }
    return *client_;
  }

  static std::shared_ptr<SharedFile> file(std::size_t size, MapAccess peers) {
    auto made = SharedFile::create(size, peers);
    EXPECT_TRUE(made) << made.error().message();
    return std::move(made).value();
  }

  /// `count` values from 1 on, places {20, 22}, room for the outputs.
  BurstClient::Execution execution(std::size_t count) {
    values_ = file(count * 4, MapAccess::kRead);
    places_ = file(16, MapAccess::kRead);
    out_ = file(count * 4 + 64, MapAccess::kReadWrite);
    auto* const first = reinterpret_cast<float*>(values_->bytes().data());
    std::iota(first, first + count, 1.0F);
    const std::array<std::int64_t, 2> places{20, 22};
    std::memcpy(places_->bytes().data(), places.data(), sizeof places);
    const auto bytes = static_cast<std::uint32_t>(count * 4);
    return {.inputs = {{.memory = values_,
                        .offset = 0,
                        .length = bytes,
                        .dimensions = {static_cast<std::uint32_t>(count)}},
                       {.memory = places_, .offset = 0, .length = 16}},
            .outputs = {{.memory = out_, .offset = 64, .length = bytes},
                        {.memory = out_, .offset = 0, .length = 8}},
            .deadline = soon()};
  }
  float twice(std::size_t i) const {
    float value = 0;
    std::memcpy(&value, out_->bytes().data() + 64 + 4 * i, 4);
    return value;
  }
  std::int64_t sum() const {
    std::int64_t value = 0;
    std::memcpy(&value, out_->bytes().data(), 8);
    return value;
  }

  std::shared_ptr<SmallSession> session_;
  DevicePtr device_;
  std::shared_ptr<BurstMetrics> metrics_;
  std::shared_ptr<SessionModel> model_;
  std::unique_ptr<BurstHost> host_;
  std::shared_ptr<RemoteModel> remote_;
  std::unique_ptr<BurstClient> client_;
  std::filesystem::path folder_;
  std::shared_ptr<SharedFile> values_, places_, out_;
};

}  // namespace penstock::testing
