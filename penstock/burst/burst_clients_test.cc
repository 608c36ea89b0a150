// SPDX-License-Identifier: Apache-2.0
//
// A host and clients that are other processes: killed, hostile and forgetful ones (contract X03,
// Q04, Q05).
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <thread>

#include "penstock/base/log.h"
#include "penstock/burst/testing/burst_fixture.h"
#include "penstock/burst/testing/client_process.h"
#include "penstock/burst/testing/freeing.h"

namespace penstock {
namespace {

using testing::ClientProcess;
using testing::Way;

/// What a process has of others.
struct Held {
  std::ptrdiff_t files = 0, mappings = 0;
  bool operator==(const Held&) const = default;

  static Held now() {
    Held held;
    const std::filesystem::directory_iterator files("/proc/self/fd");
    held.files = std::distance(begin(files), end(files));
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find("memfd:") != std::string::npos) ++held.mappings;
    }
    return held;
  }
};
std::ostream& operator<<(std::ostream& out, const Held& held) {
  return out << held.files << " files, " << held.mappings << " mappings";
}

class BurstProcesses : public testing::BurstTest {
 protected:
  void SetUp() override {
    set_log_level("off");  // Every broken rule is told.
    serve({.total_quota = quota_});
  }
  void TearDown() override {
    BurstTest::TearDown();
    set_log_level("warn");
  }
  std::shared_ptr<BurstQuota> quota_ = BurstQuota::create({});
};
using X03_Process = BurstProcesses;
using Q04_Process = BurstProcesses;
using Q05_Process = BurstProcesses;
INSTANTIATE_TEST_SUITE_P(Burst, X03_Process, ::testing::Values(Way::kSocket), testing::name_of);
INSTANTIATE_TEST_SUITE_P(Burst, Q04_Process, ::testing::Values(Way::kSocket), testing::name_of);
INSTANTIATE_TEST_SUITE_P(Burst, Q05_Process, ::testing::Values(Way::kSocket), testing::name_of);

TEST_P(Q05_Process, GivenAClientThatIsKilled_WhenItExecutes_ThenTheServerHoldsNothingOfIt) {
  const Held before = Held::now();
  for (int round = 0; round < 5; ++round) {
    const auto served = metrics_->by_status.at(0).load();
    ClientProcess peer(PENSTOCK_BURST_PEER, socket(), "execute");
    while (metrics_->by_status.at(0) < served + 20 && !peer.has_ended()) std::this_thread::yield();
    ASSERT_FALSE(peer.has_ended());
    EXPECT_EQ(host_->clients(), 1u);
    EXPECT_EQ(quota_->slots(), 3u);
    EXPECT_EQ(Held::now().mappings, before.mappings + 5) << "two queues and three memories";
    peer.kill();
    peer.wait();
    while (host_->clients() > 0) std::this_thread::yield();
  }
  EXPECT_EQ(Held::now(), before);
  EXPECT_EQ(quota_->slots(), 0u);
  EXPECT_EQ(quota_->bytes(), 0u);
  EXPECT_EQ(model_->holds(), 0);
}

TEST_P(X03_Process, GivenClientsThatFreeInAnyOrder_WhenTheyHaveFreedAll_ThenNothingOfItIsMapped) {
  const Held before = Held::now();
  {
    ClientProcess first(PENSTOCK_BURST_PEER, socket(), "free", 1);
    ClientProcess second(PENSTOCK_BURST_PEER, socket(), "free", 2);
    const auto goes_on = [&] {
      std::this_thread::yield();
      return !first.has_ended() && !second.has_ended();
    };
    // Executions, each with the right outputs, or a peer ends.
    while (metrics_->by_status.at(0) < std::uint64_t{2} * testing::kFreeingExecutions &&
           goes_on()) {
    }
    const Deadline deadline = testing::soon();
    while (quota_->slots() > 0 && !deadline.passed(Clock::system()) && goes_on()) {
    }
    EXPECT_FALSE(first.has_ended()) << first.status();
    EXPECT_FALSE(second.has_ended()) << second.status();
    EXPECT_EQ(quota_->slots(), 0u);
    EXPECT_EQ(quota_->bytes(), 0u);
    EXPECT_EQ(host_->clients(), 2u);
    EXPECT_EQ(Held::now().mappings, before.mappings + 4) << "two queues a client";
  }
  while (host_->clients() > 0) std::this_thread::yield();
  EXPECT_EQ(Held::now(), before);
}

TEST_P(Q04_Process, GivenClientsThatScribble_WhenOthersAreServed_ThenTheseSeeNothingOfIt) {
  const Held before = Held::now();
  {
    ClientProcess first(PENSTOCK_BURST_PEER, socket(), "scribble", 1);
    ClientProcess second(PENSTOCK_BURST_PEER, socket(), "scribble", 2);
    const auto execution = this->execution(100);
    bool ends = false;
    int rounds = 0;
    while (!ends) {
      ends = first.has_ended() && second.has_ended();
      std::memset(out_->bytes().data(), 0, 464);
      const auto done = client().execute(execution);
      ASSERT_TRUE(done) << done.error().message;
      ASSERT_EQ(done->result.status, ErrorStatus::kNone);
      ASSERT_EQ(twice(99), 200);
      ASSERT_EQ(sum(), 42);
      ++rounds;
    }
    EXPECT_EQ(first.status(), 0);
    EXPECT_EQ(second.status(), 0);
    EXPECT_GT(rounds, 10);
  }
  EXPECT_GT(metrics_->malformed, 0u) << "it was tried";
  EXPECT_GT(metrics_->by_status.at(4), 0u);
  client_.reset();
  remote_.reset();
  values_.reset();
  places_.reset();
  out_.reset();
  while (host_->clients() > 0) std::this_thread::yield();
  EXPECT_EQ(Held::now(), before);
  EXPECT_EQ(quota_->slots(), 0u);
  EXPECT_EQ(quota_->bytes(), 0u);
  EXPECT_EQ(model_->holds(), 0);
}

}  // namespace
}  // namespace penstock
