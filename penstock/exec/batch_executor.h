// SPDX-License-Identifier: Apache-2.0
//
// SharedBatchExecutor: a bounded FIFO of requests from any number of sources, run by worker threads
// in batches (contract B01-B05). A full queue is back-pressure or an explicit refusal, as the
// caller asks. A source's requests start in the order in which they were submitted; with several
// workers they may end in another, and the caller keeps the order by taking its futures in order.
// Cancelling a source's generation fails what waits, once, and suppresses what runs.
//
//   auto executor = SharedBatchExecutor::create({.workers = 2}, make_runner);
//   auto future = (*executor)->submit({.frame = frame, .source = id}, WhenFull::kWait);
//   Result<InferenceResult> result = future->get();
//
// A batch is taken from the sources in turn, one request each. It is due when it is full, when its
// oldest request has waited max_wait, or when the FIFO is full, so that nothing more could join.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/media/geometry.h"
#include "penstock/media/video_frame.h"
#include "penstock/observe/latency.h"
#include "penstock/records/records.h"
#include "penstock/task/output_decoder.h"

namespace penstock {

struct InferenceRequest {
  FramePtr frame;
  std::optional<RectI> roi;
  SourceId source;
  Generation generation = 0;
};

struct InferenceResult : Findings {
  DeviceFindings device;
  StageTimes times;
  std::string unusable;  ///< As Decoded's; the findings are empty then.
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
  std::size_t queue_depth = 64;  ///< Requests that wait, over all sources.
  std::size_t source_share = 8;  ///< Of those, how many may be one source's (contract B04).
  int batch_size = 1;            ///< At most one request a source in a batch.
  Nanoseconds max_wait{};        ///< How long a partial batch waits for more.
  Clock* clock = nullptr;        ///< Default: Clock::system().
  /// 0 worker threads: tests call run_one() themselves. Only runner 0 is made.
  bool manual = false;
  /// Sources with bookkeeping; a submit beyond it is refused until others are retired.
  std::size_t max_sources = 4096;
  /// Called with lane 0 when the last trace of all lanes of a retired source is gone, on whatever
  /// thread noticed, without the executor's lock. A submit may bring the source back at any time.
  std::function<void(const SourceId&)> on_forgotten = {};
};

/// A snapshot; the counters run from the executor's creation.
struct ExecutorStats {
  std::size_t queued = 0;
  std::size_t running = 0;
  std::size_t blocked = 0;  ///< Callers inside submit(kWait).
  std::size_t sources = 0;
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;    ///< submit() that answered kExhausted.
  std::uint64_t cancelled = 0;  ///< Accepted requests whose future got kCancelled.
  std::uint64_t completed = 0;  ///< Accepted requests whose future got a runner's result.
  std::uint64_t batches = 0;
};

class SharedBatchExecutor {
 public:
  using Future = std::future<Result<InferenceResult>>;

  static Result<std::unique_ptr<SharedBatchExecutor>> create(const ExecutorOptions& options,
                                                             const BatchRunnerFactory& make_runner);
  /// Fails what waits with kCancelled, waits for what runs and for callers inside submit().
  virtual ~SharedBatchExecutor() = default;

  /// kExhausted: full, or the source's share is used up, and kRefuse; or too many sources.
  /// kCancelled: the executor is stopping, the generation was cancelled (also while waiting for
  /// room). The frame is let go of before the future gets its value, unless its job still runs.
  virtual Result<Future> submit(InferenceRequest request, WhenFull when_full) = 0;
  /// Submits requests that come at one time, as the regions of a frame: all that find room join the
  /// FIFO in one step, so that they fill batches without max_wait. The others wait for their room,
  /// one by one. The error is the first that submit() would give; requests before it run all the
  /// same, for nobody.
  virtual Result<std::vector<Future>> submit_all(std::vector<InferenceRequest> requests) = 0;

  /// Fails waiting requests of `source` up to and including `generation`, suppresses the results of
  /// running ones, and wakes callers that wait for room for them; returns without waiting for the
  /// running jobs. Every such future is ready when it returns. Later submits of these generations
  /// are refused until the source is retired.
  virtual void cancel(const SourceId& source, Generation generation) = 0;
  /// Ends the source's identity: cancelled generations are forgotten at once, the rest of the
  /// bookkeeping when its accepted requests have ended (they still run). A later submit or cancel
  /// begins a new life under the same name.
  virtual void retire(const SourceId& source) = 0;

  virtual std::size_t queued() const = 0;
  virtual std::size_t running() const = 0;
  /// Sources with bookkeeping, for leak checks.
  virtual std::size_t sources() const = 0;
  virtual ExecutorStats stats() const = 0;
  /// manual: forms and runs one batch on the calling thread; false when none was due, or while
  /// another thread is at it.
  virtual bool run_one() = 0;
};

}  // namespace penstock
