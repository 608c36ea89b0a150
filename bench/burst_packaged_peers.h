// SPDX-License-Identifier: Apache-2.0
//
// Contenders of bench burst that come as libraries. Each is asked by this process and answered by
// another one. They are measured in a program of their own, packaged_peer, so that what these
// libraries start in a process is in nobody else's:
//
//   auto grpc = PackagedPeer::start("grpc");
//   auto times = (*grpc)->measure(2000);
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/burst_peers.h"
#include "penstock/base/unique_fd.h"

namespace penstock::bench {

/// Two boost::interprocess::message_queue, which wait at a mutex and conditions in shared memory.
Result<AskerPtr> make_boost_mq();
/// A unary call over a Unix socket: stub and synchronous service.
Result<AskerPtr> make_grpc();
/// A publisher and a subscriber each way, polled; with a RouDi of their own.
Result<AskerPtr> make_iceoryx();

/// The program packaged_peer beside this one, which ends with this object.
class PackagedPeer {
 public:
  /// "boost-mq", "grpc" or "iceoryx". kNotFound without the program, kDevice when it does not get
  /// as far as being asked.
  static Result<std::unique_ptr<PackagedPeer>> start(const std::string& name);
  ~PackagedPeer();
  PackagedPeer(const PackagedPeer&) = delete;
  PackagedPeer& operator=(const PackagedPeer&) = delete;

  /// See time_round_trips(). kDevice when the program has ended.
  Result<std::vector<double>> measure(int count);

 private:
  PackagedPeer(std::string name, pid_t pid, UniqueFd socket);
  std::string name_;
  pid_t pid_;
  UniqueFd socket_;
};

}  // namespace penstock::bench
