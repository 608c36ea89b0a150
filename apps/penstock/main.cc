// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "apps/penstock/commands.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/log.h"

int main(int argc, char** argv) {
  CLI::App app("Penstock: video analytics that account for every copy", "penstock");
  app.set_version_flag("--version", "penstock " PENSTOCK_VERSION);
  app.require_subcommand(1);
  std::string level = "warn";
  app.add_option("--log-level", level, "trace, debug, info, warn, error or off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));

  std::vector<std::pair<CLI::App*, penstock::Command>> commands;
  const auto add = [&](const char* name, auto make) {
    penstock::Command command = make(app);
    commands.emplace_back(app.get_subcommand(name), std::move(command));
  };
  add("run", penstock::add_run);
  add("doctor", penstock::add_doctor);
  add("model", penstock::add_model);

  try {
    app.parse(argc, argv);
    penstock::set_log_level(level);
    for (const auto& [subcommand, command] : commands) {
      if (subcommand->parsed()) return command();
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? penstock::kExitOk : penstock::kExitUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "penstock: internal error: %s\n", error.what());
    return penstock::kExitSoftware;
  }
  return penstock::kExitUsage;
}
