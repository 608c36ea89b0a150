// SPDX-License-Identifier: Apache-2.0
//
// `--out KIND=PATH` of a run, before any file is touched.
#pragma once

#include <string_view>

#include "penstock/base/error.h"
#include "penstock/pipeline/run_job.h"

namespace penstock {

/// Takes "video=F", "json=F" or "report=F" into its place of `options`; "-" is stdout. One thread.
/// kInvalidArgument names the flag: no such kind, no path, a kind that is given twice, several
/// outputs in one value, and a video that would be no MP4 file.
Result<void> take_output(std::string_view text, RunOptions& options);

}  // namespace penstock
