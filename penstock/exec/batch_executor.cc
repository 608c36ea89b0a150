// SPDX-License-Identifier: Apache-2.0
#include "penstock/exec/batch_executor.h"

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/exec/request_schedule.h"

namespace penstock {
namespace {

constexpr int kMaxWorkers = 1024;
constexpr int kMaxBatchSize = 1024;

Result<void> check(const ExecutorOptions& options) {
  const auto wrong = [](std::string message) {
    return fail(ErrorKind::kInvalidArgument, std::move(message));
  };
  if (options.workers < 1 || options.workers > kMaxWorkers) {
    return wrong(str_format("workers is {}, must be 1..{}", options.workers, kMaxWorkers));
  }
  if (options.queue_depth < 1) return wrong("queue depth is 0, must be at least 1");
  if (options.source_share < 1) return wrong("source share is 0, must be at least 1");
  if (options.max_sources < 1) return wrong("the limit of sources is 0, must be at least 1");
  if (options.batch_size < 1 || options.batch_size > kMaxBatchSize) {
    return wrong(str_format("batch size is {}, must be 1..{}", options.batch_size, kMaxBatchSize));
  }
  if (static_cast<std::size_t>(options.batch_size) > options.queue_depth) {
    return wrong(str_format("batch size is {} but the queue holds only {} requests",
                            options.batch_size, options.queue_depth));
  }
  if (options.max_wait < Nanoseconds::zero()) return wrong("max wait is negative");
  return {};
}

/// What stays here of a request while its runner has the rest.
struct Running {
  SourceId source;
  Generation generation = 0;
  TimePoint submitted;
  std::promise<Result<InferenceResult>> promise;
  bool settled = false;  // The promise has been taken by cancel().
};

class ThreadedExecutor final : public SharedBatchExecutor {
 public:
  using Lock = std::unique_lock<std::mutex>;

  ThreadedExecutor(const ExecutorOptions& options,
                   std::vector<std::unique_ptr<BatchRunner>> runners)
      : clock_(options.clock != nullptr ? *options.clock : Clock::system()),
        manual_(options.manual),
        on_forgotten_(options.on_forgotten),
        runners_(std::move(runners)),
        schedule_(options) {}

  ~ThreadedExecutor() override {
    std::vector<PendingRequest> dropped;
    {
      Lock lock(mutex_);
      stopping_ = true;
      dropped = schedule_.cancel_all();
      stats_.cancelled += dropped.size();
      work_.notify_all();
    }
    settle_cancelled(std::move(dropped), "the executor is stopping");
    {
      Lock lock(mutex_);
      clock_.wait_until(lock, left_, TimePoint::max(), [this] { return callers_ == 0; });
    }
    for (std::thread& thread : threads_) thread.join();
  }

  Result<void> start_threads() {
    if (manual_) return {};
    threads_.reserve(runners_.size());
    try {
      for (const auto& runner : runners_) {
        threads_.emplace_back([this, &runner] { work(*runner); });
      }
    } catch (const std::system_error& error) {
      return fail(ErrorKind::kExhausted,
                  str_format("starting inference worker {} of {}: {}", threads_.size() + 1,
                             runners_.size(), error.what()));
    }
    return {};
  }

  Result<Future> submit(InferenceRequest request, WhenFull when_full) override {
    // Declared before the lock: what a refusal drops is released after it.
    BlockedRequest blocked(PendingRequest{std::move(request), {}, clock_.now()});
    Lock lock(mutex_);
    return admit(lock, blocked, when_full);
  }

  Result<std::vector<Future>> submit_all(std::vector<InferenceRequest> requests) override {
    std::list<BlockedRequest> all;
    for (InferenceRequest& request : requests) {
      all.emplace_back(PendingRequest{std::move(request), {}, clock_.now()});
    }
    std::vector<Future> futures;
    futures.reserve(all.size());
    Lock lock(mutex_);
    for (BlockedRequest& one : all) {
      auto future = admit(lock, one, WhenFull::kWait);
      if (!future) return std::unexpected(std::move(future).error());
      futures.push_back(*std::move(future));
    }
    return futures;
  }

  void cancel(const SourceId& source, Generation generation) override {
    std::vector<PendingRequest> dropped;
    std::vector<std::promise<Result<InferenceResult>>> suppressed;
    {
      const Lock lock(mutex_);
      dropped = schedule_.cancel(source, generation);
      for (std::vector<Running>* batch : running_) {
        for (Running& item : *batch) {
          if (item.settled || item.source != source || item.generation > generation) continue;
          item.settled = true;
          suppressed.push_back(std::move(item.promise));
        }
      }
      stats_.cancelled += dropped.size() + suppressed.size();
      // Room was made, so requests of others may have been admitted.
      if (schedule_.waiting() > 0) work_.notify_one();
    }
    const std::string reason =
        str_format("generation {} of source '{}' was cancelled", generation, source.name);
    settle_cancelled(std::move(dropped), reason);
    for (auto& promise : suppressed) promise.set_value(fail(ErrorKind::kCancelled, reason));
  }

  void retire(const SourceId& source) override {
    std::vector<SourceId> forgotten;
    {
      const Lock lock(mutex_);
      schedule_.retire(source);
      forgotten = schedule_.take_forgotten();
    }
    announce(forgotten);
  }

  std::size_t queued() const override { return stats().queued; }
  std::size_t running() const override { return stats().running; }
  std::size_t sources() const override { return stats().sources; }

  ExecutorStats stats() const override {
    const Lock lock(mutex_);
    ExecutorStats stats = stats_;
    stats.queued = schedule_.waiting();
    stats.running = running_count_;
    stats.blocked = schedule_.blocked();
    stats.sources = schedule_.sources();
    stats.accepted = schedule_.admissions();
    return stats;
  }

  bool run_one() override {
    if (!manual_) return false;
    Lock lock(mutex_);
    if (stopping_ || running_count_ > 0 || schedule_.due() > clock_.now()) return false;
    ++callers_;
    run_batch(lock, *runners_.front());
    leave();
    return true;
  }

 private:
  Result<Future> admit(Lock& lock, BlockedRequest& blocked, WhenFull when_full) {
    PendingRequest& pending = blocked.pending;
    Future future = pending.promise.get_future();
    if (stopping_) return fail(ErrorKind::kCancelled, "the executor is stopping");
    const InferenceRequest& asked = pending.request;
    if (auto ok = schedule_.check(asked.source, asked.generation); !ok) {
      if (ok.error().kind() == ErrorKind::kExhausted) ++stats_.refused;
      return std::unexpected(std::move(ok).error());
    }
    if (schedule_.has_room(asked.source)) {
      schedule_.add(std::move(pending));
      work_.notify_one();
      return future;
    }
    if (when_full == WhenFull::kRefuse) {
      ++stats_.refused;
      return std::unexpected(schedule_.full(asked.source));
    }
    return wait_for_room(lock, blocked, std::move(future));
  }

  Result<Future> wait_for_room(Lock& lock, BlockedRequest& blocked, Future future) {
    const SourceId source = blocked.pending.request.source;
    const Generation generation = blocked.pending.request.generation;
    ++callers_;
    schedule_.block(blocked);
    clock_.wait_until(lock, blocked.changed, TimePoint::max(),
                      [&blocked] { return blocked.state != BlockedRequest::State::kWaiting; });
    leave();
    if (blocked.state == BlockedRequest::State::kAdmitted) return future;
    if (stopping_) return fail(ErrorKind::kCancelled, "the executor is stopping");
    return fail(ErrorKind::kCancelled,
                str_format("generation {} of source '{}' was cancelled while it waited for room",
                           generation, source.name));
  }

  /// The destructor may go on as soon as the lock is let go of after the last one left.
  void leave() {
    --callers_;
    if (stopping_) left_.notify_all();
  }

  void work(BatchRunner& runner) {
    Lock lock(mutex_);
    while (await_batch(lock)) run_batch(lock, runner);
  }

  /// Whoever adds work wakes one worker, and whoever takes some while more waits wakes the next
  /// (run_batch), so one of the idle always sleeps until the next batch is due.
  bool await_batch(Lock& lock) {
    while (!stopping_) {
      const TimePoint due = schedule_.due();
      if (due <= clock_.now()) return true;
      clock_.wait_until(lock, work_, due,
                        [this, due] { return stopping_ || schedule_.due() != due; });
    }
    return false;
  }

  void run_batch(Lock& lock, BatchRunner& runner) {
    std::vector<InferenceRequest> requests;
    std::vector<Running> batch;
    for (PendingRequest& pending : schedule_.take()) {
      batch.push_back({pending.request.source, pending.request.generation, pending.submitted,
                       std::move(pending.promise)});
      requests.push_back(std::move(pending.request));
    }
    running_.push_back(&batch);
    running_count_ += batch.size();
    ++stats_.batches;
    if (schedule_.waiting() > 0) work_.notify_one();
    const TimePoint started = clock_.now();
    lock.unlock();

    std::vector<Result<InferenceResult>> results = runner.run(requests);
    // Frames go before the promises are kept: who has the result may count on them.
    requests.clear();

    lock.lock();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      Running& item = batch[i];
      schedule_.finish(item.source);
      if (item.settled) continue;
      // Under the lock, so that a cancel() that has returned is never followed by a result.
      ++stats_.completed;
      if (i >= results.size()) {
        item.promise.set_value(fail(
            ErrorKind::kInternal,
            str_format("the runner answered {} of {} requests", results.size(), batch.size())));
        continue;
      }
      if (results[i]) results[i]->times.queue = started - item.submitted;
      item.promise.set_value(std::move(results[i]));
    }
    running_.remove(&batch);
    running_count_ -= batch.size();
    const std::vector<SourceId> forgotten = schedule_.take_forgotten();
    if (forgotten.empty()) return;
    lock.unlock();
    announce(forgotten);
    lock.lock();
  }

  static void settle_cancelled(std::vector<PendingRequest> dropped, const std::string& reason) {
    for (PendingRequest& pending : dropped) {
      pending.request = {};
      pending.promise.set_value(fail(ErrorKind::kCancelled, reason));
    }
  }

  void announce(const std::vector<SourceId>& forgotten) const {
    if (!on_forgotten_) return;
    for (const SourceId& source : forgotten) on_forgotten_(source);
  }

  Clock& clock_;
  const bool manual_;
  const std::function<void(const SourceId&)> on_forgotten_;
  const std::vector<std::unique_ptr<BatchRunner>> runners_;

  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable left_;  // While stopping: a caller left.
  RequestSchedule schedule_;
  std::list<std::vector<Running>*> running_;
  std::size_t running_count_ = 0;
  std::size_t callers_ = 0;  // Inside wait_for_room() or run_one().
  bool stopping_ = false;
  ExecutorStats stats_;
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<SharedBatchExecutor>> SharedBatchExecutor::create(
    const ExecutorOptions& options, const BatchRunnerFactory& make_runner) {
  PENSTOCK_TRY(check(options));
  const int count = options.manual ? 1 : options.workers;
  std::vector<std::unique_ptr<BatchRunner>> runners;
  for (int worker = 0; worker < count; ++worker) {
    auto runner = make_runner(worker);
    if (!runner) {
      return std::unexpected(std::move(runner).error().context(
          str_format("preparing inference worker {} of {}", worker + 1, count)));
    }
    runners.push_back(std::move(*runner));
  }
  auto executor = std::make_unique<ThreadedExecutor>(options, std::move(runners));
  PENSTOCK_TRY(executor->start_threads());
  return executor;
}

}  // namespace penstock
