// SPDX-License-Identifier: Apache-2.0
//
// Executions through a burst, in one process and through a host's socket (contract X01, X03-X06).
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <latch>
#include <optional>
#include <thread>

#include "penstock/burst/burst_server.h"
#include "penstock/burst/testing/burst_fixture.h"

namespace penstock {
namespace {

using testing::BurstTest;
using testing::soon;
using testing::Way;

using X01 = BurstTest;
using X03 = BurstTest;
using X04 = BurstTest;
using X05 = BurstTest;
using X06 = BurstTest;
const auto kWays = ::testing::Values(Way::kInProcess, Way::kSocket);
INSTANTIATE_TEST_SUITE_P(Burst, X01, kWays, testing::name_of);
INSTANTIATE_TEST_SUITE_P(Burst, X03, kWays, testing::name_of);
INSTANTIATE_TEST_SUITE_P(Burst, X04, kWays, testing::name_of);
INSTANTIATE_TEST_SUITE_P(Burst, X05, kWays, testing::name_of);
INSTANTIATE_TEST_SUITE_P(Burst, X06, kWays, testing::name_of);

ErrorStatus status_of(const Result<BurstClient::Done, BurstFailure>& done) {
  EXPECT_TRUE(done) << done.error().message;
  return done ? done->result.status : ErrorStatus::kGeneralFailure;
}

TEST_P(X05, GivenInputs_WhenExecuted_ThenOutputsAreTheModels) {
  const auto execution = this->execution(1000);
  const auto done = client().execute(execution);
  ASSERT_EQ(status_of(done), ErrorStatus::kNone);
  EXPECT_FALSE(done->was_direct);
  ASSERT_EQ(done->result.shapes.size(), 2u);
  EXPECT_EQ(done->result.shapes[0].dimensions, std::vector<std::uint32_t>{1000});
  EXPECT_TRUE(done->result.shapes[0].is_sufficient);
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(twice(i), 2 * float(i + 1));
  EXPECT_EQ(sum(), 42);
  EXPECT_EQ(metrics_->by_status[0], 1u);
}

TEST_P(X05, GivenABurst_WhenExecutedAgain_ThenEachHasItsOwnData) {
  const auto execution = this->execution(4);
  for (int round = 1; round <= 50; ++round) {
    const float value = float(round);
    std::memcpy(values_->bytes().data(), &value, 4);
    ASSERT_EQ(status_of(client().execute(execution)), ErrorStatus::kNone);
    ASSERT_EQ(twice(0), 2 * value);
  }
}

TEST_P(X05, GivenOutputsTooSmall_WhenExecuted_ThenShapesAreToldAndNothingIsWritten) {
  auto execution = this->execution(1000);
  execution.outputs[0].length = 3996;
  const auto done = client().execute(execution);
  ASSERT_EQ(status_of(done), ErrorStatus::kOutputInsufficientSize);
  ASSERT_EQ(done->result.shapes.size(), 2u);
  EXPECT_FALSE(done->result.shapes[0].is_sufficient);
  EXPECT_EQ(done->result.shapes[0].dimensions, std::vector<std::uint32_t>{1000});
  EXPECT_TRUE(done->result.shapes[1].is_sufficient);
  EXPECT_EQ(sum(), 0);
  EXPECT_EQ(twice(0), 0);
}

TEST_P(X05, GivenBadArguments_WhenExecuted_ThenEachIsInvalidAndTheNextOneIsServed) {
  const auto good = this->execution(1000);
  const auto refused = [&](const char* what, auto change) {
    auto bad = good;
    change(bad);
    bad.deadline = soon();
    const auto done = client().execute(bad);
    EXPECT_EQ(status_of(done), ErrorStatus::kInvalidArgument) << what;
    EXPECT_TRUE(done && done->result.shapes.empty()) << what;
    auto next = good;
    next.deadline = soon();
    ASSERT_EQ(status_of(client().execute(next)), ErrorStatus::kNone) << what;
  };
  using E = BurstClient::Execution;
  refused("an input less", [](E& e) { e.inputs.pop_back(); });
  refused("an input more", [](E& e) { e.inputs.push_back(e.inputs.back()); });
  refused("an output less", [](E& e) { e.outputs.pop_back(); });
  refused("an output more", [](E& e) { e.outputs.push_back(e.outputs.back()); });
  refused("no value", [](E& e) { e.inputs[0] = {}; });
  refused("an unknown dimension", [](E& e) { e.inputs[0].dimensions = {0}; });
  refused("no dimensions where they are open", [](E& e) { e.inputs[0].dimensions = {}; });
  refused("another rank", [](E& e) { e.inputs[0].dimensions = {10, 100}; });
  refused("another size", [](E& e) { e.inputs[0].dimensions = {999}; });
  refused("dimensions that overflow", [](E& e) {
    e.inputs[0].dimensions = {0xffffffff};
    e.inputs[0].length = 4;
  });
  refused("unaligned input", [](E& e) {
    e.inputs[0].offset = 2;
    e.inputs[0].length = 3996;
    e.inputs[0].dimensions = {999};
  });
  refused("unaligned output", [](E& e) { e.outputs[1].offset = 4; });
  refused("outputs that overlap", [](E& e) { e.outputs[1].offset = 72; });
  refused("an output over an input", [&](E& e) {
    e.inputs[1] = {.memory = out_, .offset = 8, .length = 16};
    e.outputs[1].offset = 16;
  });
  refused("output of another rank", [](E& e) { e.outputs[0].dimensions = {10, 100}; });
  refused("output of an impossible size", [](E& e) { e.outputs[1].dimensions = {2}; });
}

TEST_P(X05, GivenARequestTooLongForTheQueue_WhenAllowed_ThenItGoesDirectlyAndSaysSo) {
  auto execution = this->execution(4);
  // Dimensions that are refused, but long.
  execution.inputs[0].dimensions.assign(2000, 1);
  auto done = client().execute(execution);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().fault, BurstFault::kTooLong);
  EXPECT_FALSE(done.error().was_sent);

  execution.allow_direct = true;
  done = client().execute(execution);
  EXPECT_EQ(status_of(done), ErrorStatus::kInvalidArgument);
  EXPECT_TRUE(done && done->was_direct);
  EXPECT_EQ(metrics_->direct, 1u);

  // The burst goes on, by the queue.
  const auto next = client().execute(this->execution(4));
  EXPECT_EQ(status_of(next), ErrorStatus::kNone);
  EXPECT_FALSE(next && next->was_direct);
}

TEST_P(X05, GivenAnExecutionInFlight_WhenAnotherComes_ThenItIsBusyAndTheFirstIsWhole) {
  std::latch runs(1), goes_on(1);
  session_->before = [&] {
    runs.count_down();
    goes_on.wait();
  };
  const auto execution = this->execution(100);
  BurstClient& client = this->client();
  auto first = std::async(std::launch::async, [&] { return client.execute(execution); });
  runs.wait();
  const auto second = client.execute(execution);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().fault, BurstFault::kBusy);
  EXPECT_FALSE(second.error().was_sent);
  goes_on.count_down();
  EXPECT_EQ(status_of(first.get()), ErrorStatus::kNone);
  EXPECT_EQ(twice(99), 200);
}

TEST_P(X06, GivenADeadline_WhenItPasses_ThenTheBurstIsLateUntilTheResultIsBack) {
  std::latch goes_on(1);
  session_->before = [&] { goes_on.wait(); };
  auto execution = this->execution(100);
  execution.deadline = Deadline::after(Clock::system(), Milliseconds(20));
  BurstClient& client = this->client();
  const auto late = client.execute(execution);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().fault, BurstFault::kLate);
  EXPECT_TRUE(late.error().was_sent);
  EXPECT_TRUE(client.is_late());
  std::weak_ptr<SharedFile> quarantined = out_;
  out_.reset();
  execution.outputs.clear();
  EXPECT_FALSE(quarantined.expired()) << "the service may be writing to it";
  const auto next = this->execution(4);
  const auto refused = client.execute(next);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().fault, BurstFault::kBusy);

  goes_on.count_down();
  // Its result comes by itself.
  Result<BurstClient::Done, BurstFailure> done = client.execute(next);
  while (!done && done.error().fault == BurstFault::kBusy) {
    std::this_thread::yield();
    done = client.execute(next);
  }
  EXPECT_EQ(status_of(done), ErrorStatus::kNone);
  EXPECT_EQ(twice(3), 8) << "and is not taken for the next one's";
  EXPECT_TRUE(quarantined.expired());
}

TEST_P(X06, GivenNoDeadline_WhenExecuted_ThenItIsRefused) {
  auto execution = this->execution(4);
  execution.deadline = Deadline::never();
  const auto done = client().execute(execution);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().fault, BurstFault::kInvalid);
}

TEST_P(X06, GivenTimingIsAsked_WhenExecuted_ThenTheDevicesIsWithinTheDrivers) {
  session_->before = [] {
    const TimePoint until = Clock::system().now() + Milliseconds(3);
    while (Clock::system().now() < until) {
    }
  };
  auto execution = this->execution(4);
  auto done = client().execute(execution);
  ASSERT_EQ(status_of(done), ErrorStatus::kNone);
  EXPECT_EQ(done->result.timing, Timing{}) << "nobody asked";

  execution.measure = MeasureTiming::kOn;
  done = client().execute(execution);
  ASSERT_EQ(status_of(done), ErrorStatus::kNone);
  EXPECT_GE(done->result.timing.time_on_device, 3000u);
  EXPECT_LE(done->result.timing.time_on_device, done->result.timing.time_in_driver);
  EXPECT_LT(done->result.timing.time_in_driver, 20'000'000u);

  execution.inputs[0].dimensions = {0};
  done = client().execute(execution);
  ASSERT_EQ(status_of(done), ErrorStatus::kInvalidArgument);
  EXPECT_EQ(done->result.timing, Timing{});
}

TEST_P(X06, GivenBothEndsPoll_WhenExecuted_ThenResultsAreTheSame) {
  auto polling = BurstClient::create(
      seen(), {.poll_window = Milliseconds(1), .service_poll_window = Milliseconds(1)});
  ASSERT_TRUE(polling) << polling.error().message();
  const auto execution = this->execution(64);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(status_of((*polling)->execute(execution)), ErrorStatus::kNone);
  }
  EXPECT_EQ(twice(63), 128);
}

TEST_P(X03, GivenMemoryThatWasUsedBefore_WhenUsedAgain_ThenItIsNotAskedForAgain) {
  const auto execution = this->execution(2000);
  ASSERT_EQ(status_of(client().execute(execution)), ErrorStatus::kNone);
  const std::byte* const first = session_->last_address;
  EXPECT_EQ(client().slots(), 3u);
  ASSERT_EQ(status_of(client().execute(execution)), ErrorStatus::kNone);
  EXPECT_EQ(session_->last_address, first) << "mapped once";
  EXPECT_EQ(client().slots(), 3u);
}

TEST_P(X03, GivenALargeFloatInput_WhenExecuted_ThenItIsReadWhereItLies) {
  const auto execution = this->execution(50'000);
  ASSERT_EQ(status_of(client().execute(execution)), ErrorStatus::kNone);
  std::uint64_t snapshots = 0;
  for (const auto& row : device_->ledger().rows()) {
    if (row.site == "burst/snapshot") snapshots += row.bytes;
  }
  EXPECT_EQ(snapshots, 16u) << "the two places, and nothing of the values";
}

TEST_P(X03, GivenAnIndex_WhenTheClientChangesItDuringTheRun_ThenTheCheckedValueIsUsed) {
  const auto execution = this->execution(4);
  session_->before = [&] {
    const std::array<std::int64_t, 2> changed{1'000'000, 1'000'000};
    std::memcpy(places_->bytes().data(), changed.data(), sizeof changed);
  };
  ASSERT_EQ(status_of(client().execute(execution)), ErrorStatus::kNone);
  EXPECT_EQ(sum(), 42);
}

TEST_P(X03, GivenMemoryThatGoes_WhenTheClientLetsGo_ThenTheServiceUnmapsIt) {
  auto quota = BurstQuota::create({});
  serve({.total_quota = quota});
  {
    const auto execution = this->execution(1000);
    ASSERT_EQ(status_of(client().execute(execution)), ErrorStatus::kNone);
    EXPECT_EQ(quota->slots(), 3u);
  }
  values_.reset();
  // Told at once; the socket's reader takes it when it comes to it.
  while (quota->slots() != 2) std::this_thread::yield();
  EXPECT_EQ(client().slots(), 2u);
  client().free_memory(*places_);
  client().free_memory(*places_);
  while (quota->slots() != 1) std::this_thread::yield();
  client_.reset();
  while (quota->slots() != 0) std::this_thread::yield();
  EXPECT_EQ(quota->bytes(), 0u);
}

TEST_P(X03, GivenMemoryFreedDuringAnExecution_WhenItEnds_ThenItWasThereUntilThen) {
  auto quota = BurstQuota::create({});
  serve({.total_quota = quota});
  std::latch runs(1), goes_on(1);
  session_->before = [&] {
    runs.count_down();
    goes_on.wait();
  };
  const auto execution = this->execution(5000);
  BurstClient& client = this->client();
  auto running = std::async(std::launch::async, [&] { return client.execute(execution); });
  runs.wait();
  client.free_memory(*values_);
  EXPECT_EQ(quota->slots(), 3u);
  goes_on.count_down();
  ASSERT_EQ(status_of(running.get()), ErrorStatus::kNone);
  EXPECT_EQ(twice(4999), 10'000);
  while (quota->slots() != 2) std::this_thread::yield();
  // And again, by another number.
  session_->before = nullptr;
  ASSERT_EQ(status_of(client.execute(execution)), ErrorStatus::kNone);
}

TEST_P(X03, GivenAQuotaOfSlots_WhenItIsUsedUp_ThenItIsSaidAndFreedOnesServeAgain) {
  serve({.quota = {.slots = 3}});
  const auto execution = this->execution(4);
  const auto kept = values_;
  ASSERT_EQ(status_of(client().execute(execution)), ErrorStatus::kNone);
  auto other = execution;
  other.inputs[0].memory = file(16, MapAccess::kRead);
  EXPECT_EQ(status_of(client().execute(other)), ErrorStatus::kResourceExhaustedTransient);
  // What was freed before the next request makes room for it, whichever is read first.
  client().free_memory(*kept);
  EXPECT_EQ(status_of(client().execute(other)), ErrorStatus::kNone);
}

TEST_P(X03, GivenAQuotaOfBytes_WhenItWouldBeExceeded_ThenItIsRefused) {
  serve({.quota = {.slots = 100, .bytes = std::uint64_t{16} * 4096}});
  EXPECT_EQ(status_of(client().execute(this->execution(4))), ErrorStatus::kNone);
  // Each of its two large files would fit alone.
  EXPECT_EQ(status_of(client().execute(this->execution(13'000))),
            ErrorStatus::kResourceExhaustedTransient);
}

TEST_P(X03, GivenClientAndMemory_WhenTheyGoInAnyOrder_ThenNothingHappens) {
  {
    const auto execution = this->execution(16);
    ASSERT_EQ(status_of(client().execute(execution)), ErrorStatus::kNone);
    client_.reset();
  }
  values_.reset();
  places_.reset();
  out_.reset();
  const auto again = this->execution(16);
  ASSERT_EQ(status_of(client().execute(again)), ErrorStatus::kNone);
}

TEST_P(X01, GivenBursts_WhenTheyLive_ThenTheModelIsHotAndTheLastReleaseUndoesIt) {
  const std::filesystem::path latency = std::filesystem::path(socket()).replace_filename("latency");
  std::ofstream(latency).put(' ');
  serve({.idle_limit = Nanoseconds(1), .latency_file = latency});
  EXPECT_EQ(model_->holds(), 0);
  EXPECT_FALSE(model_->asks_for_latency());
  {
    auto one = BurstClient::create(seen());
    auto two = BurstClient::create(seen());
    ASSERT_TRUE(one && two);
    EXPECT_EQ(model_->holds(), 2);
    EXPECT_TRUE(model_->asks_for_latency());
    EXPECT_FALSE(model_->let_go_if_idle());
    one->reset();
    while (model_->holds() != 1) std::this_thread::yield();
    EXPECT_TRUE(model_->asks_for_latency());
    EXPECT_FALSE(model_->let_go_if_idle());
  }
  while (model_->holds() != 0) std::this_thread::yield();
  EXPECT_FALSE(model_->asks_for_latency());
  EXPECT_TRUE(model_->let_go_if_idle());
  EXPECT_FALSE(model_->is_loaded());
  // It comes back for the next burst.
  ASSERT_EQ(status_of(client().execute(this->execution(4))), ErrorStatus::kNone);
  EXPECT_TRUE(model_->is_loaded());
}

TEST_P(X04, GivenADescription_WhenSeenByAClient_ThenItIsTheModels) {
  const auto model = seen();
  ASSERT_EQ(model->inputs().size(), 2u);
  EXPECT_EQ(model->inputs()[0].name, "values");
  EXPECT_EQ(model->inputs()[0].dims[0].maximum, 100'000);
  EXPECT_EQ(model->outputs()[1].type, DataType::kInt64);
  EXPECT_EQ(model->artefact_hash(), "0123");
}

}  // namespace
}  // namespace penstock
