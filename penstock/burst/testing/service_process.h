// SPDX-License-Identifier: Apache-2.0
//
// burst_service in a process of its own, which is there to be killed, and what it says.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"

namespace penstock::testing {

/// Killed and waited for at the latest when this goes.
class ServiceProcess {
 public:
  /// Returns when `program` listens.
  static Result<std::unique_ptr<ServiceProcess>> start(const char* program) {
    std::string folder =
        (std::filesystem::temp_directory_path() / "penstock-burst-XXXXXX").string();
    std::array<int, 2> pipe{};
    if (::mkdtemp(folder.data()) == nullptr || ::pipe2(pipe.data(), O_CLOEXEC) != 0) {
      return fail(ErrorKind::kIo, "no folder or no pipe for a service");
    }
    UniqueFd said(pipe[0]);
    const UniqueFd says(pipe[1]);
    const std::string path = folder + "/burst";
    const pid_t pid = ::fork();
    if (pid < 0) return fail(ErrorKind::kExhausted, "no process");
    if (pid == 0) {
      ::dup2(says.get(), STDOUT_FILENO);
      const std::array<const char*, 3> arguments = {program, path.c_str(), nullptr};
      ::execv(program, const_cast<char* const*>(arguments.data()));
      ::_exit(127);
    }
    std::unique_ptr<ServiceProcess> service(
        new ServiceProcess(std::move(folder), std::move(said), pid));
    if (service->hear() != 'r') return fail(ErrorKind::kDevice, "the service does not come up");
    return service;
  }
  ~ServiceProcess() {
    kill();
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  ServiceProcess(const ServiceProcess&) = delete;
  ServiceProcess& operator=(const ServiceProcess&) = delete;

  std::filesystem::path socket() const { return folder_ / "burst"; }
  void kill() const { ::kill(pid_, SIGKILL); }
  /// The next character that it says; 0: none in 20 s.
  char hear() const {
    pollfd polled{.fd = said_.get(), .events = POLLIN, .revents = 0};
    char what = 0;
    if (::poll(&polled, 1, 20000) != 1 || ::read(said_.get(), &what, 1) != 1) return 0;
    return what;
  }

 private:
  ServiceProcess(std::filesystem::path folder, UniqueFd said, pid_t pid)
      : folder_(std::move(folder)), said_(std::move(said)), pid_(pid) {}

  const std::filesystem::path folder_;
  const UniqueFd said_;
  const pid_t pid_;
};

}  // namespace penstock::testing
