// SPDX-License-Identifier: Apache-2.0
//
// DeviceId names where memory lives and work runs: "cpu", "sim" (tests only), "cuda:1", "hip:0".
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "penstock/base/error.h"

namespace penstock {

enum class DeviceKind { kCpu, kSim, kCuda, kHip };

struct DeviceId {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;
  auto operator<=>(const DeviceId&) const = default;
};

/// "cpu", "cuda", "cuda:1"... kInvalidArgument for anything else.
Result<DeviceId> parse_device_id(std::string_view text);
std::string to_string(DeviceId id);

}  // namespace penstock
