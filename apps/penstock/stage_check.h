// SPDX-License-Identifier: Apache-2.0
//
// What `penstock check` says of the elements of a pipeline and of its further models.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "apps/penstock/engine_flags.h"
#include "apps/penstock/run_model.h"
#include "penstock/pipeline/config_node.h"
#include "penstock/pipeline/element_settings.h"
#include "penstock/pipeline/pipeline_spec.h"

namespace penstock {

/// A problem where `outcome` is none of success.
void note_problem(ConfigProblems& problems, TextPlace place, const std::string& where,
                  const Result<void>& outcome);

/// Every setting by itself, so that each that is not taken is told at its place.
void check_settings(const std::string& factory, const std::vector<Setting>& settings,
                    const std::string& path, ConfigProblems& problems);

/// The stages' models; fewer than there are stages only with problems. `first` is nothing when the
/// first model was not found, which is a problem already.
std::vector<RunModel> check_stages(const PipelineSpec& spec, const std::optional<RunModel>& first,
                                   const std::string& models, ConfigProblems& problems);

/// The labels that objects of this pipeline can have; empty when a model says none of its.
std::vector<std::string> object_labels(const PipelineSpec& spec, const RunModel& first,
                                       const std::vector<RunModel>& stages);

/// The peninfer of stage `number`.
ElementSettings stage_settings(const PipelineSpec& spec, std::size_t number, const RunModel& model,
                               const EngineFlags& engine);

/// "stage color (classification): looks at each plate, again after 10 frames".
std::string plan_of(const StageSpec& stage, const Manifest& manifest);

}  // namespace penstock
