// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a pipeline's YAML, and as the JSON of a source that is added: read, or refused with
// problems that have a place, never a crash and never more than the limits.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "penstock/pipeline/config_json.h"
#include "penstock/pipeline/config_yaml.h"
#include "penstock/pipeline/pipeline_schema.h"

namespace {

using namespace penstock;

void require(bool kept) {
  if (!kept) std::abort();
}

/// What was accepted keeps the promises that a run is built on.
void check(const PipelineSource& source) {
  require(valid_source_name(source.name));
  require(source.kind == PipelineSourceKind::kTest || !source.address.empty());
  require(source.address.find('\0') == std::string::npos);
  require(!source.loop || source.kind == PipelineSourceKind::kFile);
  require(source.test.width % 2 == 0 && source.test.height % 2 == 0 && source.test.rate > 0);
}

void check(const ConfigProblems& problems) {
  require(problems.size() <= kMaxConfigProblems);
  for (const ConfigProblem& problem : problems) {
    require(!problem.what.empty());
    require(!to_string(problem, "p").empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ConfigProblems problems;
  const auto spec = read_pipeline(text, problems);
  require(spec || !problems.empty());
  check(problems);
  if (spec && problems.empty()) {
    require(!spec->model.empty());
    require(spec->sources.size() <= kMaxPipelineSources);
    require(spec->stall_after > Nanoseconds::zero());
    for (const PipelineSource& source : spec->sources) check(source);
  }
  ConfigProblems json_problems;
  const auto node = parse_json(text, json_problems);
  require(node || !json_problems.empty());
  if (node) {
    const PipelineSource source = read_source(*node, "source", json_problems);
    if (json_problems.empty()) check(source);
  }
  check(json_problems);
  return 0;
}
