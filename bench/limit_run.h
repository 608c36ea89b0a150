// SPDX-License-Identifier: Apache-2.0
//
// What no pipeline can beat: raw ONNX Runtime beside as many decoders as there are streams, whose
// frames nobody looks at. In this process.
#pragma once

#include "bench/contenders.h"
#include "penstock/base/error.h"

namespace penstock::bench {

/// A run for each frame of each of `streams` decoders of the task's clip. kCorrupt: a clip ends
/// before the task's frames, which would be an easier limit.
Result<Effort> perform_limit(const Task& task, int streams);

}  // namespace penstock::bench
