// SPDX-License-Identifier: Apache-2.0
//
// BurstHost serves models to other processes: it listens at a Unix socket, and each connection is
// one burst (docs/design/burst.md). Clients have this process's user, or are root.
//
//   auto host = BurstHost::listen("/run/user/1000/penstock.burst", {{"nanodet", model}});
//   ...
//   (*host)->stop();   // tells clients, ends bursts after their executions
//
// One thread accepts, one serves a connection's messages, one executes (the burst's own), and
// PeerWatch's notices deaths. Thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"
#include "penstock/burst/burst_metrics.h"
#include "penstock/burst/burst_model.h"
#include "penstock/burst/peer_watch.h"
#include "penstock/burst/socket_file.h"

namespace penstock {

struct BurstHostOptions {
  std::size_t max_clients = 64;
  /// Connected, and not yet configured; more than that are turned away at once.
  std::size_t max_newcomers = 16;
  Nanoseconds configure_limit = std::chrono::seconds(1);
  /// Called by the accepting thread about once in that time: for letting idle models go.
  Nanoseconds tick = std::chrono::seconds(1);
  std::function<void()> on_tick = nullptr;
  /// stop() waits so long for executions in flight, then calls on_overtime, for what can make them
  /// end (SessionModel::interrupt), and waits on.
  Nanoseconds drain_limit = std::chrono::seconds(3);
  std::function<void()> on_overtime = nullptr;
  std::shared_ptr<BurstMetrics> metrics = nullptr;
};

class BurstHost {
 public:
  using Models = std::map<std::string, std::shared_ptr<BurstModel>>;

  /// As SocketFile::listen; kExhausted when there is no thread or descriptor.
  static Result<std::unique_ptr<BurstHost>> listen(const std::filesystem::path& path, Models models,
                                                   BurstHostOptions options = {});
  ~BurstHost();
  BurstHost(const BurstHost&) = delete;
  BurstHost& operator=(const BurstHost&) = delete;

  /// Takes no more clients, says Closing to those that are there, and ends each burst after the
  /// execution that it is at. Once; returns when all have ended.
  void stop();

  std::size_t clients() const;

 private:
  class Connection;

  BurstHost(Models models, BurstHostOptions options, SocketFile listening, UniqueFd wake,
            std::unique_ptr<PeerWatch> watch);
  void run();
  void accept_one();
  void reap(bool all);
  void connection_ended();
  void wake();
  std::shared_ptr<BurstModel> find(const std::string& name) const;

  const Models models_;
  const BurstHostOptions options_;
  SocketFile listening_;
  const UniqueFd wake_;
  const std::unique_ptr<PeerWatch> watch_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::list<std::unique_ptr<Connection>> connections_;
  std::size_t leaving_ = 0;  // Out of the list, and not yet joined.
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace penstock
