// SPDX-License-Identifier: Apache-2.0
//
// SharedBatchExecutor: a bounded FIFO of requests from any number of sources, run by worker threads.
// A full queue is back-pressure or an explicit refusal, as the caller asks; order per source is kept by
// the caller taking its futures in order. Cancelling a source's generation fails what waits, once, and
// suppresses what runs (contract B01-B03, B05; fairness and batching across sources come later).
//
//   auto executor = SharedBatchExecutor::create({.workers = 2}, make_runner);
//   auto future = executor->submit({.frame = frame, .source = id}, WhenFull::kWait);
//   Result<InferenceResult> result = future->get();
#pragma once

#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/media/video_frame.h"
#include "penstock/media/geometry.h"
#include "penstock/observe/latency.h"
#include "penstock/records/records.h"

namespace penstock {

struct InferenceRequest {
  FramePtr frame;
  std::optional<RectI> roi;
  SourceId source;
  Generation generation = 0;
};

struct InferenceResult {
  std::vector<Detection> objects;
  StageTimes times;
};

/// Runs requests; one per worker thread, used by that thread only.
class BatchRunner {
 public:
  virtual ~BatchRunner() = default;
  /// One result a request, in order. Must not throw.
  virtual std::vector<Result<InferenceResult>> run(std::span<const InferenceRequest> batch) = 0;
};
using BatchRunnerFactory = std::function<Result<std::unique_ptr<BatchRunner>>(int worker)>;

enum class WhenFull { kRefuse, kWait };

struct ExecutorOptions {
  int workers = 1;
  std::size_t queue_depth = 64;
  int batch_size = 1;            ///< At most one request a source in a batch.
  Nanoseconds max_wait{};        ///< How long a partial batch waits for more.
  Clock* clock = nullptr;        ///< Default: Clock::system().
  /// 0 worker threads: tests call run_one() themselves.
  bool manual = false;
};

class SharedBatchExecutor {
 public:
  using Future = std::future<Result<InferenceResult>>;

  static Result<std::unique_ptr<SharedBatchExecutor>> create(const ExecutorOptions& options,
                                                             const BatchRunnerFactory& make_runner);
  /// Fails what waits with kCancelled, waits for what runs.
  virtual ~SharedBatchExecutor() = default;

  /// kExhausted: full and kRefuse. kCancelled: the executor is stopping, the generation was
  /// cancelled (also while waiting for room).
  virtual Result<Future> submit(InferenceRequest request, WhenFull when_full) = 0;

  /// Fails waiting requests of `source` up to and including `generation`, and suppresses the results
  /// of running ones; returns without waiting for them.
  virtual void cancel(const SourceId& source, Generation generation) = 0;
  /// Forgets the source once its running requests ended.
  virtual void retire(const SourceId& source) = 0;

  virtual std::size_t queued() const = 0;
  virtual std::size_t running() const = 0;
  /// Sources with bookkeeping, for leak checks.
  virtual std::size_t sources() const = 0;
  /// manual: forms and runs one batch on the calling thread; false when there was nothing to run.
  virtual bool run_one() = 0;
};

}  // namespace penstock
