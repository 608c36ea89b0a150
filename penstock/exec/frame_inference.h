// SPDX-License-Identifier: Apache-2.0
//
// FrameInference is the one way through a stage: frame -> tensor -> session -> records, for any
// number of streams at once. Opened once from a manifest, it owns the session, which all workers
// share, and an executor whose workers preprocess, run and decode.
//
//   auto inference = FrameInference::open(device, manifest, {.policy = Policy::kLatency});
//   auto future = (*inference)->executor().submit({.frame = frame, .source = id}, WhenFull::kWait);
//   Result<InferenceResult> result = future->get();  // boxes in pixels of the frame
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "penstock/exec/batch_executor.h"
#include "penstock/memory/device.h"
#include "penstock/model/manifest.h"
#include "penstock/model/session.h"
#include "penstock/task/output_decoder.h"

namespace penstock {

/// What `workers = 0` means: one single-threaded worker a core that the process may use
/// (usable_cores.h), or one worker whose runs use all of these.
enum class Policy { kThroughput, kLatency };

struct InferenceOptions {
  Policy policy = Policy::kThroughput;
  int workers = 0;               ///< Threads, runs at the same time. 0: by policy.
  std::size_t queue_depth = 64;  ///< Requests that wait, over all sources; as in ExecutorOptions.
  std::size_t source_share = 8;  ///< Of those, how many may be one source's.
  int batch_size = 1;            ///< Requests in a run, at most one a source.
  Nanoseconds max_wait{};        ///< How long a partial batch waits for more.
  DecodeOptions decode{};        ///< Thresholds are 0..1; boxes come in pixels of the frame.
  std::filesystem::path engine_library{};    ///< Empty: the build's default.
  std::filesystem::path provider_library{};  ///< As SessionOptions'.
  Clock* clock = nullptr;                    ///< Default: Clock::system(). Outlives the inference.
  /// Opens the session instead of open_session(): for one whose engine is elsewhere.
  std::function<Result<std::shared_ptr<Session>>(const DevicePtr&, const Manifest&,
                                                 const SessionOptions&)>
      open_session = nullptr;
};

/// Thread-safe. Requests are of frames of the opened device, and share their ownership until their
/// future is ready or, cancelled, until their run has ended. Manifest and options are copied. Cores
/// are those that the calling thread may use when it opens, by its affinity and control groups.
class FrameInference {
 public:
  /// The error names model, device and what is wrong. kInvalidArgument: no device, negative
  /// workers, a batch larger than the model's input takes, options that the executor or decoder
  /// refuse. kUnsupported: a model without an
  /// input that is a batch of images, or with others that the manifest gives no constant. Else what
  /// open_session() says of the model and the engine.
  static Result<std::unique_ptr<FrameInference>> open(DevicePtr device, const Manifest& manifest,
                                                      const InferenceOptions& options);
  /// Fails waiting requests with kCancelled and waits for runs in flight, whose futures still get
  /// their results.
  virtual ~FrameInference() = default;

  /// Lives as long as this. A future's error names frame, source, model and device.
  virtual SharedBatchExecutor& executor() = 0;
  virtual const Manifest& manifest() const = 0;
  /// Threads that run requests, at least 1.
  virtual int workers() const = 0;
  /// Session::interrupt(): before the end, when nobody waits for what still runs.
  virtual void interrupt() = 0;
  /// Preprocessors made so far: one a worker and source that came by it (contract V06).
  virtual std::uint64_t preprocessors() const = 0;
};

}  // namespace penstock
