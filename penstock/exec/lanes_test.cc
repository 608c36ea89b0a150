// SPDX-License-Identifier: Apache-2.0
//
// Contract B01, B03 and B04 where a stream's requests come on lanes, as regions of one frame do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/exec/batch_executor.h"
#include "penstock/exec/test_runner.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using testing::logging_runners;
using testing::numbered;
using testing::outcome;
using testing::RunLog;
using Batch = RunLog::Batch;

constexpr Nanoseconds kWait{1000};

class Lanes {
 public:
  explicit Lanes(ExecutorOptions options) {
    options.clock = &clock;
    options.on_forgotten = [this](const SourceId& source) {
      forgotten.push_back(source.name + "/" + std::to_string(source.lane));
    };
    auto made = SharedBatchExecutor::create(options, logging_runners(log));
    EXPECT_TRUE(made.has_value());
    executor = std::move(*made);
  }

  ManualClock clock;
  RunLog log;
  std::vector<std::string> forgotten;
  std::unique_ptr<SharedBatchExecutor> executor;
};

InferenceRequest on_lane(const std::string& source, std::uint32_t lane, int number) {
  InferenceRequest request = numbered(source, number);
  request.source.lane = lane;
  return request;
}

/// `count` regions of a frame, on as many lanes as a batch has places.
std::vector<InferenceRequest> regions(const std::string& source, int count, int batch_size) {
  std::vector<InferenceRequest> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(on_lane(source, static_cast<std::uint32_t>(i % batch_size), i));
  }
  return all;
}

TEST(B01, GivenRegionsOnLanes_WhenSubmittedTogether_ThenTheyFillBatchesWithoutWaiting) {
  Lanes t({.batch_size = 2, .max_wait = kWait, .manual = true});
  auto futures = t.executor->submit_all(regions("a", 5, 2));
  ASSERT_TRUE(futures.has_value());
  EXPECT_TRUE(t.executor->run_one());
  EXPECT_TRUE(t.executor->run_one());
  EXPECT_FALSE(t.executor->run_one()) << "the rest is a partial batch";
  EXPECT_THAT(t.log.batches(), ElementsAre(Batch{{"a", 0}, {"a", 1}}, Batch{{"a", 2}, {"a", 3}}));
  t.clock.advance(kWait);
  EXPECT_TRUE(t.executor->run_one());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(outcome(std::move((*futures)[static_cast<std::size_t>(i)])), i);
  }
}

TEST(B01, GivenAWorker_WhenManyAreSubmittedTogether_ThenNoBatchIsTakenBetweenThem) {
  for (int i = 0; i < 50; ++i) {
    Lanes t({.workers = 1, .batch_size = 4});
    auto futures = t.executor->submit_all(regions("a", 8, 4));
    ASSERT_TRUE(futures.has_value());
    for (auto& future : *futures) future.wait();
    ASSERT_EQ(t.log.count(), 2u);
  }
}

TEST(B02, GivenMoreThanTheQueueHolds_WhenSubmittedTogether_ThenAllRunAsRoomFallsFree) {
  Lanes t({.workers = 1, .queue_depth = 3, .source_share = 3, .batch_size = 2});
  auto futures = t.executor->submit_all(regions("a", 11, 2));
  ASSERT_TRUE(futures.has_value());
  for (int i = 0; i < 11; ++i) {
    EXPECT_EQ(outcome(std::move((*futures)[static_cast<std::size_t>(i)])), i);
  }
}

TEST(B03, GivenRequestsThatWaitForRoom_WhenTheirLaneIsCancelled_ThenSubmitAllSaysSo) {
  Lanes t({.queue_depth = 2, .source_share = 2, .batch_size = 2, .manual = true});
  std::thread caller([&] {
    const auto futures = t.executor->submit_all(regions("a", 4, 2));
    ASSERT_FALSE(futures.has_value());
    EXPECT_EQ(futures.error().kind(), ErrorKind::kCancelled);
  });
  while (t.executor->stats().blocked == 0) std::this_thread::yield();
  for (std::uint32_t lane = 0; lane < 2; ++lane) t.executor->cancel({"a", lane}, 0);
  caller.join();
  EXPECT_EQ(t.executor->queued(), 0u);
}

TEST(B03, GivenLanesOfAStream_WhenTheLastIsRetired_ThenTheStreamIsForgottenAndNotBefore) {
  Lanes t({.batch_size = 2, .manual = true});
  auto futures = t.executor->submit_all(regions("a", 2, 2));
  // Not lanes of "a", though next to them.
  auto other = t.executor->submit_all({on_lane("a ", 0, 7), on_lane("Z", 3, 8)});
  ASSERT_TRUE(futures.has_value() && other.has_value());
  while (t.executor->run_one()) continue;
  t.executor->retire({"a", 0});
  EXPECT_TRUE(t.forgotten.empty());
  t.executor->retire({"a", 1});
  EXPECT_THAT(t.forgotten, ElementsAre("a/0"));
  t.executor->retire({"Z", 3});
  EXPECT_THAT(t.forgotten, ElementsAre("a/0", "Z/0"));
}

TEST(B04, GivenAFrameOfManyRegions_WhenAnotherStreamComes_ThenItWaitsForOneBatchOfEachStream) {
  constexpr int kBatch = 4;
  for (int streams = 1; streams <= 3; ++streams) {
    Lanes t({.queue_depth = 128, .source_share = 16, .batch_size = kBatch, .manual = true});
    for (int i = 0; i < streams; ++i) {
      ASSERT_TRUE(t.executor->submit_all(regions("busy" + std::to_string(i), 40, kBatch)));
    }
    auto one = t.executor->submit_all({on_lane("modest", 0, 99)});
    ASSERT_TRUE(one.has_value());
    int batches = 0;
    while (!testing::is_ready(one->front()) && t.executor->run_one()) ++batches;
    EXPECT_LE(batches, streams + 1);
  }
}

}  // namespace
}  // namespace penstock
