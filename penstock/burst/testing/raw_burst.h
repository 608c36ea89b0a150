// SPDX-License-Identifier: Apache-2.0
//
// Bursts as who speaks to a service by hand sees them: their raw queues, and a host's socket. Tests
// only.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "penstock/burst/burst_server.h"
#include "penstock/burst/control_messages.h"
#include "penstock/burst/datum.h"
#include "penstock/burst/fd_socket.h"
#include "penstock/burst/lifeline.h"
#include "penstock/burst/message_queue.h"
#include "penstock/burst/testing/burst_fixture.h"
#include "penstock/burst/unix_address.h"

namespace penstock::testing {

using Requests = MessageQueue<FmqRequestDatum, QueueFlavor::kSynchronised>;
using Results = MessageQueue<FmqResultDatum, QueueFlavor::kSynchronised>;

/// The client's ends of a burst in this process.
class RawQueues : public ::testing::Test {
 protected:
  void SetUp() override {
    auto writer = Requests::create_writer({kBurstChannelLength, true}, {.lifeline = lifeline_});
    auto reader = Results::create_reader({kBurstChannelLength, true}, {.lifeline = lifeline_});
    ASSERT_TRUE(writer && reader);
    requests_.emplace(std::move(*writer));
    results_.emplace(std::move(*reader));
  }
  BurstConfiguration configuration_with(std::shared_ptr<BurstCallback> callback,
                                        std::shared_ptr<Lifeline> service_lifeline = nullptr) {
    return {.callback = std::move(callback),
            .requests = std::move(*requests_->describe()),
            .results = std::move(*results_->describe()),
            .client_lifeline = lifeline_,
            .service_lifeline = std::move(service_lifeline)};
  }
  /// Takes the burst and settles the queues.
  void keep(ConfiguredBurst configured) {
    ASSERT_EQ(configured.status, ErrorStatus::kNone) << configured.message;
    context_ = std::move(configured.context);
    ASSERT_TRUE(requests_->settle() && results_->settle());
  }

  std::shared_ptr<Lifeline> lifeline_ = std::make_shared<Lifeline>();
  std::optional<Requests::Writer> requests_;
  std::optional<Results::Reader> results_;
  std::unique_ptr<BurstContext> context_;
};

/// Speaks a host's messages by hand.
class RawHost : public BurstTest {
 protected:
  FdSocket connect() {
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const auto address = UnixAddress::of(this->socket());
    EXPECT_EQ(::connect(socket.get(), address->get(), address->size()), 0);
    return FdSocket(std::move(socket));
  }
  /// Of queues that go at once.
  static ControlMessage configure_message() {
    auto requests = Requests::create_writer({kBurstChannelLength, true});
    auto results = Results::create_reader({kBurstChannelLength, true});
    return configure_message(*requests, *results);
  }
  /// A burst whose queues are `requests_` and `results_`.
  void configure(const FdSocket& socket) {
    auto requests = Requests::create_writer({kBurstChannelLength, true});
    auto results = Results::create_reader({kBurstChannelLength, true});
    ASSERT_TRUE(requests && results);
    ASSERT_TRUE(send_control(socket, configure_message(*requests, *results), soon()));
    const auto answer = receive_control(socket, soon());
    ASSERT_TRUE(answer) << answer.error().message();
    ASSERT_EQ(std::get<ConfiguredMessage>(answer->body).status, ErrorStatus::kNone);
    ASSERT_TRUE(requests->settle() && results->settle());
    requests_.emplace(std::move(*requests));
    results_.emplace(std::move(*results));
  }

  std::optional<Requests::Writer> requests_;
  std::optional<Results::Reader> results_;

 private:
  static ControlMessage configure_message(Requests::Writer& requests, Results::Reader& results) {
    return {.id = 1,
            .body = ConfigureMessage{.model = "small",
                                     .requests = std::move(*requests.describe()),
                                     .results = std::move(*results.describe())}};
  }
};

}  // namespace penstock::testing
