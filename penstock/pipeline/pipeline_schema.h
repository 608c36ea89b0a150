// SPDX-License-Identifier: Apache-2.0
//
// The schema of pipelines (docs/pipelines.md): from text to a PipelineSpec, or everything that is
// wrong with it. It opens no file but the one it is given and knows no model and no element.
//
//   ConfigProblems problems;
//   auto spec = read_pipeline(text, problems);
//   for (const ConfigProblem& p : problems) std::puts(to_string(p, "p.yaml").c_str());
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "penstock/base/error.h"
#include "penstock/pipeline/config_node.h"
#include "penstock/pipeline/pipeline_spec.h"

namespace penstock {

/// The spec as far as it could be read; nothing when the text is no YAML map. It may be used only
/// when there are no problems. Any thread.
std::optional<PipelineSpec> read_pipeline(std::string_view text, ConfigProblems& problems);

/// One source, of the YAML's list or of the control socket. `path` is its own, "sources[2]".
PipelineSource read_source(const ConfigNode& node, const std::string& path,
                           ConfigProblems& problems);

/// read_small_file() with at most kMaxConfigBytes: no pipe, no device.
Result<std::string> read_config_file(const std::filesystem::path& path);

}  // namespace penstock
