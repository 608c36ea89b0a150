// SPDX-License-Identifier: Apache-2.0
//
// W02: the slots themselves, by a clock that the test moves.
#include "gst/output_slots.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

#include "gst/testing/lifecycle_fixture.h"

namespace penstock::gst {
namespace {

using namespace std::chrono_literals;

class W02_Slots : public ::testing::Test {
 protected:
  OutputSlots::Lease take() {
    return slots_->acquire([this] { ++late_; });
  }
  /// A fifth taker, who waits on a thread of his own.
  std::future<OutputSlots::Lease> take_later() {
    auto taken = std::async(std::launch::async, [this] { return take(); });
    EXPECT_TRUE(eventually(
        [&] { return clock_.waiters() == 1 || taken.wait_for(0s) == std::future_status::ready; }));
    return taken;
  }
  std::vector<OutputSlots::Lease> take_all() {
    std::vector<OutputSlots::Lease> leases;
    for (std::size_t i = 0; i < OutputSlots::kSlots; ++i) leases.push_back(take());
    return leases;
  }

  ManualClock clock_;
  std::atomic<int> late_{0};
  const std::shared_ptr<OutputSlots> slots_ = std::make_shared<OutputSlots>(clock_);
};

TEST_F(W02_Slots, GivenFourHeld_WhenOneIsReleased_ThenTheFifthComes) {
  auto leases = take_all();
  EXPECT_EQ(slots_->held(), 4u);
  auto fifth = take_later();
  leases.pop_back();
  const OutputSlots::Lease taken = fifth.get();
  EXPECT_NE(taken, nullptr);
  EXPECT_EQ(slots_->held(), 4u);
  EXPECT_EQ(late_, 0);
}

TEST_F(W02_Slots, GivenFourHeld_WhenASecondPasses_ThenThatIsSaidOnceAndWaitingGoesOn) {
  auto leases = take_all();
  auto fifth = take_later();
  clock_.advance(999ms);
  clock_.await_waiters(1);
  EXPECT_EQ(late_, 0);
  clock_.advance(1ms);
  EXPECT_TRUE(eventually([&] { return late_ > 0 && clock_.waiters() == 1; }));
  clock_.advance(1h);
  EXPECT_EQ(clock_.waiters(), 1);
  EXPECT_EQ(late_, 1);
  leases.clear();
  EXPECT_NE(fifth.get(), nullptr);
}

TEST_F(W02_Slots, GivenAWaiter_WhenInterrupted_ThenItGetsNothingUntilResumed) {
  auto leases = take_all();
  auto fifth = take_later();
  slots_->interrupt();
  EXPECT_EQ(fifth.get(), nullptr);
  leases.clear();
  EXPECT_EQ(take(), nullptr) << "interrupted until resumed";
  slots_->resume();
  EXPECT_NE(take(), nullptr);
}

TEST_F(W02_Slots, GivenWorkThatDoesNotEnd_WhenInterrupted_ThenNobodyWaitsForIt) {
  FenceSource work;
  auto waited = std::async(std::launch::async, [&] { return slots_->await(work.fence()); });
  clock_.await_waiters(1);
  slots_->interrupt();
  EXPECT_FALSE(waited.get());
  slots_->resume();
  work.signal();
  EXPECT_TRUE(slots_->await(work.fence()));
  EXPECT_TRUE(slots_->await(Fence()));
}

TEST_F(W02_Slots, GivenALease_WhenItsSlotsAreForgotten_ThenItIsStillGivenBack) {
  auto slots = std::make_shared<OutputSlots>(clock_);
  auto lease = slots->acquire([] {});
  const std::weak_ptr<OutputSlots> watched = slots;
  slots.reset();
  EXPECT_FALSE(watched.expired());
  lease.reset();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace penstock::gst
