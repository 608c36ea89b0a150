// SPDX-License-Identifier: Apache-2.0
//
// The report of a run of several sources: how each went, and how long its frames were where. As
// HTML or JSON, as run_report.h has it of one.
#pragma once

#include <string>

#include "penstock/pipeline/pipeline_job.h"

namespace penstock {

std::string to_html(const PipelineOutcome& outcome, const std::string& model);
std::string to_json(const PipelineOutcome& outcome, const std::string& model);

}  // namespace penstock
