// SPDX-License-Identifier: Apache-2.0
#include "apps/penstock/stop_signals.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <system_error>

namespace penstock {
namespace {

std::atomic<int> g_received{0};
std::atomic<int> g_fd{-1};
std::atomic<std::int64_t> g_first{0};  // When the first came, in nanoseconds.
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "used in a signal handler");

/// What is sent to a process and to its group comes twice in a moment, and is one signal.
constexpr std::int64_t kOneSignal = 300'000'000;
/// Longer than a run takes to give up what is not analysed and to close its outputs. A library that
/// waits for a peer for ever must not keep the process.
constexpr unsigned kLongestEnd = 45;

std::int64_t monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

void on_signal(int number) {
  const int saved = errno;
  const std::int64_t now = monotonic_now();
  std::int64_t first = 0;
  if (g_first.compare_exchange_strong(first, now)) first = now;
  int none = 0;
  if (!g_received.compare_exchange_strong(none, number)) {
    if (now - first >= kOneSignal) ::_exit(128 + number);
    errno = saved;
    return;
  }
  ::alarm(kLongestEnd);
  const std::uint64_t one = 1;
  if (::write(g_fd, &one, sizeof one) != sizeof one) ::_exit(128 + number);
  errno = saved;
}

void on_alarm(int) { ::_exit(128 + g_received); }

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
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, nullptr);
  action.sa_handler = on_signal;
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
