// SPDX-License-Identifier: Apache-2.0
//
// Whether a pipeline could run: its text, the model, the sources' files and what the elements say
// of their properties. `penstock check` prints it, `penstock run` begins with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/penstock/run_model.h"
#include "penstock/pipeline/config_node.h"
#include "penstock/pipeline/pipeline_spec.h"

namespace penstock {

struct CheckedPipeline {
  PipelineSpec spec;
  RunModel model;
  std::vector<RunModel> stages;  ///< Of PipelineSpec::stages.
};

/// Everything that is wrong is added to `problems`; nothing when there is any. Needs gst_init() and
/// the registered elements. Opens no model and no camera.
std::optional<CheckedPipeline> check_pipeline(PipelineSpec spec, const std::string& models,
                                              ConfigProblems& problems);

/// What a run would refuse of the files that it reads, writes and listens at: `model` has those of
/// the model. Makes none.
void check_files(const PipelineSpec& spec, const RunOptions& model, ConfigProblems& problems);

/// What will be built, in words, a line each.
std::vector<std::string> plan_of(const CheckedPipeline& pipeline);

}  // namespace penstock
