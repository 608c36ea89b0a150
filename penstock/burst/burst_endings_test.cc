// SPDX-License-Identifier: Apache-2.0
//
// How bursts end, from either side, and what is left of them then (contract X03-X05, Q04, Q05).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "penstock/burst/burst_server.h"
#include "penstock/burst/control_messages.h"
#include "penstock/burst/datum.h"
#include "penstock/burst/lifeline.h"
#include "penstock/burst/message_queue.h"
#include "penstock/burst/packet_channel.h"
#include "penstock/burst/request_packet.h"
#include "penstock/burst/result_packet.h"
#include "penstock/burst/socket_file.h"
#include "penstock/burst/testing/raw_burst.h"

namespace penstock {
namespace {

using testing::soon;
using testing::Way;

// --- a burst as its client's raw queues

/// Caches every slot; answers kNone.
class SlotExecutor final : public BurstExecutor {
 public:
  /// Looked at by the test's thread when the burst is over.
  using Slots = std::set<std::int32_t>;
  explicit SlotExecutor(std::shared_ptr<Slots> slots) : slots_(std::move(slots)) {}

  bool is_cached(std::int32_t slot) const override { return slots_->contains(slot); }
  ErrorStatus add(std::int32_t slot, BurstMemory) override {
    slots_->insert(slot);
    return ErrorStatus::kNone;
  }
  void remove(std::int32_t slot) override { slots_->erase(slot); }
  BurstResult execute(const BurstRequest&, Deadline) override {
    // A device can't have been busy longer than its driver was: the server must not pass this on.
    return {.status = ErrorStatus::kNone, .shapes = {}, .timing = {1'000'000'000, 0}};
  }

 private:
  const std::shared_ptr<Slots> slots_;
};

/// Memories that cost nothing: the executor does not look at them.
class EmptyCallback final : public BurstCallback {
 public:
  Memories get_memories(std::span<const std::int32_t> slots, Deadline) override {
    if (meanwhile) meanwhile(slots);
    return {.status = ErrorStatus::kNone, .memories = std::vector<BurstMemory>(slots.size())};
  }
  std::function<void(std::span<const std::int32_t>)> meanwhile;
};

class EndingBurst : public testing::RawQueues {
 protected:
  /// After what the burst's thread will look at has been set.
  void start() {
    keep(BurstServer::create(configuration_with(callback_, service_lifeline_),
                             std::make_unique<SlotExecutor>(slots_)));
  }
  ErrorStatus ask(std::vector<std::int32_t> slots) {
    const auto packet = serialise(BurstRequest{
        .inputs = {}, .outputs = {}, .slots = std::move(slots), .measure = MeasureTiming::kOff});
    EXPECT_TRUE(send_packet<FmqRequestDatum>(*requests_, packet));
    return take();
  }
  ErrorStatus take() {
    const auto packet = receive_packet(*results_, soon());
    if (!packet) {
      ADD_FAILURE() << to_string(packet.error());
      return ErrorStatus::kGeneralFailure;
    }
    const auto result = parse_result(*packet);
    return result ? result->status : ErrorStatus::kGeneralFailure;
  }

  std::shared_ptr<Lifeline> service_lifeline_ = std::make_shared<Lifeline>();
  std::shared_ptr<SlotExecutor::Slots> slots_ = std::make_shared<SlotExecutor::Slots>();
  std::shared_ptr<EmptyCallback> callback_ = std::make_shared<EmptyCallback>();
};

using X03_Ending = EndingBurst;
using X05_Ending = EndingBurst;
using Q04_Ending = EndingBurst;

TEST_F(X03_Ending, GivenASlotFreedWhileItIsFetched_WhenTheExecutionEnds_ThenItIsGone) {
  callback_->meanwhile = [&](std::span<const std::int32_t> slots) {
    context_->free_memory(slots.front());
  };
  start();
  EXPECT_EQ(ask({4, 7}), ErrorStatus::kNone) << "it was there for the request that named it";
  context_.reset();
  EXPECT_EQ(*slots_, SlotExecutor::Slots{7});
}

TEST_F(X03_Ending, GivenMoreSlotsThanABurstMayHave_WhenUsed_ThenItIsSaidAndFreedOnesServeAgain) {
  start();
  std::vector<std::int32_t> first;
  std::vector<std::int32_t> second;
  for (std::int32_t slot = 0; slot < 512; ++slot) {
    first.push_back(slot);
    second.push_back(512 + slot);
  }
  EXPECT_EQ(ask(first), ErrorStatus::kNone);
  EXPECT_EQ(ask(second), ErrorStatus::kNone);
  EXPECT_EQ(ask({5000}), ErrorStatus::kResourceExhaustedTransient);
  EXPECT_EQ(ask({5001}), ErrorStatus::kResourceExhaustedTransient) << "one refused takes no place";
  EXPECT_EQ(ask(first), ErrorStatus::kNone) << "what is known goes on";
  context_->free_memory(3);
  EXPECT_EQ(ask({5002}), ErrorStatus::kNone);
  context_.reset();
  EXPECT_EQ(slots_->size(), BurstServer::kMaxSlots);
}

TEST_F(X03_Ending, GivenAFreeThatComesWithTheMemories_WhenAllPlacesAreTaken_ThenThereIsRoom) {
  // As over a socket, where nothing orders the queue's request after a FreeMemory sent before it.
  callback_->meanwhile = [&](std::span<const std::int32_t> slots) {
    if (slots.front() == 2000) context_->free_memory(0);
  };
  start();
  std::vector<std::int32_t> half;
  for (std::int32_t slot = 0; slot < 512; ++slot) half.push_back(slot);
  ASSERT_EQ(ask(half), ErrorStatus::kNone);
  for (std::int32_t& slot : half) slot += 512;
  ASSERT_EQ(ask(half), ErrorStatus::kNone);
  EXPECT_EQ(ask({2000}), ErrorStatus::kNone);
}

TEST_F(X05_Ending, GivenADeviceThatExaggerates_WhenExecutedDirectly_ThenItIsWithinTheDriversTime) {
  start();
  const BurstResult result = context_->execute(
      {.inputs = {}, .outputs = {}, .slots = {}, .measure = MeasureTiming::kOn}, soon());
  ASSERT_EQ(result.status, ErrorStatus::kNone);
  ASSERT_NE(result.timing.time_in_driver, kNoTiming);
  EXPECT_LE(result.timing.time_on_device, result.timing.time_in_driver);
}

TEST_F(Q04_Ending, GivenMalformedPacketsInARow_WhenAnotherIsNot_ThenItIsServed) {
  start();
  const std::vector<FmqRequestDatum> nonsense(1);
  for (int i = 0; i < 24; ++i) {
    ASSERT_TRUE(send_packet<FmqRequestDatum>(*requests_, nonsense));
    ASSERT_EQ(take(), ErrorStatus::kGeneralFailure);
  }
  EXPECT_EQ(ask({}), ErrorStatus::kNone);
}

TEST_F(Q04_Ending, GivenAClientThatTakesNoResult_WhenThereIsNoRoom_ThenItsWaitsEndAtOnce) {
  start();
  const auto request = serialise(BurstRequest{});
  // A result is two datums: there is room for 512.
  for (int i = 0; i < 513; ++i) {
    ASSERT_TRUE(send_packet<FmqRequestDatum>(*requests_, request));
    while (lifeline_->check() && *requests_->available() != kBurstChannelLength) {
      std::this_thread::yield();
    }
  }
  while (lifeline_->check()) std::this_thread::yield();
  EXPECT_EQ(receive_packet(*results_, soon()).error(), QueueError::kPeerGone);
  EXPECT_EQ(service_lifeline_->check().error(), QueueError::kCorrupt);
}

// --- over a socket

using EndingHost = testing::RawHost;
using X01_EndingHost = EndingHost;
using X04_EndingHost = EndingHost;
using Q04_EndingHost = EndingHost;
using Q05_EndingHost = EndingHost;
const auto kOverASocket = ::testing::Values(Way::kSocket);
INSTANTIATE_TEST_SUITE_P(Burst, X01_EndingHost, kOverASocket, testing::name_of);
INSTANTIATE_TEST_SUITE_P(Burst, X04_EndingHost, kOverASocket, testing::name_of);
INSTANTIATE_TEST_SUITE_P(Burst, Q04_EndingHost, kOverASocket, testing::name_of);
INSTANTIATE_TEST_SUITE_P(Burst, Q05_EndingHost, kOverASocket, testing::name_of);

TEST_P(Q04_EndingHost, GivenABurstThatEndsByItself_WhenItHas_ThenItsClientIsToldAndNothingIsHeld) {
  const FdSocket socket = connect();
  configure(socket);
  // Results that nobody takes: there is room for 512.
  const auto request = serialise(BurstRequest{});
  for (int i = 0; i < 513; ++i) {
    ASSERT_TRUE(send_packet<FmqRequestDatum>(*requests_, request));
    while (host_->clients() == 1 && *requests_->available() != kBurstChannelLength) {
      std::this_thread::yield();
    }
  }
  std::string reason;
  while (true) {
    auto message = receive_control(socket, soon());
    if (!message) {
      EXPECT_EQ(message.error().kind(), ErrorKind::kNotFound) << message.error().message();
      break;
    }
    if (const auto* closing = std::get_if<ClosingMessage>(&message->body)) reason = closing->reason;
  }
  EXPECT_EQ(reason, "the service has ended this burst");
  while (host_->clients() > 0) std::this_thread::yield();
  EXPECT_EQ(model_->holds(), 0);
}

TEST_P(Q05_EndingHost, GivenClientsThatDoNotAnswer_WhenTheServerStops_ThenItDoesNotWaitForThem) {
  const auto request = serialise(
      BurstRequest{.inputs = {}, .outputs = {}, .slots = {1}, .measure = MeasureTiming::kOff});
  std::vector<FdSocket> sockets;
  for (int i = 0; i < 8; ++i) {
    sockets.push_back(connect());
    configure(sockets.back());
    ASSERT_TRUE(send_packet<FmqRequestDatum>(*requests_, request));
    const auto asked = receive_control(sockets.back(), soon());
    ASSERT_TRUE(asked && std::holds_alternative<GetMemoriesMessage>(asked->body));
  }
  const TimePoint from = Clock::system().now();
  host_->stop();
  EXPECT_LT(Clock::system().now() - from, std::chrono::seconds(4)) << "one second for all";
  EXPECT_EQ(host_->clients(), 0u);
}

TEST_P(Q05_EndingHost, GivenAnExecutionThatDoesNotEnd_WhenTheServerStops_ThenItIsInterrupted) {
  std::latch interrupted(1);
  serve({}, {.drain_limit = Nanoseconds(1), .on_overtime = [&] { interrupted.count_down(); }});
  std::latch runs(1);
  session_->before = [&] {
    runs.count_down();
    interrupted.wait();
  };
  const auto execution = this->execution(100);
  BurstClient& client = this->client();
  auto running = std::async(std::launch::async, [&] { return client.execute(execution); });
  runs.wait();
  host_->stop();
  EXPECT_TRUE(interrupted.try_wait());
  running.wait();
}

TEST_P(X04_EndingHost, GivenAnotherServersSocket_WhenThisOneStops_ThenItStays) {
  std::filesystem::remove(socket());
  auto other = SocketFile::listen(socket());
  ASSERT_TRUE(other) << other.error().message();
  host_->stop();
  EXPECT_TRUE(std::filesystem::exists(socket()));
  other->remove_name();
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

TEST_P(X01_EndingHost, GivenAModelThatCameBackAsAnother_WhenConfigured_ThenItIsUnavailable) {
  /// The inputs of another model.
  class OtherSession final : public Session {
   public:
    const std::vector<TensorSpec>& inputs() const override { return none_; }
    const std::vector<TensorSpec>& outputs() const override { return none_; }
    Result<std::vector<Tensor>> run(std::span<const Tensor>) override {
      return fail(ErrorKind::kInternal, "nobody runs this");
    }
    void interrupt() override {}

   private:
    std::vector<TensorSpec> none_;
  };
  int opened = 0;
  ManualClock clock;
  auto model =
      SessionModel::create(device_,
                           [&]() -> Result<std::shared_ptr<Session>> {
                             if (++opened == 1) return std::make_shared<testing::SmallSession>();
                             return std::make_shared<OtherSession>();
                           },
                           {.name = "small", .idle_limit = Nanoseconds(1), .clock = &clock});
  ASSERT_TRUE(model);
  clock.advance(Nanoseconds(2));
  ASSERT_TRUE((*model)->let_go_if_idle());
  const auto configured = (*model)->configure_burst({});
  EXPECT_EQ(configured.status, ErrorStatus::kDeviceUnavailable);
  EXPECT_NE(configured.message.find("small"), std::string::npos) << configured.message;
  EXPECT_EQ((*model)->holds(), 0);
}

/// More than a message holds.
class TalkativeModel final : public BurstModel {
 public:
  TalkativeModel() {
    for (int i = 0; i < 1000; ++i) inputs_.push_back({.name = std::string(100, 'n'), .dims = {}});
  }
  const std::vector<TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<TensorSpec>& outputs() const override { return outputs_; }
  const std::string& artefact_hash() const override { return hash_; }
  ConfiguredBurst configure_burst(BurstConfiguration) override {
    ADD_FAILURE() << "a burst that nobody can be told of";
    return {};
  }

 private:
  std::vector<TensorSpec> inputs_, outputs_;
  std::string hash_;
};

TEST_P(X04_EndingHost, GivenAModelThatFitsNoMessage_WhenAskedFor_ThenTheClientIsToldWhy) {
  host_.reset();
  auto host = BurstHost::listen(socket(), {{"small", std::make_shared<TalkativeModel>()}});
  ASSERT_TRUE(host) << host.error().message();
  const auto remote = RemoteModel::connect(socket(), "small");
  ASSERT_FALSE(remote);
  EXPECT_NE(remote.error().message().find("bytes"), std::string::npos) << remote.error().message();
}

TEST(Q05_Lifeline, GivenAWord_WhenCutTwice_ThenItIsSaidOnce) {
  int said = 0;
  Lifeline lifeline([&] { ++said; });
  EXPECT_EQ(said, 0);
  lifeline.cut(Lifeline::Cause::kPeerGone);
  lifeline.cut(Lifeline::Cause::kStopped);
  EXPECT_EQ(said, 1);
  EXPECT_EQ(lifeline.check().error(), QueueError::kPeerGone);
}

}  // namespace
}  // namespace penstock
