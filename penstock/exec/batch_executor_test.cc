// SPDX-License-Identifier: Apache-2.0
//
// Contract B02-B05 on the executor's own terms: fake runners, a clock that stands still, no sleeps.
#include "penstock/exec/batch_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "penstock/exec/test_runner.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::is_ready;
using testing::kCancelledOutcome;
using testing::logging_runners;
using testing::numbered;
using testing::outcome;
using testing::RunLog;
using Batch = RunLog::Batch;
using Future = SharedBatchExecutor::Future;

constexpr Nanoseconds kWait{1000};

class Executor {
 public:
  explicit Executor(ExecutorOptions options) {
    options.clock = &clock;
    auto made = SharedBatchExecutor::create(options, logging_runners(log));
    EXPECT_TRUE(made.has_value());
    executor = std::move(*made);
  }
  ~Executor() { log.release(); }

  Future submit(InferenceRequest request, WhenFull when_full = WhenFull::kRefuse) {
    auto future = executor->submit(std::move(request), when_full);
    EXPECT_TRUE(future.has_value()) << future.error().message();
    return std::move(*future);
  }
  ErrorKind refusal(InferenceRequest request, WhenFull when_full = WhenFull::kRefuse) {
    auto future = executor->submit(std::move(request), when_full);
    EXPECT_FALSE(future.has_value());
    return future.error().kind();
  }
  void run_all() {
    while (executor->run_one()) continue;
  }

  ManualClock clock;
  RunLog log;
  std::unique_ptr<SharedBatchExecutor> executor;
};

ExecutorOptions manual(int batch_size = 1) {
  return {.batch_size = batch_size, .max_wait = kWait, .manual = true};
}

TEST(BatchExecutor, GivenImpossibleOptions_WhenCreated_ThenInvalidArgument) {
  RunLog log;
  const ExecutorOptions wrong[] = {
      {.workers = 0},
      {.queue_depth = 0},
      {.source_share = 0},
      {.batch_size = 0},
      {.queue_depth = 4, .batch_size = 5},
      {.max_wait = Nanoseconds(-1)},
      {.max_sources = 0},
  };
  for (const ExecutorOptions& options : wrong) {
    auto made = SharedBatchExecutor::create(options, logging_runners(log));
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error().kind(), ErrorKind::kInvalidArgument);
  }
}

TEST(BatchExecutor, GivenRunnerThatCannotBeMade_WhenCreated_ThenItsErrorNamesTheWorker) {
  RunLog log;
  const auto made = SharedBatchExecutor::create(
      {.workers = 2}, [&](int worker) -> Result<std::unique_ptr<BatchRunner>> {
        if (worker == 1) return fail(ErrorKind::kDevice, "out of order");
        return std::make_unique<testing::LoggingRunner>(log);
      });
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().kind(), ErrorKind::kDevice);
  EXPECT_THAT(made.error().message(), HasSubstr("worker 2 of 2"));
}

TEST(BatchExecutor, GivenRunnerThatForgetsAnAnswer_WhenRun_ThenThatFutureGetsInternal) {
  class Forgetful final : public BatchRunner {
    std::vector<Result<InferenceResult>> run(std::span<const InferenceRequest>) override {
      return {};
    }
  };
  auto executor = SharedBatchExecutor::create(
      {.manual = true},
      [](int) -> Result<std::unique_ptr<BatchRunner>> { return std::make_unique<Forgetful>(); });
  ASSERT_TRUE(executor.has_value());
  auto future = (*executor)->submit(numbered("a", 1), WhenFull::kRefuse);
  ASSERT_TRUE(future.has_value());
  EXPECT_TRUE((*executor)->run_one());
  EXPECT_EQ(future->get().error().kind(), ErrorKind::kInternal);
}

TEST(BatchExecutor, GivenTooManySources_WhenAnotherSubmits_ThenRefusedUntilOneIsRetired) {
  ExecutorOptions options = manual();
  options.max_sources = 2;
  Executor t(options);
  t.submit(numbered("a", 1));
  t.submit(numbered("b", 2));
  EXPECT_EQ(t.refusal(numbered("c", 3)), ErrorKind::kExhausted);
  t.executor->cancel({"d"}, 0);
  EXPECT_EQ(t.executor->sources(), 2u);
  t.run_all();
  t.executor->retire({"a"});
  t.submit(numbered("c", 3));
}

TEST(BatchExecutor, GivenTimeInTheQueue_WhenRun_ThenReportedAsTheQueueStage) {
  Executor t(manual());
  Future future = t.submit(numbered("a", 1));
  t.clock.advance(Nanoseconds(77));
  t.run_all();
  EXPECT_EQ(future.get()->times.queue, Nanoseconds(77));
}

// ---- B01: batches

TEST(B01, GivenSeveralRequestsOfASource_WhenBatched_ThenAtMostOneOfItInABatch) {
  Executor t(manual(3));
  for (int i = 0; i < 3; ++i) {
    t.submit(numbered("a", i));
    t.submit(numbered("b", 10 + i));
  }
  t.clock.advance(kWait);
  t.run_all();
  EXPECT_THAT(t.log.batches(), ElementsAre(Batch{{"a", 0}, {"b", 10}}, Batch{{"a", 1}, {"b", 11}},
                                           Batch{{"a", 2}, {"b", 12}}));
}

TEST(B01, GivenPartialBatch_WhenItsWaitExpires_ThenItRunsAndNotBefore) {
  Executor t(manual(3));
  t.submit(numbered("a", 0));
  t.clock.advance(kWait / 2);
  t.submit(numbered("b", 1));
  t.clock.advance(kWait / 2 - Nanoseconds(1));
  EXPECT_FALSE(t.executor->run_one());
  t.clock.advance(Nanoseconds(1));
  EXPECT_TRUE(t.executor->run_one());
  EXPECT_THAT(t.log.batches(), ElementsAre(Batch{{"a", 0}, {"b", 1}}));
}

TEST(B01, GivenFullBatch_WhenFormed_ThenItRunsAtOnce) {
  Executor t(manual(2));
  t.submit(numbered("a", 0));
  t.submit(numbered("b", 1));
  EXPECT_TRUE(t.executor->run_one());
  EXPECT_FALSE(t.executor->run_one());
}

TEST(B01, GivenFullQueueOfOneSource_WhenNothingMoreCanJoin_ThenThePartialBatchRunsAtOnce) {
  ExecutorOptions options = manual(2);
  options.queue_depth = 2;
  Executor t(options);
  t.submit(numbered("a", 0));
  EXPECT_FALSE(t.executor->run_one());
  t.submit(numbered("a", 1));
  EXPECT_TRUE(t.executor->run_one());
  EXPECT_FALSE(t.executor->run_one());
}

TEST(B01, GivenDefaults_WhenSixtyFourWait_ThenTheNextIsRefused) {
  Executor t({.manual = true});
  for (int i = 0; i < 64; ++i) t.submit(numbered("source" + std::to_string(i % 8), i));
  EXPECT_EQ(t.refusal(numbered("another", 64)), ErrorKind::kExhausted);
  EXPECT_EQ(t.executor->queued(), 64u);
}

// ---- B02: a full queue

TEST(B02, GivenFullQueue_WhenRefusing_ThenTheCallerIsToldAndNothingAcceptedIsLost) {
  ExecutorOptions options = manual();
  options.queue_depth = 3;
  Executor t(options);
  std::vector<Future> futures;
  for (int i = 0; i < 3; ++i) futures.push_back(t.submit(numbered("a", i)));
  const auto refused = t.executor->submit(numbered("b", 3), WhenFull::kRefuse);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::kExhausted);
  EXPECT_THAT(refused.error().message(), HasSubstr("'b'"));
  t.run_all();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(outcome(std::move(futures[static_cast<std::size_t>(i)])), i);
  EXPECT_EQ(t.executor->stats().refused, 1u);
  EXPECT_EQ(t.log.entries().size(), 3u);
}

TEST(B02, GivenFullQueue_WhenWaiting_ThenSubmitBlocksUntilThereIsRoom) {
  ExecutorOptions options = manual();
  options.queue_depth = 1;
  Executor t(options);
  Future first = t.submit(numbered("a", 1));
  Future second;
  std::thread caller([&] { second = t.submit(numbered("b", 2), WhenFull::kWait); });
  t.clock.await_waiters(1);
  EXPECT_EQ(t.executor->queued(), 1u);
  EXPECT_EQ(t.executor->stats().blocked, 1u);
  EXPECT_TRUE(t.executor->run_one());
  caller.join();
  EXPECT_TRUE(t.executor->run_one());
  EXPECT_EQ(outcome(std::move(first)), 1);
  EXPECT_EQ(outcome(std::move(second)), 2);
  EXPECT_EQ(t.executor->stats().accepted, 2u);
}

TEST(B02, GivenCallerThatWaitsForRoom_WhenAnotherAsksLater_ThenTheLaterOneCannotOvertake) {
  ExecutorOptions options = manual();
  options.queue_depth = 1;
  Executor t(options);
  t.submit(numbered("a", 1));
  std::thread caller([&] { t.submit(numbered("b", 2), WhenFull::kWait); });
  t.clock.await_waiters(1);
  EXPECT_TRUE(t.executor->run_one());  // Its slot goes to b before anybody can ask.
  EXPECT_EQ(t.refusal(numbered("c", 3)), ErrorKind::kExhausted);
  caller.join();
  t.run_all();
  EXPECT_THAT(t.log.entries(), ElementsAre(RunLog::Entry("a", 1), RunLog::Entry("b", 2)));
}

TEST(B02, GivenTwoSourcesOnOneWorker_WhenRun_ThenEachSourceStartsInItsOrder) {
  Executor t({.workers = 1, .queue_depth = 4});
  std::vector<Future> futures;
  for (int i = 0; i < 100; ++i) {
    futures.push_back(t.submit(numbered(i % 3 == 0 ? "a" : "b", i), WhenFull::kWait));
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(outcome(std::move(futures[static_cast<std::size_t>(i)])), i);
  }
  int last_a = -1;
  int last_b = -1;
  for (const auto& [source, number] : t.log.entries()) {
    int& last = source == "a" ? last_a : last_b;
    EXPECT_LT(last, number);
    last = number;
  }
}

// ---- B03: cancelling and retiring

TEST(B03, GivenWaitingRequests_WhenTheirGenerationIsCancelled_ThenEachFailsOnceAndNeverRuns) {
  Executor t(manual());
  auto frame = std::make_shared<VideoFrame>();
  const std::weak_ptr<VideoFrame> watch = frame;
  Future old0 = t.submit(numbered("a", 0, 0, std::exchange(frame, nullptr)));
  Future old1 = t.submit(numbered("a", 1, 1));
  Future young = t.submit(numbered("a", 2, 2));
  Future other = t.submit(numbered("b", 3, 0));
  t.executor->cancel({"a"}, 1);
  EXPECT_TRUE(is_ready(old0));
  EXPECT_TRUE(is_ready(old1));
  EXPECT_TRUE(watch.expired());
  EXPECT_FALSE(is_ready(young));
  EXPECT_EQ(outcome(std::move(old0)), kCancelledOutcome);
  EXPECT_EQ(outcome(std::move(old1)), kCancelledOutcome);
  t.run_all();
  EXPECT_EQ(outcome(std::move(young)), 2);
  EXPECT_EQ(outcome(std::move(other)), 3);
  EXPECT_EQ(t.log.entries().size(), 2u);
  EXPECT_EQ(t.executor->stats().cancelled, 2u);
}

TEST(B03, GivenRunningRequest_WhenCancelled_ThenItsFutureFailsAtOnceAndTheFrameLivesOn) {
  Executor t({.workers = 1});
  t.log.hold();
  auto frame = std::make_shared<VideoFrame>();
  const std::weak_ptr<VideoFrame> watch = frame;
  Future future = t.submit(numbered("a", 0, 0, std::exchange(frame, nullptr)));
  t.log.await_begun(1);
  t.executor->cancel({"a"}, 0);
  EXPECT_TRUE(is_ready(future));
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(t.executor->running(), 1u);
  t.log.release();
  t.executor.reset();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(outcome(std::move(future)), kCancelledOutcome);
}

TEST(B03, GivenBatchOfTwoSources_WhenOneIsCancelledWhileItRuns_ThenTheOtherGetsItsResult) {
  Executor t({.workers = 1, .batch_size = 2, .max_wait = kWait});
  t.log.hold();
  Future a = t.submit(numbered("a", 1));
  Future b = t.submit(numbered("b", 2));
  t.log.await_begun(1);
  t.executor->cancel({"a"}, 0);
  t.executor->cancel({"a"}, 0);  // Again: still once.
  t.log.release();
  EXPECT_EQ(outcome(std::move(a)), kCancelledOutcome);
  EXPECT_EQ(outcome(std::move(b)), 2);
  EXPECT_EQ(t.executor->stats().cancelled, 1u);
}

TEST(B03, GivenCallerThatWaitsForRoom_WhenItsGenerationIsCancelled_ThenItWakesWithCancelled) {
  ExecutorOptions options = manual();
  options.queue_depth = 1;
  Executor t(options);
  Future first = t.submit(numbered("b", 1));
  std::thread caller(
      [&] { EXPECT_EQ(t.refusal(numbered("a", 2), WhenFull::kWait), ErrorKind::kCancelled); });
  t.clock.await_waiters(1);
  t.executor->cancel({"a"}, 0);
  caller.join();
  t.run_all();
  EXPECT_EQ(outcome(std::move(first)), 1);
}

TEST(B03, GivenRoomMadeByCancelling_WhenAnotherSourceWaits_ThenItIsAdmittedAndRun) {
  Executor t({.workers = 1, .queue_depth = 1});
  t.log.hold();
  Future running = t.submit(numbered("a", 0));
  t.log.await_begun(1);
  Future dropped = t.submit(numbered("a", 1));
  Future admitted;
  std::thread caller([&] { admitted = t.submit(numbered("b", 2), WhenFull::kWait); });
  t.clock.await_waiters(1);
  t.executor->cancel({"a"}, 0);
  caller.join();
  t.log.release();
  EXPECT_EQ(outcome(std::move(admitted)), 2);
  EXPECT_EQ(outcome(std::move(dropped)), kCancelledOutcome);
  EXPECT_EQ(outcome(std::move(running)), kCancelledOutcome);
}

TEST(B03, GivenCancelledGeneration_WhenSubmittedLate_ThenRefusedUntilTheNextGeneration) {
  Executor t(manual());
  t.executor->cancel({"a"}, 4);
  EXPECT_EQ(t.refusal(numbered("a", 0, 4), WhenFull::kWait), ErrorKind::kCancelled);
  EXPECT_EQ(t.refusal(numbered("a", 0, 0)), ErrorKind::kCancelled);
  t.executor->cancel({"a"}, 2);  // An older one takes nothing back.
  EXPECT_EQ(t.refusal(numbered("a", 0, 4)), ErrorKind::kCancelled);
  t.submit(numbered("a", 0, 5));
  t.submit(numbered("b", 0, 0));
}

TEST(B03, GivenInFlightWork_WhenRetired_ThenBookkeepingGoesAfterIt) {
  ManualClock clock;
  RunLog log;
  std::vector<std::string> forgotten;
  auto made = SharedBatchExecutor::create(
      {.clock = &clock,
       .manual = true,
       .on_forgotten = [&](const SourceId& source) { forgotten.push_back(source.name); }},
      logging_runners(log));
  ASSERT_TRUE(made.has_value());
  SharedBatchExecutor& executor = **made;
  auto first = executor.submit(numbered("a", 1), WhenFull::kRefuse);
  auto second = executor.submit(numbered("b", 2), WhenFull::kRefuse);
  executor.retire({"a"});
  executor.retire({"nobody"});
  EXPECT_EQ(executor.sources(), 2u);
  EXPECT_TRUE(forgotten.empty());
  while (executor.run_one()) continue;
  EXPECT_EQ(outcome(std::move(*first)), 1);
  EXPECT_EQ(executor.sources(), 1u);
  EXPECT_THAT(forgotten, ElementsAre("a"));
  executor.retire({"b"});
  EXPECT_EQ(executor.sources(), 0u);
  EXPECT_THAT(forgotten, ElementsAre("a", "b"));
}

TEST(B03, GivenRetiredSource_WhenItsNameComesBack_ThenItsCancelledGenerationsAreForgotten) {
  Executor t(manual());
  t.submit(numbered("a", 0, 3));
  t.executor->cancel({"a"}, 3);
  t.executor->retire({"a"});
  EXPECT_EQ(t.executor->sources(), 0u);
  Future future = t.submit(numbered("a", 1, 0));
  t.run_all();
  EXPECT_EQ(outcome(std::move(future)), 1);
}

TEST(B03, GivenResult_WhenTheFutureIsReady_ThenTheFrameHasBeenLetGo) {
  Executor t({.workers = 2});
  for (int i = 0; i < 100; ++i) {
    auto frame = std::make_shared<VideoFrame>();
    const std::weak_ptr<VideoFrame> watch = frame;
    Future future = t.submit(numbered("a", i, 0, std::exchange(frame, nullptr)), WhenFull::kWait);
    future.wait();
    EXPECT_TRUE(watch.expired());
  }
}

TEST(B03, GivenExecutorWithWork_WhenDestroyed_ThenWaitingFailOnceAndRunningEnd) {
  Executor t({.workers = 1, .queue_depth = 1});
  t.log.hold();
  Future running = t.submit(numbered("a", 1));
  t.log.await_begun(1);
  Future waiting = t.submit(numbered("a", 2));
  std::thread caller(
      [&] { EXPECT_EQ(t.refusal(numbered("b", 3), WhenFull::kWait), ErrorKind::kCancelled); });
  t.clock.await_waiters(1);
  std::thread destroyer([&] { t.executor.reset(); });
  EXPECT_EQ(outcome(std::move(waiting)), kCancelledOutcome);  // Before the running one ends.
  caller.join();
  t.log.release();
  destroyer.join();
  EXPECT_EQ(outcome(std::move(running)), 1);
  EXPECT_EQ(t.log.batches().size(), 1u);
}

// ---- B04: fairness

TEST(B04, GivenSourceWithItsShare_WhenItSubmitsMore_ThenRefusedThoughTheQueueHasRoom) {
  Executor t({.manual = true});
  for (int i = 0; i < 8; ++i) t.submit(numbered("a", i));
  const auto refused = t.executor->submit(numbered("a", 8), WhenFull::kRefuse);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::kExhausted);
  EXPECT_THAT(refused.error().message(), HasSubstr("its share"));
  t.submit(numbered("b", 9));
}

TEST(B04, GivenSourceWithItsShare_WhenItWaits_ThenAdmittedWhenItsOwnRequestHasStarted) {
  ExecutorOptions options = manual();
  options.source_share = 1;
  Executor t(options);
  t.submit(numbered("b", 0));
  t.submit(numbered("a", 1));
  Future future;
  std::thread caller([&] { future = t.submit(numbered("a", 2), WhenFull::kWait); });
  t.clock.await_waiters(1);
  EXPECT_TRUE(t.executor->run_one());  // b: no help for a
  EXPECT_EQ(t.executor->stats().blocked, 1u);
  EXPECT_TRUE(t.executor->run_one());
  caller.join();
  t.run_all();
  EXPECT_EQ(outcome(std::move(future)), 2);
}

TEST(B04, GivenGreedySource_WhenAnotherComes_ThenItsFirstRequestIsInTheNextTurn) {
  Executor t(manual());
  for (int i = 0; i < 8; ++i) t.submit(numbered("greedy", i));
  EXPECT_TRUE(t.executor->run_one());
  t.submit(numbered("modest", 100));
  EXPECT_TRUE(t.executor->run_one());
  EXPECT_TRUE(t.executor->run_one());  // ceil(2 sources / batch size 1) batches
  EXPECT_EQ(t.log.entries().back(), RunLog::Entry("modest", 100));
}

TEST(B04, GivenManyCallersOfOneSource_WhenRoomFallsFree_ThenTheLeastRecentlyAdmittedComesFirst) {
  ExecutorOptions options = manual();
  options.queue_depth = 2;
  Executor t(options);
  t.submit(numbered("modest", 0));
  t.submit(numbered("greedy", 1));
  std::vector<std::thread> callers;
  int waiters = 0;
  for (const auto& [source, number] :
       {std::pair("greedy", 2), std::pair("greedy", 3), std::pair("modest", 4)}) {
    callers.emplace_back(
        [&t, source, number] { t.submit(numbered(source, number), WhenFull::kWait); });
    t.clock.await_waiters(++waiters);
  }
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(t.executor->run_one());
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(t.log.entries(), ElementsAre(RunLog::Entry("modest", 0), RunLog::Entry("greedy", 1),
                                           RunLog::Entry("modest", 4), RunLog::Entry("greedy", 2),
                                           RunLog::Entry("greedy", 3)));
}

// ---- B05: the clock decides

TEST(B05, GivenWorkerThread_WhenOnlyTheClockMoves_ThenThePartialBatchRuns) {
  Executor t({.workers = 1, .batch_size = 2, .max_wait = kWait});
  Future future = t.submit(numbered("a", 1));
  t.clock.await_waiters(1);
  EXPECT_FALSE(is_ready(future));
  t.clock.advance(kWait - Nanoseconds(1));
  EXPECT_FALSE(is_ready(future));
  t.clock.advance(Nanoseconds(1));
  EXPECT_EQ(outcome(std::move(future)), 1);
}

TEST(B05, GivenWorkerThatWaitsForMore_WhenTheBatchFills_ThenItRunsThoughTheClockStands) {
  Executor t({.workers = 2, .batch_size = 2, .max_wait = kWait});
  Future a = t.submit(numbered("a", 1));
  t.clock.await_waiters(1);
  Future b = t.submit(numbered("b", 2));
  EXPECT_EQ(outcome(std::move(a)), 1);
  EXPECT_EQ(outcome(std::move(b)), 2);
  EXPECT_EQ(t.log.batches().size(), 1u);
}

TEST(B05, GivenWaitWithoutLimit_WhenTheBatchIsPartial_ThenTimeNeverMakesItDue) {
  ExecutorOptions options = manual(2);
  options.max_wait = Nanoseconds::max();
  Executor t(options);
  t.submit(numbered("a", 1));
  t.clock.advance(std::chrono::hours(24 * 365));
  EXPECT_FALSE(t.executor->run_one());
}

TEST(B05, GivenExecutorWithThreads_WhenRunOneIsCalled_ThenItLeavesTheWorkToThem) {
  Executor t({.workers = 1, .batch_size = 2, .max_wait = kWait});
  t.submit(numbered("a", 1));
  t.clock.advance(kWait * 2);
  EXPECT_FALSE(t.executor->run_one());
}

}  // namespace
}  // namespace penstock
