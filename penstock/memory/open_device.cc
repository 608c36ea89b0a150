// SPDX-License-Identifier: Apache-2.0

#include "penstock/base/str_format.h"
#include "penstock/memory/cpu/cpu_device.h"
#include "penstock/memory/device.h"

namespace penstock {

Result<DevicePtr> open_device(DeviceId id, const DeviceOptions& options) {
  switch (id.kind) {
    case DeviceKind::kCpu:
      return make_cpu_device(options);
    case DeviceKind::kSim:
      return fail(ErrorKind::kUnsupported, "device 'sim' exists in tests only; use cpu");
    case DeviceKind::kCuda:
    case DeviceKind::kHip:
      return fail(ErrorKind::kUnsupported,
                  str_format("device '{}' is not in this build; use cpu", to_string(id)));
  }
  return fail(ErrorKind::kInternal, "a device kind without a name");
}

}  // namespace penstock
