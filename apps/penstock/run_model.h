// SPDX-License-Identifier: Apache-2.0
//
// What every way to run a model on video has in common: RunOptions from a model, the readers of
// what peninfer leaves, and the exit code.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "apps/penstock/engine_flags.h"
#include "penstock/base/error.h"
#include "penstock/model/manifest.h"
#include "penstock/pipeline/run_job.h"

namespace penstock {

/// A prepared model that was found.
struct RunModel {
  std::filesystem::path path;  ///< Of its manifest.
  Manifest manifest;
};

/// By name or path.
Result<RunModel> find_run_model(const std::string& name_or_path, const std::string& models);

/// What of the options is the model's, and how its frames are read.
void set_model(RunOptions& options, const RunModel& model, const EngineFlags& engine);

/// The model's files are read, so that none may be an output.
void add_model_files(RunOptions& options, const RunModel& model);

/// kExhausted when too few files may be open at once.
Result<void> check_descriptors();

/// docs/run.md; `stopped` by a signal.
int run_exit_code(const std::optional<Error>& error, RunPart failed, bool stopped);

}  // namespace penstock
