// SPDX-License-Identifier: Apache-2.0
//
// Ours in bench burst: a server of bursts in a process of its own, and executions on it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/burst_peers.h"
#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/burst/burst_client.h"

namespace penstock::bench {

/// This program again, with `--serve`: serves the model "small", whose execution looks at the first
/// and last byte of its input and writes one byte, and a prepared one if `manifest` is given.
class BurstServerProcess {
 public:
  static Result<std::unique_ptr<BurstServerProcess>> start(
      const std::filesystem::path& manifest = {}, const std::string& library = {});
  ~BurstServerProcess();
  BurstServerProcess(const BurstServerProcess&) = delete;
  BurstServerProcess& operator=(const BurstServerProcess&) = delete;

  const std::filesystem::path& socket() const { return socket_; }
  pid_t pid() const { return pid_; }
  /// CPU time of all of its threads so far.
  Nanoseconds cpu() const;
  /// SIGKILL, without waiting.
  void kill() const;

 private:
  BurstServerProcess(std::filesystem::path folder, pid_t pid);
  const std::filesystem::path folder_;
  const std::filesystem::path socket_;
  const pid_t pid_;
};

/// What the program does when it finds `--serve` on its command line.
int serve_from_arguments(int argc, char** argv);

/// Executions with an input of `bytes`; small ones are 2 KB.
Result<AskerPtr> make_burst(const std::filesystem::path& socket, std::size_t bytes,
                            Nanoseconds poll_window);

}  // namespace penstock::bench
