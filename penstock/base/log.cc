// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/log.h"

#include <spdlog/sinks/ansicolor_sink.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace penstock {
namespace {

// Our own loggers instead of spdlog's global registry: a host application (or another plugin in the
// same GStreamer process) may use spdlog too, and its set_level or drop_all must not reach ours.
struct Loggers {
  std::mutex mutex;
  spdlog::level::level_enum level = spdlog::level::warn;
  spdlog::sink_ptr sink = std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>();
  std::map<std::string, std::unique_ptr<spdlog::logger>> by_room;
};

Loggers& loggers() {
  // Never destroyed: threads may still log while the process exits.
  static Loggers& instance = *new Loggers;
  return instance;
}

std::optional<spdlog::level::level_enum> parse_level(const std::string& level) {
  static constexpr std::pair<const char*, spdlog::level::level_enum> kLevels[] = {
      {"trace", spdlog::level::trace}, {"debug", spdlog::level::debug},
      {"info", spdlog::level::info},   {"warn", spdlog::level::warn},
      {"error", spdlog::level::err},   {"off", spdlog::level::off},
  };
  for (const auto& [name, value] : kLevels) {
    if (level == name) return value;
  }
  return std::nullopt;
}

}  // namespace

spdlog::logger& log(const std::string& room) {
  Loggers& all = loggers();
  const std::lock_guard guard(all.mutex);
  std::unique_ptr<spdlog::logger>& logger = all.by_room[room];
  if (!logger) {
    logger = std::make_unique<spdlog::logger>(room, all.sink);
    logger->set_level(all.level);
    logger->flush_on(spdlog::level::warn);
  }
  return *logger;
}

bool set_log_level(const std::string& level) {
  const auto value = parse_level(level);
  if (!value) return false;
  Loggers& all = loggers();
  const std::lock_guard guard(all.mutex);
  all.level = *value;
  for (auto& [room, logger] : all.by_room) logger->set_level(*value);
  return true;
}

}  // namespace penstock
