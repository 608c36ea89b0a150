// SPDX-License-Identifier: Apache-2.0
//
// A gate before a server in the test's process: connections go through it, until it is told to let
// nothing through, to break them or to refuse new ones. As a network does.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "penstock/base/unique_fd.h"

namespace penstock::e2e {

class TcpGate {
 public:
  /// To `port` of this machine. With `open` false nobody listens yet.
  explicit TcpGate(int port, bool open = true);
  ~TcpGate();
  TcpGate(const TcpGate&) = delete;
  TcpGate& operator=(const TcpGate&) = delete;

  /// Where clients come in; the same for its whole life.
  int port() const { return port_; }
  void open();
  /// Connections stay and nothing goes through them any more; new ones go through.
  void stall();
  /// Connections end with a reset.
  void reset();

 private:
  struct Pair {
    UniqueFd client, server;
    bool stalled = false;
  };
  void run();
  void wake();
  void accept();
  static bool forward(int from, int to);

  const int server_port_;
  int port_ = 0;
  UniqueFd listener_;
  UniqueFd wake_;
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  bool listening_ = false;
  std::vector<Pair> pairs_;
  std::thread thread_;
};

}  // namespace penstock::e2e
