// SPDX-License-Identifier: Apache-2.0
//
// What a burst's service answers to requests as bytes, and its factories (contract X02-X05).
#include "penstock/burst/burst_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/burst/datum.h"
#include "penstock/burst/message_queue.h"
#include "penstock/burst/packet_channel.h"
#include "penstock/burst/request_packet.h"
#include "penstock/burst/result_packet.h"
#include "penstock/burst/testing/raw_burst.h"

namespace penstock {
namespace {

using testing::Requests;
using testing::Results;
using testing::soon;

/// Answers with what it was asked; keeps no memory but counts.
class EchoExecutor final : public BurstExecutor {
 public:
  struct Seen {
    std::vector<BurstRequest> requests;
    std::vector<std::int32_t> added, removed;
    std::function<BurstResult(const BurstRequest&)> answer;
  };
  explicit EchoExecutor(std::shared_ptr<Seen> seen) : seen_(std::move(seen)) {}

  bool is_cached(std::int32_t slot) const override { return slots_.contains(slot); }
  ErrorStatus add(std::int32_t slot, BurstMemory) override {
    seen_->added.push_back(slot);
    slots_.insert(slot);
    return ErrorStatus::kNone;
  }
  void remove(std::int32_t slot) override {
    seen_->removed.push_back(slot);
    slots_.erase(slot);
  }
  BurstResult execute(const BurstRequest& request, Deadline) override {
    seen_->requests.push_back(request);
    if (seen_->answer) return seen_->answer(request);
    BurstResult result{.status = ErrorStatus::kNone, .shapes = {}, .timing = {}};
    for (const RequestArgument& output : request.outputs) {
      result.shapes.push_back({output.dimensions, true});
    }
    return result;
  }

 private:
  const std::shared_ptr<Seen> seen_;
  std::set<std::int32_t> slots_;
};

/// Gives an empty file for every slot but those it does not know.
class FileCallback final : public BurstCallback {
 public:
  Memories get_memories(std::span<const std::int32_t> slots, Deadline) override {
    asked.emplace_back(slots.begin(), slots.end());
    if (answer != ErrorStatus::kNone) return {.status = answer, .memories = {}};
    Memories memories{.status = ErrorStatus::kNone, .memories = {}};
    for (std::size_t i = 0; i < slots.size() + more; ++i) {
      auto file = create_shared_file(4096);
      memories.memories.push_back(
          {MemoryKind::kSharedFile, MemoryAccess::kReadWrite, 0, 4096, std::move(*file)});
    }
    return memories;
  }
  ErrorStatus answer = ErrorStatus::kNone;
  std::size_t more = 0;
  std::vector<std::vector<std::int32_t>> asked;
};

class RawBurst : public testing::RawQueues {
 protected:
  ConfiguredBurst configure(const BurstServerOptions& options = {}) {
    return BurstServer::create(configuration(), std::make_unique<EchoExecutor>(seen_), options);
  }
  BurstConfiguration configuration() { return configuration_with(callback_); }
  void start(const BurstServerOptions& options = {}) { keep(configure(options)); }
  BurstResult ask(std::span<const FmqRequestDatum> packet) {
    const auto sent = send_packet<FmqRequestDatum>(*requests_, packet);
    EXPECT_TRUE(sent);
    return take();
  }
  BurstResult take() {
    auto packet = receive_packet(*results_, soon());
    if (!packet && packet.error() == QueueError::kPeerGone) {
      // What a service wrote before it went is there all the same.
      packet = std::vector<FmqResultDatum>(results_->available().value_or(0));
      EXPECT_TRUE(results_->read(*packet));
    }
    EXPECT_TRUE(packet);
    last_.clear();
    if (!packet) return {};
    last_ = *packet;
    auto result = parse_result(*packet);
    EXPECT_TRUE(result) << message_of(result.error());
    return result ? *result : BurstResult{};
  }
  static BurstRequest request() {
    return {.inputs = {{false, {0, 0, 16}, {1, 2, 2}}},
            .outputs = {{false, {1, 0, 16}, {4}}},
            .slots = {5, 3},
            .measure = MeasureTiming::kOff};
  }

  std::shared_ptr<EchoExecutor::Seen> seen_ = std::make_shared<EchoExecutor::Seen>();
  std::shared_ptr<FileCallback> callback_ = std::make_shared<FileCallback>();
  std::vector<FmqResultDatum> last_;
};

using X02_Server = RawBurst;
using X03_Server = RawBurst;
using X04_Server = RawBurst;
using X05_Server = RawBurst;

TEST_F(X02_Server, GivenARequest_WhenServed_ThenTheExecutorSeesItAndItsSlots) {
  start();
  const auto result = ask(serialise(request()));
  EXPECT_EQ(result.status, ErrorStatus::kNone);
  ASSERT_EQ(result.shapes.size(), 1u);
  EXPECT_EQ(result.shapes[0].dimensions, std::vector<std::uint32_t>{4});
  ASSERT_EQ(seen_->requests.size(), 1u);
  EXPECT_EQ(seen_->requests[0], request());
  EXPECT_EQ(callback_->asked, (std::vector<std::vector<std::int32_t>>{{3, 5}}));
}

TEST_F(X02_Server, GivenADatumLess_WhenServed_ThenItIsAFailureAndTheNextIsServed) {
  start();
  const auto whole = serialise(request());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto packet = whole;
    packet.erase(packet.begin() + static_cast<std::ptrdiff_t>(i));
    const auto result = ask(packet);
    EXPECT_EQ(result.status, ErrorStatus::kGeneralFailure) << i;
    EXPECT_TRUE(result.shapes.empty());
    EXPECT_EQ(result.timing, Timing{});
    EXPECT_EQ(ask(whole).status, ErrorStatus::kNone) << i;
  }
}

TEST_F(X02_Server, GivenADatumMore_WhenServed_ThenItIsAFailureAndTheNextIsServed) {
  start();
  const auto whole = serialise(request());
  for (std::size_t i = 0; i <= whole.size(); ++i) {
    for (const FmqRequestDatum& extra : whole) {
      auto packet = whole;
      packet.insert(packet.begin() + static_cast<std::ptrdiff_t>(i), extra);
      ASSERT_EQ(ask(packet).status, ErrorStatus::kGeneralFailure) << i;
      ASSERT_EQ(ask(whole).status, ErrorStatus::kNone) << i;
    }
  }
}

TEST_F(X02_Server, GivenTwoPacketsAtOnce_WhenServed_ThenTheyAreOneMalformedOne) {
  start();
  auto both = serialise(request());
  const auto one = both;
  both.insert(both.end(), one.begin(), one.end());
  EXPECT_EQ(ask(both).status, ErrorStatus::kGeneralFailure);
  EXPECT_TRUE(seen_->requests.empty());
}

TEST_F(X02_Server, GivenAResult_WhenSent_ThenItsPaddingIsZero) {
  seen_->answer = [](const BurstRequest&) {
    return BurstResult{.status = ErrorStatus::kNone, .shapes = {{{7}, true}}, .timing = {}};
  };
  start();
  ask(serialise(request()));
  ASSERT_EQ(last_.size(), 4u);
  for (const FmqResultDatum& datum : last_) {
    for (const std::uint8_t byte : datum.padding) EXPECT_EQ(byte, 0);
  }
  for (const std::uint8_t byte : last_[1].operand_information.padding) EXPECT_EQ(byte, 0);
  for (std::size_t i = 4; i < 16; ++i) EXPECT_EQ(last_[2].bytes.at(i), 0) << i;
}

TEST_F(X05_Server, GivenAResultTooLongForTheQueue_WhenSent_ThenItIsAGeneralFailure) {
  seen_->answer = [](const BurstRequest&) {
    return BurstResult{.status = ErrorStatus::kNone,
                       .shapes = {{std::vector<std::uint32_t>(2000, 1), true}},
                       .timing = {}};
  };
  start();
  const auto result = ask(serialise(request()));
  EXPECT_EQ(result.status, ErrorStatus::kGeneralFailure);
  EXPECT_TRUE(result.shapes.empty());
  seen_->answer = nullptr;
  EXPECT_EQ(ask(serialise(request())).status, ErrorStatus::kNone);
}

TEST_F(X05_Server, GivenAnExecutionInTheQueue_WhenAnotherComesDirectly_ThenItIsRefused) {
  std::latch runs(1), goes_on(1);
  seen_->answer = [&](const BurstRequest&) {
    runs.count_down();
    goes_on.wait();
    return BurstResult{.status = ErrorStatus::kNone, .shapes = {}, .timing = {}};
  };
  start();
  const auto packet = serialise(request());
  ASSERT_TRUE(send_packet<FmqRequestDatum>(*requests_, packet));
  runs.wait();
  EXPECT_EQ(context_->execute(request(), soon()).status, ErrorStatus::kGeneralFailure);
  goes_on.count_down();
  EXPECT_EQ(take().status, ErrorStatus::kNone);
  EXPECT_EQ(seen_->requests.size(), 1u);
}

TEST_F(X05_Server, GivenTheSameRequestBothWays_WhenExecuted_ThenResultsAreEqual) {
  start();
  const auto queued = ask(serialise(request()));
  const auto direct = context_->execute(request(), soon());
  EXPECT_EQ(queued, direct);
  EXPECT_EQ(seen_->requests.at(0), seen_->requests.at(1));
}

TEST_F(X03_Server, GivenMemoriesThatDoNotCome_WhenServed_ThenTheStatusIsTheCallbacks) {
  start();
  callback_->answer = ErrorStatus::kInvalidArgument;
  EXPECT_EQ(ask(serialise(request())).status, ErrorStatus::kInvalidArgument);
  callback_->answer = ErrorStatus::kNone;
  callback_->more = 1;
  EXPECT_EQ(ask(serialise(request())).status, ErrorStatus::kGeneralFailure);
  EXPECT_TRUE(seen_->requests.empty());
  callback_->more = 0;
  EXPECT_EQ(ask(serialise(request())).status, ErrorStatus::kNone);
}

TEST_F(X03_Server, GivenManySlots_WhenTheyAreFetched_ThenAtMostSixteenAtATime) {
  start();
  auto wanted = request();
  wanted.slots.clear();
  for (int i = 40; i >= 0; --i) wanted.slots.push_back(i);
  EXPECT_EQ(ask(serialise(wanted)).status, ErrorStatus::kNone);
  ASSERT_EQ(callback_->asked.size(), 3u);
  EXPECT_EQ(callback_->asked[0].size(), 16u);
  EXPECT_EQ(callback_->asked[2].size(), 9u);
  EXPECT_EQ(callback_->asked[0][0], 0) << "in order";
}

TEST_F(X03_Server, GivenASlotBelowZero_WhenServed_ThenItIsInvalidAndNobodyIsAsked) {
  start();
  auto wanted = request();
  wanted.slots[0] = -1;
  EXPECT_EQ(ask(serialise(wanted)).status, ErrorStatus::kInvalidArgument);
  EXPECT_TRUE(callback_->asked.empty());
}

TEST_F(X03_Server, GivenSlotsThatNobodyHas_WhenFreedWithoutEnd_ThenNothingGrows) {
  start();
  ask(serialise(request()));
  for (int slot = 100; slot < 10'000; ++slot) context_->free_memory(slot);
  context_->free_memory(3);
  context_->free_memory(3);
  EXPECT_EQ(seen_->removed, std::vector<std::int32_t>{3});
}

TEST_F(X03_Server, GivenASlotFreedDuringAnExecution_WhenItEnds_ThenItIsRemovedOnlyThen) {
  bool was_there = false;
  seen_->answer = [&](const BurstRequest&) {
    std::thread([&] { context_->free_memory(3); }).join();
    was_there = seen_->removed.empty();
    return BurstResult{.status = ErrorStatus::kNone, .shapes = {}, .timing = {}};
  };
  start();
  EXPECT_EQ(ask(serialise(request())).status, ErrorStatus::kNone);
  EXPECT_TRUE(was_there);
  EXPECT_EQ(seen_->removed, std::vector<std::int32_t>{3});
}

TEST_F(X04_Server, GivenASynchronousModel_WhenServed_ThenItGetsMemoriesWithEachRequest) {
  class Model final : public SynchronousModel {
   public:
    BurstResult execute(const BurstRequest& request, std::span<const BurstMemory* const> pools,
                        Deadline) override {
      for (const BurstMemory* pool : pools) sizes.push_back(pool->size);
      slots = request.slots;
      return {.status = ErrorStatus::kNone, .shapes = {}, .timing = {}};
    }
    std::vector<std::uint64_t> sizes;
    std::vector<std::int32_t> slots;
  };
  const auto model = std::make_shared<Model>();
  auto configured = BurstServer::create(configuration(), model);
  ASSERT_EQ(configured.status, ErrorStatus::kNone);
  ASSERT_TRUE(requests_->settle() && results_->settle());
  ask(serialise(request()));
  ask(serialise(request()));
  EXPECT_EQ(model->sizes, (std::vector<std::uint64_t>{4096, 4096, 4096, 4096}));
  EXPECT_EQ(model->slots, (std::vector<std::int32_t>{5, 3}));
  EXPECT_EQ(callback_->asked.size(), 1u) << "they are kept";
  configured.context.reset();
}

TEST_F(X04_Server, GivenSomethingMissing_WhenCreated_ThenThereIsNoContext) {
  const auto check = [](const ConfiguredBurst& configured) {
    EXPECT_EQ(configured.status, ErrorStatus::kInvalidArgument);
    EXPECT_EQ(configured.context, nullptr);
    EXPECT_FALSE(configured.message.empty());
  };
  check(BurstServer::create(configuration(), std::unique_ptr<BurstExecutor>()));
  SetUp();
  check(BurstServer::create(configuration(), std::shared_ptr<SynchronousModel>()));
  SetUp();
  auto without = configuration();
  without.callback = nullptr;
  check(BurstServer::create(std::move(without), std::make_unique<EchoExecutor>(seen_)));
}

TEST_F(X04_Server, GivenQueuesOfAnotherLength_WhenCreated_ThenTheyAreRefusedUnmapped) {
  auto small = Requests::create_writer({512, true});
  ASSERT_TRUE(small);
  auto configured = configuration();
  configured.requests = std::move(*small->describe());
  const auto refused =
      BurstServer::create(std::move(configured), std::make_unique<EchoExecutor>(seen_));
  EXPECT_EQ(refused.status, ErrorStatus::kInvalidArgument);
  EXPECT_NE(refused.message.find("1024"), std::string::npos);
  EXPECT_FALSE(small->settle()) << "nobody has attached it";
}

TEST_F(X04_Server, GivenQueuesWithoutAFlag_WhenCreated_ThenTheyAreRefused) {
  auto flagless = Results::create_reader({kBurstChannelLength, false});
  ASSERT_TRUE(flagless);
  auto configured = configuration();
  configured.results = std::move(*flagless->describe());
  EXPECT_EQ(
      BurstServer::create(std::move(configured), std::make_unique<EchoExecutor>(seen_)).status,
      ErrorStatus::kInvalidArgument);
}

TEST_F(X04_Server, GivenTheContextGoes_WhenWithinItsOwnExecution_ThenNothingHangs) {
  std::promise<void> ended;
  seen_->answer = [&](const BurstRequest&) {
    context_.reset();
    ended.set_value();
    return BurstResult{.status = ErrorStatus::kNone, .shapes = {}, .timing = {}};
  };
  start();
  const auto packet = serialise(request());
  ASSERT_TRUE(send_packet<FmqRequestDatum>(*requests_, packet));
  ended.get_future().wait();
  EXPECT_EQ(context_, nullptr);
  take();  // The thread lives until it has answered.
}

TEST_F(X04_Server, GivenTheContextGoes_WhenAnExecutionRuns_ThenItIsAnsweredFirst) {
  std::latch runs(1);
  std::atomic<bool> is_done{false};
  seen_->answer = [&](const BurstRequest&) {
    runs.count_down();
    const TimePoint until = Clock::system().now() + Milliseconds(20);
    while (Clock::system().now() < until) {
    }
    is_done = true;
    return BurstResult{.status = ErrorStatus::kNone, .shapes = {}, .timing = {}};
  };
  start();
  const auto packet = serialise(request());
  ASSERT_TRUE(send_packet<FmqRequestDatum>(*requests_, packet));
  runs.wait();
  context_.reset();
  EXPECT_TRUE(is_done);
  EXPECT_EQ(take().status, ErrorStatus::kNone);
}

TEST_F(X02_Server, GivenAClientThatTakesNoResult_WhenTheQueueIsFull_ThenTheBurstEnds) {
  // A result is two datums: after 512 of them there is no room.
  seen_->answer = [](const BurstRequest&) { return BurstResult{}; };
  auto service = std::make_shared<Lifeline>();
  auto configured = configuration();
  configured.service_lifeline = service;
  auto burst = BurstServer::create(std::move(configured), std::make_unique<EchoExecutor>(seen_));
  ASSERT_EQ(burst.status, ErrorStatus::kNone);
  ASSERT_TRUE(requests_->settle() && results_->settle());
  const auto packet = serialise(request());
  for (std::size_t i = 0; i < 512; ++i) {
    ASSERT_TRUE(send_packet<FmqRequestDatum>(*requests_, packet));
    while (*requests_->available() != kBurstChannelLength) std::this_thread::yield();
    while (*results_->available() < 2 * (i + 1)) std::this_thread::yield();
  }
  ASSERT_TRUE(send_packet<FmqRequestDatum>(*requests_, packet));
  while (service->check()) std::this_thread::yield();
  burst.context.reset();
}

}  // namespace
}  // namespace penstock
