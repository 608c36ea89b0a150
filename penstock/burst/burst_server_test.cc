// SPDX-License-Identifier: Apache-2.0
//
// What a burst's service answers to requests as bytes, its factories, and a host's rules
// (contract X02, X04, Q04, Q05).
#include "penstock/burst/burst_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <latch>
#include <random>
#include <thread>

#include "penstock/burst/control_messages.h"
#include "penstock/burst/datum.h"
#include "penstock/burst/message_queue.h"
#include "penstock/burst/packet_channel.h"
#include "penstock/burst/request_packet.h"
#include "penstock/burst/result_packet.h"
#include "penstock/burst/testing/burst_fixture.h"
#include "penstock/burst/unix_address.h"

namespace penstock {
namespace {

using testing::soon;
using testing::Way;
using Requests = MessageQueue<FmqRequestDatum, QueueFlavor::kSynchronised>;
using Results = MessageQueue<FmqResultDatum, QueueFlavor::kSynchronised>;

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

/// A burst as its client's raw queues.
class RawBurst : public ::testing::Test {
 protected:
  void SetUp() override {
    auto writer = Requests::create_writer({kBurstChannelLength, true}, {.lifeline = lifeline_});
    auto reader = Results::create_reader({kBurstChannelLength, true}, {.lifeline = lifeline_});
    ASSERT_TRUE(writer && reader);
    requests_.emplace(std::move(*writer));
    results_.emplace(std::move(*reader));
  }
  ConfiguredBurst configure(const BurstServerOptions& options = {}) {
    return BurstServer::create(configuration(), std::make_unique<EchoExecutor>(seen_), options);
  }
  BurstConfiguration configuration() {
    return {.callback = callback_,
            .requests = std::move(*requests_->describe()),
            .results = std::move(*results_->describe()),
            .client_lifeline = lifeline_,
            .service_lifeline = nullptr};
  }
  void start(const BurstServerOptions& options = {}) {
    auto configured = configure(options);
    ASSERT_EQ(configured.status, ErrorStatus::kNone) << configured.message;
    context_ = std::move(configured.context);
    ASSERT_TRUE(requests_->settle());
    ASSERT_TRUE(results_->settle());
  }
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

  std::shared_ptr<Lifeline> lifeline_ = std::make_shared<Lifeline>();
  std::shared_ptr<EchoExecutor::Seen> seen_ = std::make_shared<EchoExecutor::Seen>();
  std::shared_ptr<FileCallback> callback_ = std::make_shared<FileCallback>();
  std::optional<Requests::Writer> requests_;
  std::optional<Results::Reader> results_;
  std::unique_ptr<BurstContext> context_;
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

// --- over a socket

class HostTest : public testing::BurstTest {
 protected:
  FdSocket connect() {
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const auto address = UnixAddress::of(this->socket());
    EXPECT_EQ(::connect(socket.get(), address->get(), address->size()), 0);
    return FdSocket(std::move(socket));
  }
  /// The server's word is its end of the socket.
  static void expect_end(const FdSocket& socket) {
    while (true) {
      const auto came = socket.receive(soon());
      if (came) continue;
      EXPECT_EQ(came.error().kind(), ErrorKind::kNotFound) << came.error().message();
      return;
    }
  }
  static ControlMessage configure_message(std::string model = "small") {
    auto requests = Requests::create_writer({kBurstChannelLength, true});
    auto results = Results::create_reader({kBurstChannelLength, true});
    return {.id = 1,
            .body = ConfigureMessage{.model = std::move(model),
                                     .requests = std::move(*requests->describe()),
                                     .results = std::move(*results->describe())}};
  }
};
using X04_Host = HostTest;
using Q04_Host = HostTest;
using Q05_Host = HostTest;
INSTANTIATE_TEST_SUITE_P(Burst, X04_Host, ::testing::Values(Way::kSocket), testing::name_of);
INSTANTIATE_TEST_SUITE_P(Burst, Q04_Host, ::testing::Values(Way::kSocket), testing::name_of);
INSTANTIATE_TEST_SUITE_P(Burst, Q05_Host, ::testing::Values(Way::kSocket), testing::name_of);

TEST_P(X04_Host, GivenASocket_WhenListening_ThenOnlyItsUserMayConnect) {
  struct stat info{};
  ASSERT_EQ(::lstat(socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_P(X04_Host, GivenAServer_WhenAnotherIsToListenThere_ThenItIsRefused) {
  const auto second = BurstHost::listen(socket(), {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_NE(second.error().message().find("a server listens there"), std::string::npos);
}

TEST_P(X04_Host, GivenADeadServersSocket_WhenListening_ThenItIsReplaced) {
  host_.reset();
  {
    // Bound, and closed without taking the name away.
    UniqueFd dead(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
    const auto address = UnixAddress::of(socket());
    ASSERT_EQ(::bind(dead.get(), address->get(), address->size()), 0);
  }
  auto host = BurstHost::listen(socket(), {{"small", model_}});
  EXPECT_TRUE(host) << host.error().message();
}

TEST_P(X04_Host, GivenAnotherFile_WhenListening_ThenItStays) {
  host_.reset();
  std::ofstream(socket()) << "mine";
  const auto host = BurstHost::listen(socket(), {});
  ASSERT_FALSE(host);
  EXPECT_EQ(std::filesystem::file_size(socket()), 4u);
}

TEST_P(X04_Host, GivenAnUnknownModel_WhenConnected_ThenTheServerSaysSo) {
  const auto model = RemoteModel::connect(socket(), "large");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_NE(model.error().message().find("large"), std::string::npos);
  EXPECT_TRUE(RemoteModel::connect(socket(), "")) << "the only one that is served";
}

TEST_P(X04_Host, GivenNobody_WhenConnected_ThenItIsNotFound) {
  host_.reset();
  const auto model = RemoteModel::connect(socket(), "small");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind(), ErrorKind::kNotFound);
  EXPECT_NE(model.error().message().find(socket().string()), std::string::npos);
}

TEST_P(X04_Host, GivenAllPlacesTaken_WhenAnotherComes_ThenItIsToldAndOneThatLeavesMakesRoom) {
  serve({}, {.max_clients = 2});
  auto one = BurstClient::create(seen());
  auto two = BurstClient::create(seen());
  ASSERT_TRUE(one && two);
  const auto three = BurstClient::create(seen());
  ASSERT_FALSE(three);
  EXPECT_EQ(three.error().kind(), ErrorKind::kExhausted);
  EXPECT_NE(three.error().message().find("too many"), std::string::npos);
  one->reset();
  while (host_->clients() > 1) std::this_thread::yield();
  EXPECT_TRUE(BurstClient::create(seen()));
}

TEST_P(Q04_Host, GivenOneThatSaysNothing_WhenTheTimeIsOver_ThenItIsGivenUp) {
  serve({}, {.configure_limit = Milliseconds(20)});
  expect_end(connect());
}

TEST_P(Q04_Host, GivenManyThatSayNothing_WhenMoreCome_ThenTheyAreTurnedAwayAtOnce) {
  serve({}, {.max_newcomers = 2, .configure_limit = std::chrono::seconds(15)});
  const FdSocket one = connect();
  const FdSocket two = connect();
  while (host_->clients() < 2) std::this_thread::yield();
  expect_end(connect());
  EXPECT_EQ(host_->clients(), 2u);
}

TEST_P(Q04_Host, GivenNonsenseAtAnyStep_WhenItCame_ThenThatBurstEndsAndOthersGoOn) {
  const auto execution = this->execution(8);
  ASSERT_TRUE(client().execute(execution));
  const auto nonsense = [](const FdSocket& socket, int kind) {
    if (kind < 2) {
      const std::vector<std::byte> bytes(kind == 0 ? 1 : 4000, std::byte{0x5a});
      EXPECT_TRUE(socket.send(bytes, {}, soon()));
      return;
    }
    ControlMessage message = configure_message();
    message.id = 7;
    if (kind == 2) message.body = MemoriesMessage{};
    if (kind == 4) message.body = ConfiguredMessage{};
    if (kind == 5) message.body = DescribeMessage{};
    EXPECT_TRUE(send_control(socket, message, soon()));
  };
  for (int kind = 0; kind < 6; ++kind) {
    if (kind != 3 && kind != 5) {
      const FdSocket early = connect();
      nonsense(early, kind);
      expect_end(early);
    }
    const FdSocket later = connect();
    ASSERT_TRUE(send_control(later, configure_message(), soon()));
    const auto answer = receive_control(later, soon());
    ASSERT_TRUE(answer);
    EXPECT_EQ(std::get<ConfiguredMessage>(answer->body).status, ErrorStatus::kNone);
    nonsense(later, kind);
    expect_end(later);
  }
  auto next = execution;
  next.deadline = soon();
  EXPECT_TRUE(client().execute(next));
}

TEST_P(Q04_Host, GivenMemoryThatBreaksTheRules_WhenShown_ThenItIsInvalidAndTheBurstGoesOn) {
  // A client of its own, who shows what it likes.
  auto writer = Requests::create_writer({kBurstChannelLength, true});
  auto reader = Results::create_reader({kBurstChannelLength, true});
  ASSERT_TRUE(writer && reader);
  const FdSocket socket = connect();
  ASSERT_TRUE(send_control(socket,
                           {.id = 1,
                            .body = ConfigureMessage{.model = "small",
                                                     .requests = std::move(*writer->describe()),
                                                     .results = std::move(*reader->describe())}},
                           soon()));
  const auto configured = receive_control(socket, soon());
  ASSERT_TRUE(configured);
  ASSERT_TRUE(writer->settle() && reader->settle());
  std::int32_t slot = 0;
  const auto shown = [&](BurstMemory memory) {
    const BurstRequest request{.inputs = {{false, {0, 0, 16}, {4}}, {false, {0, 16, 16}, {}}},
                               .outputs = {{false, {0, 64, 16}, {}}, {false, {0, 128, 8}, {}}},
                               .slots = {slot++},
                               .measure = MeasureTiming::kOff};
    const auto packet = serialise(request);
    EXPECT_TRUE(send_packet<FmqRequestDatum>(*writer, packet));
    auto asked = receive_control(socket, soon());
    EXPECT_TRUE(asked);
    MemoriesMessage memories{.status = ErrorStatus::kNone, .memories = {}};
    memories.memories.push_back(std::move(memory));
    EXPECT_TRUE(send_control(socket, {.id = asked->id, .body = std::move(memories)}, soon()));
    auto result = receive_packet(*reader, soon());
    EXPECT_TRUE(result);
    return parse_result(*result)->status;
  };
  const auto memory = [](UniqueFd file, MemoryAccess access, std::uint64_t size,
                         std::uint64_t offset = 0, MemoryKind kind = MemoryKind::kSharedFile) {
    return BurstMemory{kind, access, offset, size, std::move(file)};
  };
  const auto sealed = [] { return std::move(*create_shared_file(8192)); };
  using enum MemoryAccess;
  constexpr auto kInvalid = ErrorStatus::kInvalidArgument;
  // The rules hold in the good case.
  EXPECT_EQ(shown(memory(sealed(), kReadWrite, 8192)), ErrorStatus::kNone);
  EXPECT_EQ(shown(memory(sealed(), kReadWrite, 4096, 4096)), ErrorStatus::kNone);

  EXPECT_EQ(shown(memory(sealed(), kReadWrite, 8193)), kInvalid) << "larger than its file";
  EXPECT_EQ(shown(memory(sealed(), kReadWrite, ~std::uint64_t{0})), kInvalid);
  EXPECT_EQ(shown(memory(sealed(), kReadWrite, 4096, ~std::uint64_t{4095})), kInvalid);
  EXPECT_EQ(shown(memory(sealed(), kReadWrite, 0)), kInvalid) << "empty";
  EXPECT_EQ(shown(memory(sealed(), kReadWrite, 4096, 100)), kInvalid) << "not at a page";
  EXPECT_EQ(shown(memory(sealed(), kRead, 8192)), kInvalid) << "can still be written";
  EXPECT_EQ(shown(memory(sealed(), MemoryAccess(3), 8192)), kInvalid);
  EXPECT_EQ(shown(memory(sealed(), kReadWrite, 8192, 0, MemoryKind::kDmaBuf)), kInvalid);
  EXPECT_EQ(shown(memory(UniqueFd(::open("/dev/zero", O_RDWR)), kReadWrite, 4096)), kInvalid);
  EXPECT_EQ(shown(memory(UniqueFd(::memfd_create("unsealed", MFD_ALLOW_SEALING)), kReadWrite, 1)),
            kInvalid);
  UniqueFd closed_to_others = sealed();
  ASSERT_TRUE(seal_writers(closed_to_others));
  EXPECT_EQ(shown(memory(UniqueFd(::dup(closed_to_others.get())), kReadWrite, 8192)), kInvalid)
      << "sealed by somebody before";
  EXPECT_EQ(shown(memory(std::move(closed_to_others), kRead, 8192)), kInvalid)
      << "an output in memory for reading";
  EXPECT_EQ(shown(memory(sealed(), kReadWrite, 8192)), ErrorStatus::kNone) << "it goes on";
}

TEST_P(Q05_Host, GivenAClientThatLeaves_WhenAnExecutionRuns_ThenAllOfItsGoes) {
  auto quota = BurstQuota::create({});
  serve({.total_quota = quota});
  std::latch runs(1), goes_on(1);
  session_->before = [&] {
    runs.count_down();
    goes_on.wait();
  };
  const auto execution = this->execution(100);
  BurstClient& client = this->client();
  auto running = std::async(std::launch::async, [&] { return client.execute(execution); });
  runs.wait();
  client.interrupt();
  EXPECT_FALSE(running.get());
  goes_on.count_down();
  client_.reset();
  while (host_->clients() > 0) std::this_thread::yield();
  EXPECT_EQ(quota->slots(), 0u);
  EXPECT_EQ(model_->holds(), 0);
}

TEST_P(Q05_Host, GivenTheServerStops_WhenAnExecutionRuns_ThenItsResultStillArrives) {
  std::latch runs(1), goes_on(1);
  session_->before = [&] {
    runs.count_down();
    goes_on.wait();
  };
  const auto execution = this->execution(100);
  BurstClient& client = this->client();
  auto running = std::async(std::launch::async, [&] { return client.execute(execution); });
  runs.wait();
  auto stopping = std::async(std::launch::async, [&] { host_->stop(); });
  goes_on.count_down();
  stopping.get();
  const auto done = running.get();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->result.status, ErrorStatus::kNone);
  EXPECT_EQ(twice(99), 200);
  const auto next = client.execute(this->execution(4));
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().fault, BurstFault::kGone);
  EXPECT_FALSE(next.error().was_sent);
}

}  // namespace
}  // namespace penstock
