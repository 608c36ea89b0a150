// SPDX-License-Identifier: Apache-2.0
//
// Real threads at the executor from all sides, for ThreadSanitizer and for the sums to come out.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "penstock/exec/batch_executor.h"
#include "penstock/exec/test_runner.h"

namespace penstock {
namespace {

using testing::numbered;

constexpr int kSources = 4;

/// Yields now and then, so that batches end out of step.
class YieldingRunner final : public BatchRunner {
  std::vector<Result<InferenceResult>> run(std::span<const InferenceRequest> batch) override {
    if (++runs_ % 3 == 0) std::this_thread::yield();
    return std::vector<Result<InferenceResult>>(batch.size());
  }
  int runs_ = 0;
};

std::unique_ptr<SharedBatchExecutor> make_executor(int workers, int batch_size) {
  auto made = SharedBatchExecutor::create({.workers = workers,
                                           .queue_depth = 8,
                                           .source_share = 3,
                                           .batch_size = batch_size,
                                           .max_wait = std::chrono::microseconds(20)},
                                          [](int) -> Result<std::unique_ptr<BatchRunner>> {
                                            return std::make_unique<YieldingRunner>();
                                          });
  return std::move(made.value());
}

struct Tally {
  std::atomic<std::uint64_t> accepted{0}, refused{0}, done{0}, cancelled{0}, frames{0};

  FramePtr frame() {
    ++frames;
    return {new VideoFrame(), [this](const VideoFrame* frame) {
              delete frame;
              --frames;
            }};
  }
  void settle(SharedBatchExecutor::Future future) {
    const auto result = future.get();
    if (result) {
      ++done;
    } else {
      EXPECT_EQ(result.error().kind(), ErrorKind::kCancelled);
      ++cancelled;
    }
  }
};

void submit_and_take(SharedBatchExecutor& executor, Tally& tally, int source,
                     std::atomic<Generation>& generation, int requests) {
  std::mt19937 random(static_cast<unsigned>(source));
  std::vector<SharedBatchExecutor::Future> futures;
  for (int i = 0; i < requests; ++i) {
    const WhenFull when_full = random() % 4 == 0 ? WhenFull::kRefuse : WhenFull::kWait;
    auto future = executor.submit(
        numbered("s" + std::to_string(source), i, generation.load(), tally.frame()), when_full);
    if (future) {
      ++tally.accepted;
      futures.push_back(std::move(*future));
    } else {
      ++tally.refused;
    }
    if (futures.size() == 5) {
      for (auto& taken : futures) tally.settle(std::move(taken));
      futures.clear();
    }
  }
  for (auto& taken : futures) tally.settle(std::move(taken));
}

TEST(ExecutorStress, GivenSubmittersCancellersAndRetirers_WhenAllRace_ThenEveryFutureEndsOnce) {
  for (const int batch_size : {1, 3}) {
    Tally tally;
    auto executor = make_executor(3, batch_size);
    std::array<std::atomic<Generation>, kSources> generations{};
    std::atomic<bool> stop{false};
    std::vector<std::thread> submitters;
    for (int source = 0; source < kSources; ++source) {
      submitters.emplace_back([&, source] {
        submit_and_take(*executor, tally, source, generations[static_cast<std::size_t>(source)],
                        1500);
      });
    }
    std::thread canceller([&] {
      for (unsigned i = 0; !stop; ++i) {
        const std::size_t source = i % kSources;
        executor->cancel({"s" + std::to_string(source)}, generations[source]++);
        std::this_thread::yield();
      }
    });
    std::thread retirer([&] {
      for (unsigned i = 0; !stop; ++i) {
        executor->retire({"s" + std::to_string(i % kSources)});
        static_cast<void>(executor->stats());
        std::this_thread::yield();
      }
    });
    for (std::thread& thread : submitters) thread.join();
    stop = true;
    canceller.join();
    retirer.join();
    for (int source = 0; source < kSources; ++source) {
      executor->retire({"s" + std::to_string(source)});
    }
    const ExecutorStats stats = executor->stats();
    EXPECT_EQ(stats.accepted, tally.accepted);
    EXPECT_EQ(stats.completed, tally.done);
    EXPECT_EQ(stats.cancelled, tally.cancelled);
    EXPECT_EQ(tally.accepted, tally.done + tally.cancelled);
    EXPECT_GT(tally.done, 0u);
    executor.reset();
    EXPECT_EQ(tally.frames, 0u);
  }
}

TEST(ExecutorStress, GivenWorkOfEveryKind_WhenDestroyed_ThenCallersAndTakersAllComeBack) {
  Tally tally;
  for (int round = 0; round < 100; ++round) {
    auto executor = make_executor(2, 1 + round % 2);
    std::vector<std::thread> takers;
    for (int source = 0; source < kSources; ++source) {
      for (int i = 0; i < 3; ++i) {
        auto future = executor->submit(numbered("s" + std::to_string(source), i, 0, tally.frame()),
                                       WhenFull::kRefuse);
        if (!future) continue;
        takers.emplace_back(
            [&tally, taken = std::move(*future)]() mutable { tally.settle(std::move(taken)); });
      }
    }
    std::thread canceller([&] { executor->cancel({"s0"}, 0); });
    canceller.join();
    executor.reset();
    for (std::thread& taker : takers) taker.join();
    EXPECT_EQ(tally.frames, 0u);
  }
  EXPECT_GT(tally.done + tally.cancelled, 0u);
}

TEST(ExecutorStress, GivenCallersThatWaitForRoom_WhenDestroyed_ThenTheyReturn) {
  for (int round = 0; round < 50; ++round) {
    ManualClock clock;
    testing::RunLog log;
    log.hold();
    auto executor = SharedBatchExecutor::create({.queue_depth = 1, .clock = &clock},
                                                testing::logging_runners(log))
                        .value();
    auto running = executor->submit(numbered("a", 0), WhenFull::kWait);
    log.await_begun(1);
    auto waiting = executor->submit(numbered("a", 1), WhenFull::kWait);
    std::vector<std::thread> callers;
    for (int i = 0; i < 3; ++i) {
      callers.emplace_back([&, i] {
        auto future = executor->submit(numbered("b", i), WhenFull::kWait);
        const auto result = future ? future->get() : std::unexpected(future.error());
        if (!result) {
          EXPECT_EQ(result.error().kind(), ErrorKind::kCancelled);
        }
      });
    }
    clock.await_waiters(3);
    // The running one ends before, within or after the destruction.
    std::thread releaser([&] { log.release(); });
    executor.reset();
    for (std::thread& caller : callers) caller.join();
    releaser.join();
    EXPECT_TRUE(running->get().has_value());
    EXPECT_TRUE(testing::is_ready(*waiting));
  }
}

}  // namespace
}  // namespace penstock
