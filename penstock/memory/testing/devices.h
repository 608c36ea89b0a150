// SPDX-License-Identifier: Apache-2.0
//
// The devices that a conformance suite runs on in this build.
//
//   class V10 : public testing::TestWithParam<TestDevice> {};
//   INSTANTIATE_TEST_SUITE_P(cpu, V10, testing::Values(cpu_test_device()));
//   INSTANTIATE_TEST_SUITE_P(sim, V10, testing::Values(sim_test_device()));
#pragma once

#include <ostream>

#include "penstock/memory/cpu/cpu_device.h"
#include "penstock/memory/sim/sim_device.h"

namespace penstock {

struct TestDevice {
  const char* name;
  DevicePtr (*open)(const DeviceOptions& options);
};

inline void PrintTo(const TestDevice& device, std::ostream* out) { *out << device.name; }

inline TestDevice cpu_test_device() {
  return {"cpu", [](const DeviceOptions& options) { return make_cpu_device(options); }};
}

inline TestDevice sim_test_device() {
  return {"sim", [](const DeviceOptions& options) -> DevicePtr {
            return SimDevice::create({.device = options});
          }};
}

}  // namespace penstock
