// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/usable_cores.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace penstock {
namespace {

namespace fs = std::filesystem;

int affine_cores() {
  // The kernel refuses a mask smaller than its own; no machine has more CPUs than the last.
  for (int cpus = 1024; cpus <= (1 << 20); cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(cpus));
    if (set == nullptr) break;
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    const bool known = sched_getaffinity(0, size, set) == 0;
    const bool too_small = !known && errno == EINVAL;
    const int count = known ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (known) return std::max(count, 1);
    if (!too_small) break;
  }
  return 1;
}

/// This process's group of the unified hierarchy, as "/system.slice/penstock.service".
std::string own_group(const fs::path& root) {
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    constexpr std::string_view kUnified = "0::";
    if (line.starts_with(kUnified)) return line.substr(kUnified.size());
  }
  return "";
}

/// "QUOTA PERIOD", both in microseconds, in cores; nothing for "max PERIOD", or no such file.
std::optional<int> limit_of(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  std::int64_t quota = 0, period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  const std::int64_t cores = quota / period + (quota % period != 0 ? 1 : 0);
  return static_cast<int>(std::min<std::int64_t>(cores, std::numeric_limits<int>::max()));
}

}  // namespace

std::optional<int> granted_cores(const fs::path& root) {
  const fs::path top = root / "sys/fs/cgroup";
  std::optional<int> least = limit_of(top);
  fs::path group = top;
  // In a container the top may be a group of its own, whose limit it shows itself; what lies
  // outside of it is then given as "/../..", and can't be seen.
  for (const fs::path& name : fs::path(own_group(root)).relative_path()) {
    if (name == "..") break;
    group /= name;
    const auto limit = limit_of(group);
    if (limit && (!least || *limit < *least)) least = limit;
  }
  return least;
}

int usable_cores(const fs::path& root) {
  const int cores = affine_cores();
  return std::min(cores, granted_cores(root).value_or(cores));
}

}  // namespace penstock
