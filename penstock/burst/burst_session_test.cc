// SPDX-License-Identifier: Apache-2.0
//
// A session whose engine is behind a burst keeps the promises of a session (contract M03, M04, X03,
// X05), and says what becomes of runs when its service goes (Q05).
#include "penstock/burst/burst_session.h"

#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <numeric>
#include <thread>

#include "penstock/burst/testing/burst_fixture.h"

namespace penstock {
namespace {

using testing::Way;

class SessionTest : public testing::BurstTest {
 protected:
  std::shared_ptr<Session> open(BurstSessionOptions burst = {},
                                const SessionOptions& options = {}) {
    host_device_ = *open_device({DeviceKind::kCpu, 0});
    shareable_ = *open_device({DeviceKind::kCpu, 0}, {.shareable = true});
    burst.name = "small";
    burst.open = [this]() -> Result<std::shared_ptr<BurstModel>> {
      ++opened_;
      if (GetParam() == Way::kInProcess) return model_;
      auto remote = RemoteModel::connect(socket(), "small");
      if (!remote) return std::unexpected(remote.error());
      return *remote;
    };
    auto session = BurstSession::open(host_device_, std::move(burst), options);
    EXPECT_TRUE(session) << session.error().message();
    return session ? *session : nullptr;
  }
  static Tensor tensor(const DevicePtr& device, std::string name, DataType type, Shape shape,
                       std::span<const std::byte> bytes) {
    auto storage = *device->allocate(bytes.size());
    std::memcpy(storage->host_bytes().data(), bytes.data(), bytes.size());
    return {.name = std::move(name),
            .type = type,
            .shape = std::move(shape),
            .data = {.storage = storage, .offset = 0, .size = bytes.size()},
            .ready = {}};
  }
  /// `count` values from `first` on and two places.
  std::vector<Tensor> inputs(const DevicePtr& device, std::size_t count, float first = 1) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), first);
    const std::array<std::int64_t, 2> places{40, 2};
    // In another order than the model's.
    return {tensor(device, "places", DataType::kInt64, {2}, std::as_bytes(std::span(places))),
            tensor(device, "values", DataType::kFloat32, {static_cast<std::int64_t>(count)},
                   std::as_bytes(std::span(values)))};
  }
  static float value(const Tensor& tensor, std::size_t i) {
    float value = 0;
    std::memcpy(&value, tensor.data.storage->host_bytes().data() + tensor.data.offset + 4 * i, 4);
    return value;
  }
  std::uint64_t copied(const std::string& site) {
    std::uint64_t sum = 0;
    for (const auto& row : host_device_->ledger().rows()) {
      if (row.site == site) sum += row.bytes;
    }
    return sum;
  }

  DevicePtr host_device_, shareable_;
  std::atomic<int> opened_{0};
};

using X03_Session = SessionTest;
using X05_Session = SessionTest;
using M04_Session = SessionTest;
using Q05_Session = SessionTest;
const auto kWays = ::testing::Values(Way::kInProcess, Way::kSocket);
INSTANTIATE_TEST_SUITE_P(Burst, X03_Session, kWays, testing::name_of);
INSTANTIATE_TEST_SUITE_P(Burst, X05_Session, kWays, testing::name_of);
INSTANTIATE_TEST_SUITE_P(Burst, M04_Session, kWays, testing::name_of);
INSTANTIATE_TEST_SUITE_P(Burst, Q05_Session, ::testing::Values(Way::kSocket), testing::name_of);

TEST_P(X05_Session, GivenInputsInAnyOrder_WhenRun_ThenOutputsAreTheModels) {
  const auto session = open();
  const auto outputs = session->run(inputs(shareable_, 1000));
  ASSERT_TRUE(outputs) << outputs.error().message();
  ASSERT_EQ(outputs->size(), 2u);
  EXPECT_EQ((*outputs)[0].name, "twice");
  EXPECT_EQ((*outputs)[0].shape, Shape{1000});
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(value((*outputs)[0], i), 2 * float(i + 1));
  std::int64_t sum = 0;
  std::memcpy(&sum, (*outputs)[1].data.storage->host_bytes().data(), 8);
  EXPECT_EQ(sum, 42);
}

TEST_P(X05_Session, GivenAnOutputThatOutgrowsItsRoom_WhenRun_ThenItIsRunAgainOnceAndRemembered) {
  const auto session = open();
  // 80,000 bytes; the first room of an open shape is 64 KiB.
  ASSERT_TRUE(session->run(inputs(shareable_, 20'000)));
  EXPECT_EQ(session_->runs, 2);
  const auto again = session->run(inputs(shareable_, 20'000));
  ASSERT_TRUE(again);
  EXPECT_EQ(session_->runs, 3);
  EXPECT_EQ(value((*again)[0], 19'999), 40'000);
}

TEST_P(X05_Session, GivenWrongInputs_WhenRun_ThenTheMessageNamesThem) {
  const auto session = open();
  auto none = session->run({});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind(), ErrorKind::kInvalidArgument);
  auto wrong = inputs(shareable_, 4);
  wrong[1].name = "value_s";
  const auto missing = session->run(wrong);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message().find("'values'"), std::string::npos);
  auto typed = inputs(shareable_, 4);
  typed[1].type = DataType::kInt32;
  const auto refused = session->run(typed);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("values"), std::string::npos);
  EXPECT_EQ(session_->runs, 0);
}

TEST_P(X03_Session, GivenShareableStorage_WhenRun_ThenNothingIsCopiedOnThisSide) {
  const auto session = open();
  ASSERT_TRUE(session->run(inputs(shareable_, 2000)));
  EXPECT_EQ(copied("burst/staging"), 0u);
  EXPECT_EQ(copied("burst/integers"), 8u) << "a value that may become an index";
}

TEST_P(X03_Session, GivenOrdinaryStorage_WhenRun_ThenItIsCopiedOnceAndCounted) {
  const auto session = open();
  ASSERT_TRUE(session->run(inputs(host_device_, 2000)));
  EXPECT_EQ(copied("burst/staging"), 8016u);
}

TEST_P(X03_Session, GivenAnIndexFromTheService_WhenItWritesLater_ThenTheCopyStays) {
  const auto session = open();
  const auto outputs = session->run(inputs(shareable_, 4));
  ASSERT_TRUE(outputs);
  EXPECT_EQ((*outputs)[1].data.storage->shared_file(), nullptr);
  const auto& floats = (*outputs)[0];
  const auto& sum = (*outputs)[1];
  EXPECT_NE(floats.data.storage->address() & ~std::uintptr_t{4095},
            sum.data.storage->address() & ~std::uintptr_t{4095});
}

TEST_P(M04_Session, GivenOutputsThatAreHeld_WhenRunAgain_ThenTheyStayAsTheyAre) {
  auto session = open();
  auto first = session->run(inputs(shareable_, 100, 1));
  auto second = session->run(inputs(shareable_, 100, 1000));
  ASSERT_TRUE(first && second);
  EXPECT_NE((*first)[0].data.storage->address(), (*second)[0].data.storage->address());
  EXPECT_EQ(value((*first)[0], 0), 2);
  EXPECT_EQ(value((*second)[0], 0), 2000);
  session.reset();
  EXPECT_EQ(value((*first)[0], 99), 200) << "they outlive the session";
}

TEST_P(M04_Session, GivenOutputsThatNobodyHolds_WhenRunAgain_ThenTheirMemoryServesAgain) {
  const auto session = open();
  std::uintptr_t address = 0;
  {
    const auto first = session->run(inputs(shareable_, 100));
    ASSERT_TRUE(first);
    address = (*first)[0].data.storage->address();
  }
  const auto second = session->run(inputs(shareable_, 100));
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)[0].data.storage->address(), address);
}

TEST_P(M04_Session, GivenABudget_WhenResultsHoldIt_ThenTheNextRunSaysSo) {
  const auto session = open({}, {.output_budget = 2 * 65536 + 3 * 4096});
  std::vector<std::vector<Tensor>> held;
  held.push_back(*session->run(inputs(shareable_, 100)));
  held.push_back(*session->run(inputs(shareable_, 100)));
  const auto third = session->run(inputs(shareable_, 100));
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().kind(), ErrorKind::kExhausted);
  held.pop_back();
  EXPECT_TRUE(session->run(inputs(shareable_, 100)));
}

TEST_P(X05_Session, GivenManyThreadsAndFewBursts_WhenTheyRun_ThenEachGetsItsOwn) {
  const auto session = open({}, {.concurrent_runs = 2});
  std::vector<std::future<bool>> all;
  for (int thread = 0; thread < 6; ++thread) {
    all.push_back(std::async(std::launch::async, [&, thread] {
      for (int round = 0; round < 20; ++round) {
        const float first = float(1000 * thread + round);
        const auto outputs = session->run(inputs(shareable_, 16, first));
        if (!outputs || value((*outputs)[0], 15) != 2 * (first + 15)) return false;
      }
      return true;
    }));
  }
  for (auto& each : all) EXPECT_TRUE(each.get());
}

TEST_P(X05_Session, GivenARunOverItsLimit_WhenItEnds_ThenItIsADeadlineAndAnotherBurstServes) {
  const auto session = open({}, {.concurrent_runs = 2, .run_limit = std::chrono::seconds(15)});
  const auto hurried = open({}, {.concurrent_runs = 2, .run_limit = Milliseconds(30)});
  std::latch goes_on(1);
  session_->before = [&] { goes_on.wait(); };
  const auto late = hurried->run(inputs(shareable_, 4));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind(), ErrorKind::kDeadline);
  goes_on.count_down();
  EXPECT_TRUE(session->run(inputs(shareable_, 4)));
}

TEST_P(X05_Session, GivenAnInterrupt_WhenARunWaits_ThenItEndsAndSoDoLaterOnes) {
  const auto session = open();
  std::latch runs(1), goes_on(1);
  session_->before = [&] {
    runs.count_down();
    goes_on.wait();
  };
  auto running =
      std::async(std::launch::async, [&] { return session->run(inputs(shareable_, 4)); });
  runs.wait();
  session->interrupt();
  const auto ended = running.get();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().kind(), ErrorKind::kCancelled);
  goes_on.count_down();
  const auto later = session->run(inputs(shareable_, 4));
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().kind(), ErrorKind::kCancelled);
}

TEST_P(X05_Session, GivenAnotherArtefact_WhenOpened_ThenItIsRefused) {
  host_device_ = *open_device({DeviceKind::kCpu, 0});
  BurstSessionOptions burst{
      .open = [this]() -> Result<std::shared_ptr<BurstModel>> { return model_; },
      .name = "small",
      .artefact_hash = "4567"};
  const auto session = BurstSession::open(host_device_, burst, {});
  ASSERT_FALSE(session);
  EXPECT_NE(session.error().message().find("0123"), std::string::npos);
  EXPECT_NE(session.error().message().find("4567"), std::string::npos);
}

TEST_P(Q05_Session, GivenAServerThatStops_WhenRunAgain_ThenEveryRunFailsAndNamesIt) {
  const auto session = open();
  ASSERT_TRUE(session->run(inputs(shareable_, 4)));
  host_.reset();
  for (int i = 0; i < 2; ++i) {
    const auto failed = session->run(inputs(shareable_, 4));
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().kind(), ErrorKind::kDevice);
    EXPECT_NE(failed.error().message().find("small"), std::string::npos);
  }
  EXPECT_EQ(opened_, 1) << "nobody asked for reconnecting";
}

TEST_P(Q05_Session, GivenReconnecting_WhenTheServerComesBack_ThenTheRunThatWaitedIsDone) {
  std::promise<std::string> told;
  const auto session = open({.reconnect = true,
                             .on_lost = [&](const std::string& why) { told.set_value(why); },
                             .first_backoff = Nanoseconds(1),
                             .last_backoff = Milliseconds(1)});
  ASSERT_TRUE(session->run(inputs(shareable_, 4)));
  host_.reset();
  auto running =
      std::async(std::launch::async, [&] { return session->run(inputs(shareable_, 100)); });
  EXPECT_NE(told.get_future().get().find("small"), std::string::npos);
  auto host = BurstHost::listen(socket(), {{"small", model_}});
  ASSERT_TRUE(host) << host.error().message();
  const auto outputs = running.get();
  ASSERT_TRUE(outputs) << outputs.error().message();
  EXPECT_EQ(value((*outputs)[0], 99), 200);
}

TEST_P(Q05_Session, GivenReconnecting_WhenTheServerStaysAway_ThenTheRunFailsAtItsLimit) {
  const auto session = open({.reconnect = true}, {.run_limit = Milliseconds(150)});
  ASSERT_TRUE(session->run(inputs(shareable_, 4)));
  host_.reset();
  const auto failed = session->run(inputs(shareable_, 4));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind(), ErrorKind::kDevice);
}

TEST_P(Q05_Session, GivenReconnecting_WhenInterruptedMeanwhile_ThenTheRunEnds) {
  std::promise<void> told;
  const auto session =
      open({.reconnect = true, .on_lost = [&](const std::string&) { told.set_value(); }});
  ASSERT_TRUE(session->run(inputs(shareable_, 4)));
  host_.reset();
  auto running =
      std::async(std::launch::async, [&] { return session->run(inputs(shareable_, 4)); });
  told.get_future().wait();
  session->interrupt();
  EXPECT_FALSE(running.get());
}

}  // namespace
}  // namespace penstock
