// SPDX-License-Identifier: Apache-2.0
//
// A host's rules: who may connect, what is refused, and who is given up (contract X04, Q04, Q05).
#include "penstock/burst/burst_host.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <latch>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/burst/control_messages.h"
#include "penstock/burst/packet_channel.h"
#include "penstock/burst/request_packet.h"
#include "penstock/burst/result_packet.h"
#include "penstock/burst/testing/raw_burst.h"
#include "penstock/burst/unix_address.h"

namespace penstock {
namespace {

using testing::soon;
using testing::Way;

class HostTest : public testing::RawHost {
 protected:
  /// The server's word is its end of the socket.
  static void expect_end(const FdSocket& socket) {
    while (true) {
      const auto came = socket.receive(soon());
      if (came) continue;
      EXPECT_EQ(came.error().kind(), ErrorKind::kNotFound) << came.error().message();
      return;
    }
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
  const FdSocket socket = connect();
  configure(socket);
  std::int32_t slot = 0;
  const auto shown = [&](BurstMemory memory) {
    const BurstRequest request{.inputs = {{false, {0, 0, 16}, {4}}, {false, {0, 16, 16}, {}}},
                               .outputs = {{false, {0, 64, 16}, {}}, {false, {0, 128, 8}, {}}},
                               .slots = {slot++},
                               .measure = MeasureTiming::kOff};
    const auto packet = serialise(request);
    EXPECT_TRUE(send_packet<FmqRequestDatum>(*requests_, packet));
    auto asked = receive_control(socket, soon());
    EXPECT_TRUE(asked);
    MemoriesMessage memories{.status = ErrorStatus::kNone, .memories = {}};
    memories.memories.push_back(std::move(memory));
    EXPECT_TRUE(send_control(socket, {.id = asked->id, .body = std::move(memories)}, soon()));
    auto result = receive_packet(*results_, soon());
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
