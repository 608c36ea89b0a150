// SPDX-License-Identifier: Apache-2.0
//
// Outputs of float16 as decoders read them: widened to float32 on the device, between the run and
// the decoder.
#pragma once

#include <vector>

#include "penstock/memory/device.h"
#include "penstock/memory/tensor.h"
#include "penstock/model/manifest.h"

namespace penstock {

/// The manifest that the decoder sees. Raw outputs are told as they are.
Manifest with_widened_outputs(Manifest manifest);

/// Replaces what is float16. Fences of submitted work, also before a failure, go to `in_flight`.
Result<void> widen_outputs(Device& device, std::vector<Tensor>& outputs,
                           std::vector<Fence>& in_flight);

}  // namespace penstock
