// SPDX-License-Identifier: Apache-2.0
//
// A client whose server is killed notices it, wherever it waits (contract Q05).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "penstock/burst/burst_client.h"
#include "penstock/burst/remote_model.h"
#include "penstock/burst/testing/asleep.h"

namespace penstock {
namespace {

constexpr Nanoseconds kNoticed = std::chrono::milliseconds(10);

/// burst_service, and what it says. Killed and waited for at the latest when this goes.
class Service {
 public:
  Service() {
    std::string name = (std::filesystem::temp_directory_path() / "penstock-burst-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    const std::string path = socket().string();
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    said_ = UniqueFd(pipe[0]);
    const UniqueFd says(pipe[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(says.get(), STDOUT_FILENO);
      const std::array<const char*, 3> arguments = {PENSTOCK_BURST_SERVICE, path.c_str(), nullptr};
      ::execv(PENSTOCK_BURST_SERVICE, const_cast<char* const*>(arguments.data()));
      ::_exit(127);
    }
    EXPECT_EQ(hear(), 'r');
  }
  ~Service() {
    kill();
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

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
  std::filesystem::path folder_;
  UniqueFd said_;
  pid_t pid_ = -1;
};

/// The client sleeps at the result queue, or has a window in which it polls first.
enum class Waits { kAsleep, kPolling };

std::string name_of(const ::testing::TestParamInfo<Waits>& info) {
  return info.param == Waits::kAsleep ? "asleep" : "polling";
}

class Q05_Client : public ::testing::TestWithParam<Waits> {
 protected:
  static Nanoseconds time_to_notice() {
    const Service service;
    const auto model = RemoteModel::connect(service.socket(), "stuck");
    if (!model) {
      ADD_FAILURE() << model.error().message();
      return {};
    }
    const bool polls = GetParam() == Waits::kPolling;
    auto client =
        BurstClient::create(*model, {.poll_window = polls ? kMaxPollWindow : Nanoseconds(0)});
    auto in = SharedFile::create(16, MapAccess::kRead);
    auto out = SharedFile::create(16, MapAccess::kReadWrite);
    if (!client || !in || !out) {
      ADD_FAILURE() << "no client";
      return {};
    }
    const BurstClient::Execution execution{
        .inputs = {{.memory = *in, .length = 16}},
        .outputs = {{.memory = *out, .length = 16}},
        .deadline = Deadline::after(Clock::system(), std::chrono::seconds(20))};
    testing::Sleeper executing([&] {
      auto done = (*client)->execute(execution);
      return std::pair(std::move(done), Clock::system().now());
    });
    EXPECT_EQ(service.hear(), 'x');
    if (!polls) executing.await_asleep();
    const TimePoint killed = Clock::system().now();
    service.kill();
    const auto [done, noticed] = executing.join();
    EXPECT_FALSE(done);
    if (done) return {};
    EXPECT_EQ(done.error().fault, BurstFault::kGone) << done.error().message;
    EXPECT_TRUE(done.error().was_sent);
    EXPECT_FALSE((*client)->is_alive());
    // The next one is not sent, and does not wait.
    const auto next = (*client)->execute(execution);
    EXPECT_TRUE(!next && next.error().fault == BurstFault::kGone && !next.error().was_sent);
    return noticed - killed;
  }
};

INSTANTIATE_TEST_SUITE_P(Burst, Q05_Client, ::testing::Values(Waits::kAsleep, Waits::kPolling),
                         name_of);

TEST_P(Q05_Client, GivenAnExecution_WhenTheServerIsKilled_ThenItEndsWithinTenMilliseconds) {
  std::vector<Nanoseconds> times;
  while (times.size() < 5 && !HasFailure()) times.push_back(time_to_notice());
  ASSERT_FALSE(HasFailure());
  std::ranges::sort(times);
  EXPECT_LT(times[2], kNoticed);
}

}  // namespace
}  // namespace penstock
