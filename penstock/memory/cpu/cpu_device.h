// SPDX-License-Identifier: Apache-2.0
//
// The `cpu` device: host memory, jobs run on the calling thread before submit() returns. When
// fences of `after` have not passed yet, submit() waits for them.
#pragma once

#include "penstock/memory/device.h"

namespace penstock {

DevicePtr make_cpu_device(const DeviceOptions& options = {});

}  // namespace penstock
