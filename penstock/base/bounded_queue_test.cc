// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/bounded_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace penstock {
namespace {

using std::chrono::seconds;

TEST(BoundedQueue, GivenItems_WhenPopped_ThenTheyComeInOrder) {
  BoundedQueue<int> queue(3);
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(queue.try_push(int{i}), PushResult::kPushed);
  EXPECT_EQ(queue.size(), 3u);
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(queue.pop(), i);
}

TEST(BoundedQueue, GivenAFullQueue_WhenTryPushing_ThenItIsRefusedAndTheItemKept) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  ASSERT_EQ(queue.try_push(std::make_unique<int>(1)), PushResult::kPushed);
  auto second = std::make_unique<int>(2);
  EXPECT_EQ(queue.try_push(std::move(second)), PushResult::kFull);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(*second, 2);
  EXPECT_EQ(queue.size(), 1u);
}

TEST(BoundedQueue, GivenAFullQueue_WhenTheDeadlinePasses_ThenPushGivesUp) {
  ManualClock clock;
  BoundedQueue<int> queue(1, clock);
  ASSERT_EQ(queue.try_push(1), PushResult::kPushed);
  PushResult result = PushResult::kPushed;
  std::thread producer([&] { result = queue.push(2, Deadline::after(clock, seconds(5))); });
  clock.await_waiters(1);
  clock.advance(seconds(5));
  producer.join();
  EXPECT_EQ(result, PushResult::kFull);
  EXPECT_EQ(queue.pop(), 1);
}

TEST(BoundedQueue, GivenABlockedProducer_WhenAnItemIsPopped_ThenItPushes) {
  ManualClock clock;
  BoundedQueue<int> queue(1, clock);
  ASSERT_EQ(queue.try_push(1), PushResult::kPushed);
  std::thread producer([&] { EXPECT_EQ(queue.push(2), PushResult::kPushed); });
  clock.await_waiters(1);
  EXPECT_EQ(queue.pop(), 1);
  producer.join();
  EXPECT_EQ(queue.pop(), 2);
}

TEST(BoundedQueue, GivenAnEmptyQueue_WhenTheDeadlinePasses_ThenPopGivesNothing) {
  ManualClock clock;
  BoundedQueue<int> queue(1, clock);
  std::optional<int> item = 7;
  std::thread consumer([&] { item = queue.pop(Deadline::after(clock, seconds(1))); });
  clock.await_waiters(1);
  clock.advance(seconds(1));
  consumer.join();
  EXPECT_EQ(item, std::nullopt);
}

TEST(BoundedQueue, GivenBlockedEnds_WhenClosed_ThenProducersFailAndConsumersDrain) {
  ManualClock clock;
  BoundedQueue<int> queue(1, clock);
  ASSERT_EQ(queue.try_push(1), PushResult::kPushed);
  std::thread producer([&] { EXPECT_EQ(queue.push(2), PushResult::kClosed); });
  clock.await_waiters(1);
  queue.close();
  producer.join();
  EXPECT_EQ(queue.try_push(3), PushResult::kClosed);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(BoundedQueue, GivenABlockedConsumer_WhenClosed_ThenItGetsNothing) {
  ManualClock clock;
  BoundedQueue<int> queue(1, clock);
  std::thread consumer([&] { EXPECT_EQ(queue.pop(), std::nullopt); });
  clock.await_waiters(1);
  queue.close();
  consumer.join();
}

TEST(BoundedQueue, GivenManyProducersAndConsumers_WhenDone_ThenEveryItemArrivedOnce) {
  constexpr int kThreads = 4;
  constexpr int kItems = 2000;
  BoundedQueue<int> queue(8);
  std::vector<std::vector<int>> got(kThreads);
  std::vector<std::thread> consumers;
  for (auto& mine : got) {
    consumers.emplace_back([&queue, &mine] {
      while (auto item = queue.pop()) mine.push_back(*item);
    });
  }
  std::vector<std::thread> producers;
  for (int p = 0; p < kThreads; ++p) {
    producers.emplace_back([&queue, p] {
      for (int i = 0; i < kItems; ++i) {
        EXPECT_EQ(queue.push(p * kItems + i), PushResult::kPushed);
        EXPECT_LE(queue.size(), queue.capacity());
      }
    });
  }
  for (auto& thread : producers) thread.join();
  queue.close();
  for (auto& thread : consumers) thread.join();
  std::vector<int> times(kThreads * kItems, 0);
  for (const auto& mine : got) {
    for (const int item : mine) ++times.at(item);
  }
  EXPECT_EQ(times, std::vector<int>(kThreads * kItems, 1));
}

}  // namespace
}  // namespace penstock
