// SPDX-License-Identifier: Apache-2.0
//
// For tests of the executor: a runner that only keeps a log, and can be held. Requests are told
// apart by a number, which comes back as the class of the one object of their result.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "penstock/exec/batch_executor.h"

namespace penstock::testing {

/// What all runners of an executor did. Thread-safe.
class RunLog {
 public:
  using Entry = std::pair<std::string, int>;  // Source and number.
  using Batch = std::vector<Entry>;

  /// Runs wait before they end, until release().
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  /// Blocks until `count` runs have begun.
  void await_begun(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return batches_.size() >= count; });
  }
  std::vector<Batch> batches() {
    const std::lock_guard lock(mutex_);
    return batches_;
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return batches_.size();
  }
  Batch last() {
    const std::lock_guard lock(mutex_);
    return batches_.empty() ? Batch() : batches_.back();
  }
  /// All entries in the order in which they began.
  Batch entries() {
    Batch all;
    for (const Batch& batch : batches()) all.insert(all.end(), batch.begin(), batch.end());
    return all;
  }

  void run(Batch batch) {
    std::unique_lock lock(mutex_);
    batches_.push_back(std::move(batch));
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
  }

  /// Called inside each run, on its thread. Set before the executor is made.
  std::function<void()> during_run;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Batch> batches_;
  bool held_ = false;
};

class LoggingRunner final : public BatchRunner {
 public:
  explicit LoggingRunner(RunLog& log) : log_(log) {}

  std::vector<Result<InferenceResult>> run(std::span<const InferenceRequest> batch) override {
    RunLog::Batch entries;
    std::vector<Result<InferenceResult>> results;
    for (const InferenceRequest& request : batch) {
      entries.emplace_back(request.source.name, request.roi->x);
      InferenceResult result;
      result.objects.push_back({.class_id = request.roi->x, .label = {}});
      results.push_back(std::move(result));
    }
    log_.run(std::move(entries));
    if (log_.during_run) log_.during_run();
    return results;
  }

 private:
  RunLog& log_;
};

inline BatchRunnerFactory logging_runners(RunLog& log) {
  return [&log](int) -> Result<std::unique_ptr<BatchRunner>> {
    return std::make_unique<LoggingRunner>(log);
  };
}

inline InferenceRequest numbered(std::string source, int number, Generation generation = 0,
                                 FramePtr frame = nullptr) {
  return {.frame = std::move(frame),
          .roi = RectI{number, 0, 0, 0},
          .source = {std::move(source)},
          .generation = generation};
}

inline bool is_ready(const SharedBatchExecutor::Future& future) {
  return future.wait_for(Nanoseconds::zero()) == std::future_status::ready;
}

/// The request's number, or minus one minus its error's kind.
inline int outcome(SharedBatchExecutor::Future future) {
  const Result<InferenceResult> result = future.get();
  if (!result) return -1 - static_cast<int>(result.error().kind());
  return result->objects.at(0).class_id;
}
inline constexpr int kCancelledOutcome = -1 - static_cast<int>(ErrorKind::kCancelled);

}  // namespace penstock::testing
