// SPDX-License-Identifier: Apache-2.0
//
// burst_peer in a process of its own, which is there to be killed.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <string>

namespace penstock::testing {

/// Killed and waited for at the latest when this goes.
class ClientProcess {
 public:
  ClientProcess(const char* program, const std::filesystem::path& socket, const std::string& what,
                unsigned seed = 0) {
    const std::string number = std::to_string(seed);
    const std::array<const char*, 5> arguments = {program, socket.c_str(), what.c_str(),
                                                  number.c_str(), nullptr};
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::execv(program, const_cast<char* const*>(arguments.data()));
    ::_exit(127);
  }
  ~ClientProcess() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;

  void kill() const { ::kill(pid_, SIGKILL); }
  int wait() {
    ::waitpid(pid_, &status_, 0);
    pid_ = -1;
    return status_;
  }
  bool has_ended() {
    if (pid_ <= 0 || ::waitpid(pid_, &status_, WNOHANG) != pid_) return pid_ <= 0;
    pid_ = -1;
    return true;
  }
  int status() const { return status_; }

 private:
  pid_t pid_ = -1;
  int status_ = 0;
};

}  // namespace penstock::testing
