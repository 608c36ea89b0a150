// SPDX-License-Identifier: Apache-2.0
//
// A client whose server is killed notices it, wherever it waits (contract Q05).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "penstock/burst/burst_client.h"
#include "penstock/burst/remote_model.h"
#include "penstock/burst/testing/asleep.h"
#include "penstock/burst/testing/service_process.h"

namespace penstock {
namespace {

constexpr Nanoseconds kNoticed = std::chrono::milliseconds(10);

/// The client sleeps at the result queue, or has a window in which it polls first.
enum class Waits { kAsleep, kPolling };

std::string name_of(const ::testing::TestParamInfo<Waits>& info) {
  return info.param == Waits::kAsleep ? "asleep" : "polling";
}

class Q05_Client : public ::testing::TestWithParam<Waits> {
 protected:
  static Nanoseconds time_to_notice() {
    const auto service = testing::ServiceProcess::start(PENSTOCK_BURST_SERVICE);
    if (!service) {
      ADD_FAILURE() << service.error().message();
      return {};
    }
    const auto model = RemoteModel::connect((*service)->socket(), "stuck");
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
    EXPECT_EQ((*service)->hear(), 'x');
    if (!polls) executing.await_asleep();
    const TimePoint killed = Clock::system().now();
    (*service)->kill();
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
