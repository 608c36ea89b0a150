// SPDX-License-Identifier: Apache-2.0
//
// Session: a loaded model that runs. Engines (and later bursts) are behind it.
//
//   auto session = open_session(device, manifest, {.threads = 1});
//   auto outputs = (*session)->run({tensor});
//
// run() is safe from several threads at once; concurrent runs share weights. Outputs own their
// memory, outlive the next run and the session, and are reused only when nobody holds them
// (contract M04).
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/memory/device.h"
#include "penstock/memory/tensor.h"
#include "penstock/model/manifest.h"

namespace penstock {

struct SessionOptions {
  int threads = 1;                         ///< Intra-op threads of one run.
  int concurrent_runs = 1;                 ///< Runs expected at once; > 1: idle threads don't spin.
  std::filesystem::path engine_library{};  ///< Empty: the build's default.
  /// Of an execution provider that is not built into the engine; the manifest names the provider.
  /// Never taken from the manifest: a model must not choose the code that runs.
  std::filesystem::path provider_library{};
  /// A run, or loading the model, that takes longer is told to stop and fails; the engine looks
  /// between two operators, so that a single long one still ends first.
  Nanoseconds run_limit = std::chrono::seconds(60);
  Clock* clock = nullptr;  ///< For the limit. Default: Clock::system(). Outlives the session.
  std::size_t output_budget = std::size_t{256} << 20;  ///< Bytes of outputs alive at once.
};

class Session {
 public:
  virtual ~Session() = default;

  virtual const std::vector<TensorSpec>& inputs() const = 0;
  virtual const std::vector<TensorSpec>& outputs() const = 0;

  /// Checks every input against its spec (contract M03), then runs on the device after the inputs'
  /// fences. Inputs are matched by name, in any order. The returned tensors (in the order of
  /// outputs()) carry the run's fence; inputs live until it has passed. A model with outputs whose
  /// shape only the run can tell makes this wait for the run. kInvalidArgument: an input is wrong;
  /// kExhausted: the output budget is held by earlier results; kDevice: the engine failed (maybe by
  /// the fence).
  virtual Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) = 0;

  /// Tells runs in flight and all later ones to stop, for a session that nobody needs any more:
  /// they fail with kCancelled. The engine looks between two operators. Safe from any thread.
  virtual void interrupt() = 0;
};

/// Loads the manifest's artefact with its engine. Every failure names model, engine and cause.
Result<std::shared_ptr<Session>> open_session(DevicePtr device, const Manifest& manifest,
                                              const SessionOptions& options = {});

/// For `doctor`: what an ONNX Runtime library (empty: the build's default) offers, built in and,
/// for devices that are there, by plugins.
Result<std::vector<std::string>> onnxruntime_providers(const std::filesystem::path& library = {});
Result<std::string> onnxruntime_version(const std::filesystem::path& library = {});

}  // namespace penstock
