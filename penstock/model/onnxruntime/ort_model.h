// SPDX-License-Identifier: Apache-2.0
//
// OrtModel: a model loaded into ONNX Runtime, whose inputs and outputs are what the manifest says.
// Immutable and shared: sessions hold it, and so does every job in flight. run() may be called from
// several threads at once.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/model/manifest.h"
#include "penstock/model/onnxruntime/ort_placement.h"
#include "penstock/model/onnxruntime/ort_runtime.h"
#include "penstock/model/onnxruntime/run_limit.h"
#include "penstock/model/session.h"

namespace penstock {

/// Bytes of one input or output for the length of a run.
struct OrtBuffer {
  const TensorSpec* spec = nullptr;
  Shape shape;
  std::span<std::byte> bytes;  ///< Outputs: empty lets ONNX Runtime allocate.
};

class OrtModel {
 public:
  static Result<std::shared_ptr<const OrtModel>> load(const Manifest& manifest,
                                                      const SessionOptions& options);

  const std::vector<TensorSpec>& inputs() const { return inputs_; }
  const std::vector<TensorSpec>& outputs() const { return outputs_; }
  /// "model 'nanodet' (onnxruntime 1.29.0, CPUExecutionProvider)": the context of every error.
  const std::string& label() const { return label_; }
  /// Tells the runs there are, and all later ones, to stop: they fail with kCancelled.
  void interrupt() const { limit_->stop_all(); }
  const OrtRuntime& runtime() const { return *runtime_; }

  /// Runs once on the calling thread. Returns the values of the outputs without bytes, in order.
  Result<std::vector<OrtHandle<OrtValue>>> run(std::span<const OrtBuffer> inputs,
                                               std::span<const OrtBuffer> outputs) const;

 private:
  explicit OrtModel(std::shared_ptr<OrtRuntime> runtime);
  Result<void> create(const Manifest& manifest, const SessionOptions& options);
  Result<void> configure(OrtSessionOptions* target, const Manifest& manifest,
                         const SessionOptions& options) const;
  Result<void> validate(const Manifest& manifest);
  /// `work` under the limit, with its status as an Error.
  Result<void> within_limit(const std::string& doing, const std::function<void()>& stop,
                            const std::function<OrtStatus*()>& work) const;
  Result<OrtHandle<OrtValue>> wrap(const OrtBuffer& buffer) const;
  Result<std::vector<OrtHandle<OrtValue>>> run_bound(OrtIoBinding* binding,
                                                     std::span<const OrtBuffer> inputs,
                                                     std::span<const OrtBuffer> outputs) const;

  std::shared_ptr<OrtRuntime> runtime_;  // first: everything below is released through it
  OrtHandle<OrtMemoryInfo> memory_;
  std::unique_ptr<OrtPlacement> placement_;  ///< Of other providers than the CPU's.
  OrtHandle<OrtSession> session_;
  std::vector<TensorSpec> inputs_;
  std::vector<TensorSpec> outputs_;
  std::string label_;
  std::unique_ptr<RunLimit> limit_;
  mutable std::mutex bindings_mutex_;
  /// Idle ones; there are never more bindings than runs that were in flight at once.
  mutable std::vector<OrtHandle<OrtIoBinding>> bindings_;
};

}  // namespace penstock
