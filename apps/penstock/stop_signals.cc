// SPDX-License-Identifier: Apache-2.0
#include "apps/penstock/stop_signals.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>

namespace penstock {
namespace {

std::atomic<int> g_received{0};
std::atomic<int> g_fd{-1};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

void on_signal(int number) {
  int none = 0;
  if (!g_received.compare_exchange_strong(none, number)) ::_exit(128 + number);
  const int saved = errno;
  const std::uint64_t one = 1;
  if (::write(g_fd, &one, sizeof one) != sizeof one) ::_exit(128 + number);
  errno = saved;
}

}  // namespace

Result<StopSignals> StopSignals::install() {
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.is_valid()) {
    return fail(ErrorKind::kExhausted,
                "cannot watch for signals: " + std::generic_category().message(errno));
  }
  g_fd = fd.get();
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // The terminal went away; nohup has it ignored, and it stays so.
  struct sigaction hangup{};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
    sigaction(SIGHUP, &action, nullptr);
  }
  // A reader of our JSON that goes away is a write error with a message, not a silent death.
  std::signal(SIGPIPE, SIG_IGN);
  return StopSignals(std::move(fd));
}

int StopSignals::received() { return g_received; }

}  // namespace penstock
