// SPDX-License-Identifier: Apache-2.0
//
// SharedModel holds a model open for the sessions of a pipeline: a peninfer in READY, which does
// nothing but that. Sessions find it by the model-instance and by the context that share() puts on
// their pipelines, so that a new connection loads nothing and batches reach across sources.
#pragma once

#include <gst/gst.h>

#include <memory>

#include "penstock/base/error.h"
#include "penstock/pipeline/run_job.h"

namespace penstock {

class SharedModel {
 public:
  /// What the sessions' peninfer must have for model-instance.
  static constexpr const char* kInstance = "penstock-pipeline";

  /// `options` are those of the sessions, with kInstance among the properties. Blocks while the
  /// model loads.
  static Result<std::unique_ptr<SharedModel>> open(const RunOptions& options);
  ~SharedModel();
  SharedModel(const SharedModel&) = delete;
  SharedModel& operator=(const SharedModel&) = delete;

  /// On a pipeline in NULL; any thread.
  void share(GstElement* pipeline) const;
  /// For its ledger, which is the device's and so that of all sessions.
  GstElement* infer() const { return infer_; }

 private:
  SharedModel() = default;

  GstElement* pipeline_ = nullptr;
  GstElement* infer_ = nullptr;
  GstContext* context_ = nullptr;
};

}  // namespace penstock
