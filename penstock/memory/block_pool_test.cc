// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/block_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <thread>
#include <vector>

namespace penstock {
namespace {

using testing::HasSubstr;

// Blocks without memory behind them, counted.
class FakeBlocks final : public BlockSource {
 public:
  struct Log {
    std::mutex mutex;
    std::set<std::byte*> alive;
    std::size_t made = 0;
    bool fail_next = false;
  };
  explicit FakeBlocks(Log& log) : log_(log) {}

  Result<Block> make(std::size_t size) override {
    const std::lock_guard lock(log_.mutex);
    EXPECT_EQ(size % granule(), 0u);
    if (std::exchange(log_.fail_next, false)) return fail(ErrorKind::kExhausted, "no more");
    auto* address = reinterpret_cast<std::byte*>(++log_.made << 32);
    log_.alive.insert(address);
    return Block{address, address, size};
  }
  void destroy(const Block& block) override {
    const std::lock_guard lock(log_.mutex);
    EXPECT_EQ(log_.alive.erase(block.address), 1u);
  }
  std::size_t granule() const override { return 64; }
  void open(const Block&, std::size_t) override {}
  void poison(const Block&) override {}

 private:
  Log& log_;
};

class BlockPoolTest : public testing::Test {
 protected:
  void open(std::size_t budget, std::size_t limit) {
    pool_ = std::make_unique<BlockPool>(DeviceId{}, std::make_unique<FakeBlocks>(log_),
                                        DeviceOptions{budget, limit});
  }
  FakeBlocks::Log log_;
  std::unique_ptr<BlockPool> pool_;
};

TEST_F(BlockPoolTest, GivenAFreedBlock_WhenOneOfItsSizeIsTaken_ThenItIsReused) {
  open(1 << 20, 1 << 20);
  const Block first = *pool_->take(1000);
  EXPECT_EQ(first.size, 1024u);
  EXPECT_EQ(pool_->live_bytes(), 1024u);
  pool_->give_back(first);
  EXPECT_EQ(pool_->live_bytes(), 0u);
  EXPECT_EQ(pool_->pooled_bytes(), 1024u);
  EXPECT_EQ(pool_->take(1001)->address, first.address);
  EXPECT_EQ(pool_->pooled_bytes(), 0u);
  EXPECT_EQ(log_.made, 1u);
}

TEST_F(BlockPoolTest, GivenFreeBlocks_WhenTaken_ThenTheBestFitWithinAQuarterServes) {
  open(1 << 20, 1 << 20);
  const Block large = *pool_->take(1280);
  const Block larger = *pool_->take(1344);
  pool_->give_back(larger);
  pool_->give_back(large);
  const Block reused = *pool_->take(1024);
  EXPECT_EQ(reused.address, large.address);
  EXPECT_EQ(reused.size, 1280u);
  const Block fresh = *pool_->take(1024);
  EXPECT_NE(fresh.address, larger.address);
  EXPECT_EQ(fresh.size, 1024u);
}

TEST_F(BlockPoolTest, GivenThePoolLimit_WhenMoreIsFreed_ThenTheLongestUnusedGoesFirst) {
  open(1 << 20, 2048);
  const Block first = *pool_->take(1024);
  const Block second = *pool_->take(1024);
  const Block third = *pool_->take(1024);
  pool_->give_back(first);
  pool_->give_back(second);
  pool_->give_back(third);
  EXPECT_EQ(pool_->pooled_bytes(), 2048u);
  EXPECT_EQ(log_.alive, (std::set{second.address, third.address}));
}

TEST_F(BlockPoolTest, GivenTheBudget_WhenLiveBlocksFillIt_ThenExhaustedNamesTheNumbers) {
  open(2048, 2048);
  const Block first = *pool_->take(1024);
  ASSERT_TRUE(pool_->take(1024));
  const auto refused = pool_->take(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::kExhausted);
  EXPECT_THAT(refused.error().message(), HasSubstr("cpu"));
  EXPECT_THAT(refused.error().message(), HasSubstr("2048"));
  pool_->give_back(first);
  EXPECT_TRUE(pool_->take(1024));
}

TEST_F(BlockPoolTest, GivenPooledBlocksInTheWay_WhenAnotherSizeIsTaken_ThenTheyAreDropped) {
  open(2048, 2048);
  const Block first = *pool_->take(1024);
  const Block second = *pool_->take(1024);
  pool_->give_back(first);
  pool_->give_back(second);
  const auto whole = pool_->take(2048);
  ASSERT_TRUE(whole);
  EXPECT_EQ(log_.alive, std::set{whole->address});
  EXPECT_EQ(pool_->pooled_bytes(), 0u);
}

TEST_F(BlockPoolTest, GivenSizesBeyondTheBudget_WhenTaken_ThenRefusedWithoutOverflow) {
  open(2048, 2048);
  for (const std::size_t bytes : {std::size_t{2049}, std::numeric_limits<std::size_t>::max()}) {
    const auto refused = pool_->take(bytes);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::kExhausted);
  }
  EXPECT_EQ(log_.made, 0u);
  EXPECT_TRUE(pool_->take(0));
}

TEST_F(BlockPoolTest, GivenAFailingSource_WhenTaken_ThenTheBudgetIsGivenBack) {
  open(1024, 0);
  log_.fail_next = true;
  EXPECT_EQ(pool_->take(1024).error().kind(), ErrorKind::kExhausted);
  EXPECT_EQ(pool_->live_bytes(), 0u);
  EXPECT_EQ(pool_->live_blocks(), 0u);
  EXPECT_TRUE(pool_->take(1024));
}

TEST_F(BlockPoolTest, GivenAClosedPool_WhenBlocksComeBack_ThenTheyAreDestroyed) {
  open(1 << 20, 1 << 20);
  const Block pooled = *pool_->take(64);
  const Block live = *pool_->take(64);
  pool_->give_back(pooled);
  pool_->close();
  EXPECT_EQ(log_.alive, std::set{live.address});
  pool_->give_back(live);
  EXPECT_TRUE(log_.alive.empty());
}

TEST_F(BlockPoolTest, GivenSeveralThreads_WhenTakingAndGivingBack_ThenTheBudgetHolds) {
  open(4096, 2048);
  std::vector<std::thread> threads;
  for (std::size_t t = 1; t <= 4; ++t) {
    threads.emplace_back([this, t] {
      for (std::size_t i = 0; i < 500; ++i) {
        // Four threads of at most 1024 live bytes each: the budget is never in the way.
        const auto block = pool_->take(t * 64 + (i % 7) * 64);
        ASSERT_TRUE(block);
        EXPECT_LE(pool_->live_bytes(), 4096u);
        pool_->give_back(*block);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool_->live_blocks(), 0u);
  EXPECT_LE(pool_->pooled_bytes(), 2048u);
  pool_->close();
  EXPECT_TRUE(log_.alive.empty());
}

}  // namespace
}  // namespace penstock
