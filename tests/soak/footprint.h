// SPDX-License-Identifier: Apache-2.0
//
// What a soak test watches of its own process.
#pragma once

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace penstock {

struct Footprint {
  long rss_kib = 0;
  long fds = 0;
  long threads = 0;
};

inline Footprint footprint() {
  Footprint now;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) now.rss_kib = std::atol(line.c_str() + 6);
    if (line.starts_with("Threads:")) now.threads = std::atol(line.c_str() + 8);
  }
  now.fds = std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                          std::filesystem::directory_iterator());
  return now;
}

/// For docs/soak.md: 2026-11-30.
inline std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

}  // namespace penstock
