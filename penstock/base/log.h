// SPDX-License-Identifier: Apache-2.0
//
// Logging: one spdlog logger a room, written to stderr. The level comes from set_log_level (the
// command line's --log-level); the library itself never reads the environment.
//
//   log("exec").warn("queue of '{}' is full", name);
#pragma once

#include <spdlog/logger.h>

#include <string>

namespace penstock {

spdlog::logger& log(const std::string& room);
/// "trace", "debug", "info", "warn", "error" or "off"; false when unknown. Default: "warn".
bool set_log_level(const std::string& level);

}  // namespace penstock
