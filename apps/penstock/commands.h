// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of `penstock`. Each adds itself to the parser and answers the exit code when it
// was chosen (docs/run.md lists them).
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace penstock {

/// What main() runs when the subcommand was given.
using Command = std::function<int()>;

Command add_run(CLI::App& app);
Command add_check(CLI::App& app);
Command add_ctl(CLI::App& app);
Command add_burst(CLI::App& app);
Command add_doctor(CLI::App& app);
Command add_model(CLI::App& app);
/// The subcommands of `model`; the functions are for add_model to call when they were parsed.
Command add_model_list(CLI::App& model);
Command add_model_remove(CLI::App& model);
Command add_model_prepare(CLI::App& model);
Command add_model_inspect(CLI::App& model);
Command add_model_try(CLI::App& model);
Command add_model_bench(CLI::App& model);

}  // namespace penstock
