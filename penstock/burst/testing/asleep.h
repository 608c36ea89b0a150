// SPDX-License-Identifier: Apache-2.0
//
// A thread that is to block in a call, and a way to know that it does, without sleeping for luck.
#pragma once

#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock::testing {

/// The kernel says that this thread of ours sleeps.
inline bool is_asleep(pid_t thread) {
  std::ifstream file(str_format("/proc/self/task/{}/stat", thread));
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const auto name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.compare(name_end, 4, ") S ") == 0;
}

/// Runs `call` in a thread; its result is join()'s.
template <typename Call>
class Sleeper {
 public:
  using Value = decltype(std::declval<Call>()());

  explicit Sleeper(Call call)
      : thread_([this, call = std::move(call)] {
          id_ = ::gettid();
          result_ = call();
          has_returned_ = true;
        }) {}
  ~Sleeper() {
    if (thread_.joinable()) thread_.join();
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  /// Returns when the thread sleeps in the kernel, or has returned.
  void await_asleep() const {
    while (!has_returned_ && (id_ == 0 || !is_asleep(id_))) std::this_thread::yield();
  }
  bool has_returned() const { return has_returned_; }
  pthread_t native_handle() { return thread_.native_handle(); }
  Value join() {
    thread_.join();
    return result_.value();
  }

 private:
  std::atomic<pid_t> id_{0};
  std::atomic<bool> has_returned_{false};
  std::optional<Value> result_;
  std::thread thread_;
};

}  // namespace penstock::testing
