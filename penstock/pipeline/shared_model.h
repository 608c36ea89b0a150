// SPDX-License-Identifier: Apache-2.0
//
// SharedModel holds the models of a pipeline open for its sessions: peninfers in READY, which do
// nothing but that. Sessions find it by the model-instance and by the context that share() puts on
// their pipelines, so that a new connection loads nothing and batches reach across sources.
#pragma once

#include <gst/gst.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/pipeline/run_job.h"

namespace penstock {

class SharedModel {
 public:
  /// What the sessions' first peninfer must have for model-instance.
  static constexpr const char* kInstance = "penstock-pipeline";
  /// And that of each stage.
  static std::string instance_of_stage(std::size_t stage);

  /// `options` are those of the sessions, with the instances among the properties of the first and
  /// of RunOptions::stages. Blocks while the models load.
  static Result<std::unique_ptr<SharedModel>> open(const RunOptions& options);
  ~SharedModel();
  SharedModel(const SharedModel&) = delete;
  SharedModel& operator=(const SharedModel&) = delete;

  /// On a pipeline in NULL; any thread.
  void share(GstElement* pipeline) const;
  /// For their ledgers, which are the devices' and so those of all sessions.
  const std::vector<GstElement*>& infers() const { return infers_; }

 private:
  SharedModel() = default;

  GstElement* pipeline_ = nullptr;
  std::vector<GstElement*> infers_;
  GstContext* context_ = nullptr;
};

}  // namespace penstock
