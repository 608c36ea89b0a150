// SPDX-License-Identifier: Apache-2.0
//
// Runs of several sources, from `penstock run p.yaml` or several --source flags.
#pragma once

#include "apps/penstock/run_flags.h"

namespace penstock {

/// The exit code (docs/run.md).
int run_pipeline_file(const RunFlags& flags);
int run_several(const RunFlags& flags);

}  // namespace penstock
