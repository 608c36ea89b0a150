// SPDX-License-Identifier: Apache-2.0
//
// A client at the socket of a server that ends, or says what it must not, at every step (contract
// Q04, Q05, X04).
#include "penstock/burst/remote_model.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "penstock/burst/burst_client.h"
#include "penstock/burst/control_messages.h"
#include "penstock/burst/datum.h"
#include "penstock/burst/message_queue.h"
#include "penstock/burst/unix_address.h"
#include "penstock/memory/shared_file.h"

namespace penstock {
namespace {

using Requests = MessageQueue<FmqRequestDatum, QueueFlavor::kSynchronised>;
using Results = MessageQueue<FmqResultDatum, QueueFlavor::kSynchronised>;

Deadline soon() { return Deadline::after(Clock::system(), std::chrono::seconds(20)); }

ConfiguredMessage configured() {
  ConfiguredMessage message;
  message.status = ErrorStatus::kNone;
  message.artefact_hash = "0123";
  message.inputs = {{"values", DataType::kFloat32, TensorLayout::kAny, {Dimension::fixed(4)}}};
  message.outputs = message.inputs;
  return message;
}

/// Says something else than a server may.
void say(const FdSocket& socket, std::uint32_t id, int kind) {
  if (kind < 2) {
    const std::vector<std::byte> bytes(kind == 0 ? 1 : 4000, std::byte{0x5a});
    EXPECT_TRUE(socket.send(bytes, {}, soon()));
    return;
  }
  ControlMessage message{.id = id, .body = MemoriesMessage{}};
  if (kind == 3) message.body = DescribeMessage{};
  if (kind == 4) message.body = FreeMemoryMessage{};
  if (kind == 5) {
    message = {.id = id + 1, .body = configured()};
  }
  EXPECT_TRUE(send_control(socket, message, soon()));
}
constexpr int kKinds = 6;

/// Answers Describe, and Configure as the test says, one connection after another. Keeps a
/// connection's queues until the next one comes.
class OddServer {
 public:
  using Answer = std::function<void(const FdSocket&, std::uint32_t id)>;
  struct Answers {
    Answer describe = [](const FdSocket& socket, std::uint32_t id) {
      EXPECT_TRUE(send_control(socket, {.id = id, .body = configured()}, soon()));
    };
    Answer configure;
    bool attaches = true;
  };

  explicit OddServer(Answers answers) : answers_(std::move(answers)) {
    std::string name = (std::filesystem::temp_directory_path() / "penstock-burst-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    const auto address = UnixAddress::of(path());
    listening_ = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listening_.get(), address->get(), UnixAddress::size()), 0);
    EXPECT_EQ(::listen(listening_.get(), 4), 0);
    thread_ = std::thread([this] { run(); });
  }
  ~OddServer() {
    ::shutdown(listening_.get(), SHUT_RDWR);
    thread_.join();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  OddServer(const OddServer&) = delete;
  OddServer& operator=(const OddServer&) = delete;

  std::filesystem::path path() const { return folder_ / "burst"; }

 private:
  void run() {
    while (true) {
      UniqueFd accepted(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!accepted.is_valid()) return;
      requests_.reset();
      results_.reset();
      const FdSocket socket(std::move(accepted));
      auto message = receive_control(socket, soon());
      if (!message) continue;
      if (std::holds_alternative<DescribeMessage>(message->body)) {
        answers_.describe(socket, message->id);
      } else if (auto* wanted = std::get_if<ConfigureMessage>(&message->body)) {
        if (answers_.attaches) attach(std::move(*wanted));
        if (answers_.configure) answers_.configure(socket, message->id);
      }
    }
  }
  void attach(ConfigureMessage wanted) {
    auto requests = Requests::attach_reader(std::move(wanted.requests));
    auto results = Results::attach_writer(std::move(wanted.results));
    ASSERT_TRUE(requests && results);
    requests_.emplace(std::move(*requests));
    results_.emplace(std::move(*results));
  }

  const Answers answers_;
  std::filesystem::path folder_;
  UniqueFd listening_;
  std::optional<Requests::Reader> requests_;
  std::optional<Results::Writer> results_;
  std::thread thread_;
};

TEST(Q05_Remote, GivenAServerThatClosesInsteadOfDescribing_WhenConnected_ThenItIsAnError) {
  const OddServer server({.describe = [](const FdSocket&, std::uint32_t) {}, .configure = {}});
  const auto model = RemoteModel::connect(server.path(), "small");
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message().find(server.path().string()), std::string::npos);
}

TEST(Q04_Remote, GivenNonsenseInsteadOfADescription_WhenConnected_ThenItIsCorrupt) {
  for (int kind = 0; kind < kKinds; ++kind) {
    const OddServer server(
        {.describe = [kind](const FdSocket& socket, std::uint32_t id) { say(socket, id, kind); },
         .configure = {}});
    const auto model = RemoteModel::connect(server.path(), "small");
    ASSERT_FALSE(model) << kind;
    EXPECT_EQ(model.error().kind(), ErrorKind::kCorrupt) << kind;
  }
}

TEST(Q05_Remote, GivenAServerThatClosesInsteadOfConfiguring_WhenABurstIsMade_ThenItIsAnError) {
  const OddServer server({.configure = [](const FdSocket&, std::uint32_t) {}});
  auto model = RemoteModel::connect(server.path(), "small");
  ASSERT_TRUE(model) << model.error().message();
  const auto client = BurstClient::create(*model);
  ASSERT_FALSE(client);
  EXPECT_NE(client.error().message().find(server.path().string()), std::string::npos);
}

TEST(Q04_Remote, GivenNonsenseInsteadOfConfigured_WhenABurstIsMade_ThenItIsAnError) {
  for (int kind = 0; kind < kKinds; ++kind) {
    const OddServer server(
        {.configure = [kind](const FdSocket& socket, std::uint32_t id) { say(socket, id, kind); }});
    auto model = RemoteModel::connect(server.path(), "small");
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_FALSE(BurstClient::create(*model)) << kind;
  }
}

TEST(Q04_Remote, GivenQueuesThatNobodyAttached_WhenConfigured_ThenThereIsNoBurst) {
  const OddServer server({.configure =
                              [](const FdSocket& socket, std::uint32_t id) {
                                EXPECT_TRUE(
                                    send_control(socket, {.id = id, .body = configured()}, soon()));
                              },
                          .attaches = false});
  auto model = RemoteModel::connect(server.path(), "small");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_FALSE(BurstClient::create(*model));
}

TEST(X04_Remote, GivenAnotherModelUnderTheName_WhenABurstIsMade_ThenItIsRefused) {
  const OddServer server({.configure = [](const FdSocket& socket, std::uint32_t id) {
    auto other = configured();
    other.artefact_hash = "4567";
    EXPECT_TRUE(send_control(socket, {.id = id, .body = std::move(other)}, soon()));
  }});
  auto model = RemoteModel::connect(server.path(), "small");
  ASSERT_TRUE(model) << model.error().message();
  const auto client = BurstClient::create(*model);
  ASSERT_FALSE(client);
  EXPECT_NE(client.error().message().find("another one than before"), std::string::npos);
}

/// -1: the server hangs up.
TEST(Q05_Remote, GivenABurst_WhenTheServerHangsUpOrSaysNonsense_ThenItsExecutionEnds) {
  for (int kind = -1; kind < kKinds; ++kind) {
    const OddServer server({.configure = [kind](const FdSocket& socket, std::uint32_t id) {
      EXPECT_TRUE(send_control(socket, {.id = id, .body = configured()}, soon()));
      if (kind < 0) return;
      say(socket, id, kind);
      // Until the client has hung up.
      while (socket.receive(soon())) {
      }
    }});
    auto model = RemoteModel::connect(server.path(), "small");
    ASSERT_TRUE(model) << model.error().message();
    auto client = BurstClient::create(*model);
    if (!client) continue;  // It was noticed before.
    auto in = SharedFile::create(16, MapAccess::kRead);
    auto out = SharedFile::create(16, MapAccess::kReadWrite);
    ASSERT_TRUE(in && out);
    const auto done = (*client)->execute({.inputs = {{.memory = *in, .length = 16}},
                                          .outputs = {{.memory = *out, .length = 16}},
                                          .deadline = soon()});
    ASSERT_FALSE(done) << kind;
    const BurstFault fault = done.error().fault;
    EXPECT_TRUE(fault == BurstFault::kGone || (kind >= 0 && fault == BurstFault::kCorrupt))
        << kind << ": " << done.error().message;
    EXPECT_FALSE((*client)->is_alive());
  }
}

}  // namespace
}  // namespace penstock
