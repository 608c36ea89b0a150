// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/onnxruntime/output_pool.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "penstock/memory/cpu/cpu_device.h"

namespace penstock {
namespace {

TEST(OutputPool, GivenReleasedStorage_WhenAskedForThatSize_ThenItComesBack) {
  const auto pool = OutputPool::create(make_cpu_device({}), 1000);
  StoragePtr first = pool->acquire(100).value();
  const Storage* address = first.get();
  EXPECT_EQ(pool->held_bytes(), 100u);
  first.reset();
  EXPECT_EQ(pool->held_bytes(), 0u);
  EXPECT_EQ(pool->pooled_bytes(), 100u);
  EXPECT_NE(pool->acquire(50).value().get(), address);
  EXPECT_EQ(pool->acquire(100).value().get(), address);
}

TEST(OutputPool, GivenItsOwnerIsGone_WhenAResultIsReleased_ThenNothingIsKept) {
  const auto device = make_cpu_device({});
  auto pool = OutputPool::create(device, 1000);
  StoragePtr held = pool->acquire(100).value();
  {
    const StoragePtr pooled = pool->acquire(200).value();
  }
  pool->retire();
  EXPECT_EQ(pool->pooled_bytes(), 0u);
  held.reset();
  EXPECT_EQ(pool->pooled_bytes(), 0u);
  EXPECT_EQ(pool->held_bytes(), 0u);
}

TEST(OutputPool, GivenARequestOverTheBudget_WhenAcquired_ThenItIsExhaustedAndNothingLeaks) {
  const auto pool = OutputPool::create(make_cpu_device({}), 1000);
  EXPECT_EQ(pool->acquire(1001).error().kind(), ErrorKind::kExhausted);
  EXPECT_EQ(pool->acquire(SIZE_MAX).error().kind(), ErrorKind::kExhausted);
  EXPECT_EQ(pool->held_bytes(), 0u);
  EXPECT_TRUE(pool->acquire(1000));
}

TEST(OutputPool, GivenADeviceWithoutMemory_WhenAcquired_ThenTheBudgetIsGivenBack) {
  const auto pool = OutputPool::create(make_cpu_device({.memory_budget = 64}), 1 << 20);
  EXPECT_FALSE(pool->acquire(1 << 19));
  EXPECT_EQ(pool->held_bytes(), 0u);
}

// Every thread writes its mark into what it holds and finds it untouched.
TEST(OutputPool, GivenThreads_WhenTheyAcquireAndRelease_ThenNoStorageHasTwoOwners) {
  const auto pool = OutputPool::create(make_cpu_device({}), 4096);
  std::vector<std::thread> threads;
  std::atomic<int> clashes = 0;
  for (unsigned t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 2000; ++i) {
        const auto storage = pool->acquire(random() % 2 == 0 ? 256 : 512);
        if (!storage) continue;
        const auto bytes = (*storage)->host_bytes();
        std::ranges::fill(bytes, static_cast<std::byte>(t));
        for (const std::byte b : bytes) clashes += b != static_cast<std::byte>(t) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes, 0);
  EXPECT_EQ(pool->held_bytes(), 0u);
  EXPECT_LE(pool->pooled_bytes(), 4096u);
}

}  // namespace
}  // namespace penstock
