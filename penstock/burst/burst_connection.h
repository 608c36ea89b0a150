// SPDX-License-Identifier: Apache-2.0
//
// The server's side of one connection: its messages, from the first to the last, in one thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "penstock/base/clock.h"
#include "penstock/burst/burst_model.h"
#include "penstock/burst/control_messages.h"
#include "penstock/burst/fd_socket.h"
#include "penstock/burst/lifeline.h"
#include "penstock/burst/peer_watch.h"

namespace penstock {

class BurstConnection {
 public:
  struct Host {
    std::function<std::shared_ptr<BurstModel>(const std::string&)> find;
    PeerWatch* watch = nullptr;
    Nanoseconds configure_limit{};
    bool may_have_a_burst = true;  ///< Else it is told that there are too many.
  };
  BurstConnection(FdSocket socket, Host host);
  ~BurstConnection();
  BurstConnection(const BurstConnection&) = delete;
  BurstConnection& operator=(const BurstConnection&) = delete;

  /// Until the client goes, breaks the protocol, or close().
  void run();
  bool is_configured() const { return is_configured_; }
  /// From any thread: says why, unless the client is slow to take it, and ends run() once the
  /// execution in flight is over. Does not wait.
  void close(const std::string& reason);

 private:
  class Callback;

  /// False: the connection is over.
  bool configure(ConfigureMessage message, std::uint32_t id);
  bool describe(const DescribeMessage& message, std::uint32_t id);
  bool refuse(std::uint32_t id, ErrorStatus status, std::string why);
  bool handle(ControlMessage message);
  bool execute(ExecuteMessage message, std::uint32_t id);
  bool send(const ControlMessage& message);

  const std::shared_ptr<const FdSocket> socket_;
  const Host host_;
  const std::shared_ptr<Lifeline> lifeline_ = std::make_shared<Lifeline>();
  /// What the model has of the client: cut when the burst answers no more, which ends run().
  const std::shared_ptr<Lifeline> client_lifeline_;
  const std::shared_ptr<Callback> callback_;
  std::mutex send_mutex_;
  PeerWatch::Watched watched_;
  std::shared_ptr<BurstModel> model_;  // Outlives context_.
  std::unique_ptr<BurstContext> context_;
  std::atomic<bool> is_configured_{false};
  std::atomic<bool> executes_{false};
  std::thread direct_;  // The direct path: this thread has memories to hand over meanwhile.
};

}  // namespace penstock
