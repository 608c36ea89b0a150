// SPDX-License-Identifier: Apache-2.0
//
// How many cores this process may use, which a container, taskset or a service manager makes fewer
// than the machine has. To choose a number of threads by; both limits may change while they run.
#pragma once

#include <filesystem>
#include <optional>

namespace penstock {

/// CPU time that control groups (cgroup v2, `cpu.max`) grant this process, in cores, rounded up:
/// the least of its own group's and of all groups above that it can see. Nothing where none limits
/// it, or where the kernel does not say. `root` is the folder that has /proc and /sys, for tests.
std::optional<int> granted_cores(const std::filesystem::path& root = "/");

/// CPUs that the calling thread may run on, or granted_cores() where these are fewer; at least 1.
int usable_cores(const std::filesystem::path& root = "/");

}  // namespace penstock
