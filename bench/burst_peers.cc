// SPDX-License-Identifier: Apache-2.0
#include "bench/burst_peers.h"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

#include "penstock/base/unique_fd.h"

namespace penstock::bench {
namespace {

constexpr Nanoseconds kPatience = std::chrono::seconds(1);

struct PingPong {
  std::atomic<std::uint32_t> asked;
  std::atomic<std::uint32_t> answered;
  std::array<std::uint8_t, kQuestionBytes> question;
  std::array<std::uint8_t, kAnswerBytes> answer;
};

void wake(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

/// Sleeps until the word is not `old` any more; false after kPatience.
bool await(std::atomic<std::uint32_t>& word, std::uint32_t old) {
  const timespec limit{.tv_sec = 1, .tv_nsec = 0};
  while (word.load(std::memory_order_acquire) == old) {
    if (::syscall(SYS_futex, &word, FUTEX_WAIT, old, &limit, nullptr, 0) != 0 &&
        errno == ETIMEDOUT) {
      return false;
    }
  }
  return true;
}

class PingPongAsker final : public Asker {
 public:
  PingPongAsker(PingPong* shared, std::unique_ptr<Child> child)
      : shared_(shared), child_(std::move(child)) {}
  ~PingPongAsker() override {
    child_.reset();
    ::munmap(shared_, sizeof *shared_);
  }
  Result<void> ask() override {
    question_[0] = static_cast<std::uint8_t>(++round_);
    std::memcpy(shared_->question.data(), question_.data(), kQuestionBytes);
    shared_->asked.store(round_, std::memory_order_release);
    wake(shared_->asked);
    if (!await(shared_->answered, round_ - 1)) return fail(ErrorKind::kDeadline, "ping-pong");
    std::memcpy(answer_.data(), shared_->answer.data(), kAnswerBytes);
    if (answer_[0] != answer_of(question_[0])) return fail(ErrorKind::kCorrupt, "ping-pong");
    return {};
  }

 private:
  PingPong* shared_;
  std::unique_ptr<Child> child_;
  std::uint32_t round_ = 0;
  std::array<std::uint8_t, kQuestionBytes> question_{};
  std::array<std::uint8_t, kAnswerBytes> answer_{};
};

void answer_ping_pong(PingPong& shared) {
  std::array<std::uint8_t, kQuestionBytes> question{};
  std::array<std::uint8_t, kAnswerBytes> answer{};
  for (std::uint32_t round = 0;; ++round) {
    while (!await(shared.asked, round)) {
    }
    std::memcpy(question.data(), shared.question.data(), kQuestionBytes);
    answer[0] = answer_of(question[0]);
    std::memcpy(shared.answer.data(), answer.data(), kAnswerBytes);
    shared.answered.store(round + 1, std::memory_order_release);
    wake(shared.answered);
  }
}

class UdsAsker final : public Asker {
 public:
  UdsAsker(UniqueFd socket, std::unique_ptr<Child> child)
      : socket_(std::move(socket)), child_(std::move(child)) {}
  Result<void> ask() override {
    question_[0] = static_cast<std::uint8_t>(++round_);
    if (::send(socket_.get(), question_.data(), kQuestionBytes, MSG_NOSIGNAL) !=
            ssize_t(kQuestionBytes) ||
        ::recv(socket_.get(), answer_.data(), kAnswerBytes, 0) != ssize_t(kAnswerBytes)) {
      return fail(ErrorKind::kDeadline, "uds");
    }
    if (answer_[0] != answer_of(question_[0])) return fail(ErrorKind::kCorrupt, "uds");
    return {};
  }

 private:
  UniqueFd socket_;
  std::unique_ptr<Child> child_;
  unsigned round_ = 0;
  std::array<std::uint8_t, kQuestionBytes> question_{};
  std::array<std::uint8_t, kAnswerBytes> answer_{};
};

class SpinAsker final : public Asker {
 public:
  SpinAsker() : thread_([this] { answer(); }) {}
  ~SpinAsker() override {
    ends_ = true;
    thread_.join();
  }
  Result<void> ask() override {
    line_.store(++round_, std::memory_order_release);
    while (line_.load(std::memory_order_acquire) != round_ + 1) {
    }
    ++round_;
    return {};
  }

 private:
  void answer() {
    stay_on_core(1);
    std::uint32_t expected = 1;
    while (!ends_.load(std::memory_order_relaxed)) {
      if (line_.load(std::memory_order_acquire) != expected) continue;
      line_.store(expected + 1, std::memory_order_release);
      expected += 2;
    }
  }

  alignas(128) std::atomic<std::uint32_t> line_{0};
  alignas(128) std::atomic<bool> ends_{false};
  std::uint32_t round_ = 0;
  std::thread thread_;
};

}  // namespace

namespace {

/// Those that this process began with.
const cpu_set_t& own_cores() {
  static const cpu_set_t cores = [] {
    cpu_set_t usable;
    CPU_ZERO(&usable);
    ::sched_getaffinity(::getpid(), sizeof usable, &usable);
    return usable;
  }();
  return cores;
}

}  // namespace

void stay_on_core(int core) {
  const cpu_set_t& usable = own_cores();
  if (CPU_COUNT(&usable) < 2) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable) || core-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

void leave_core() { ::sched_setaffinity(0, sizeof(cpu_set_t), &own_cores()); }

Result<std::unique_ptr<Child>> Child::start(const std::function<void()>& answer, int signal) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail(ErrorKind::kExhausted, "no process");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    stay_on_core(1);
    answer();
    ::_exit(0);
  }
  return std::unique_ptr<Child>(new Child(pid, signal));
}

Child::~Child() {
  ::kill(pid_, signal_);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<AskerPtr> make_ping_pong() {
  void* const memory =
      ::mmap(nullptr, sizeof(PingPong), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail(ErrorKind::kExhausted, "no memory");
  auto* const shared = new (memory) PingPong{};
  auto child = Child::start([shared] { answer_ping_pong(*shared); });
  if (!child) return std::unexpected(child.error());
  return std::make_unique<PingPongAsker>(shared, std::move(*child));
}

Result<AskerPtr> make_uds() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail(ErrorKind::kExhausted, "no sockets");
  }
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const timeval limit{.tv_sec = 1, .tv_usec = 0};
  ::setsockopt(ours.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  auto child = Child::start([socket = theirs.get()] {
    std::array<std::uint8_t, kQuestionBytes> question{};
    std::array<std::uint8_t, kAnswerBytes> answer{};
    while (::recv(socket, question.data(), kQuestionBytes, 0) == ssize_t(kQuestionBytes)) {
      answer[0] = answer_of(question[0]);
      if (::send(socket, answer.data(), kAnswerBytes, MSG_NOSIGNAL) < 0) return;
    }
  });
  if (!child) return std::unexpected(child.error());
  return std::make_unique<UdsAsker>(std::move(ours), std::move(*child));
}

Result<AskerPtr> make_spin_ping_pong() { return std::make_unique<SpinAsker>(); }

Result<std::vector<double>> time_round_trips(Asker& asker, int count) {
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(count));
  // The first ones touch memory and wake cores.
  for (int i = 0; i < count / 10 + 1; ++i) PENSTOCK_TRY(asker.ask());
  for (int i = 0; i < count; ++i) {
    const TimePoint from = Clock::system().now();
    PENSTOCK_TRY(asker.ask());
    times.push_back(double((Clock::system().now() - from).count()));
  }
  return times;
}

}  // namespace penstock::bench
