// SPDX-License-Identifier: Apache-2.0
//
// penstock model fetch NAME: hands over to the recipes in models/, which are Python because they
// convert models. penstock model compare MODEL: the engine's results beside stored ones.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/penstock/commands.h"
#include "apps/penstock/engine_flags.h"
#include "apps/penstock/messages.h"
#include "apps/penstock/model_names.h"
#include "apps/penstock/number_flags.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/str_format.h"
#include "penstock/model/manifest.h"
#include "penstock/model/model_comparison.h"

namespace penstock {
namespace {

struct Flags {
  std::string name;
  std::string models;
  std::string cache;
};

int fetch(const Flags& flags) {
  const std::filesystem::path script = recipes_folder() / "fetch.py";
  if (!script.has_parent_path()) {
    std::fprintf(stderr, "penstock: the model recipes (models/fetch.py) are not installed in %s\n",
                 PENSTOCK_RECIPES_INSTALLED);
    return kExitUnavailable;
  }
  std::vector<std::string> words{"python3", script.string(), flags.name, "--models",
                                 models_folder(flags.models).string()};
  std::error_code ec;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ec);
  if (!ec) words.insert(words.end(), {"--program", self.string()});
  if (!flags.cache.empty()) words.insert(words.end(), {"--cache", flags.cache});
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  // The recipe's output and exit code are this command's own.
  ::execvp(argv[0], argv.data());
  std::fprintf(stderr, "penstock: cannot start python3, which the model recipes need: %s\n",
               std::strerror(errno));
  return kExitUnavailable;
}

struct CompareFlags {
  std::string model;
  std::string models;
  std::string reference;
  EngineFlags engine;
  double tolerance = 1e-4;
};

int compare(const CompareFlags& flags) {
  auto path = find_named_model(flags.model, models_folder(flags.models));
  if (!path) return report(path.error());
  auto manifest = load_manifest(*path);
  if (!manifest) return report(manifest.error());
  auto differences = compare_with_reference(
      *manifest, flags.reference,
      {.engine_library = flags.engine.library, .provider_library = flags.engine.provider_library});
  if (!differences) return report(differences.error());
  int code = kExitOk;
  for (const OutputDifference& difference : *differences) {
    const double allowed = flags.tolerance * std::max(1.0, difference.scale);
    say(str_format("{}: largest difference {:.3g} (allowed {:.3g})", difference.output,
                   difference.largest, allowed));
    if (!(difference.largest <= allowed)) code = kExitData;
  }
  if (code != kExitOk) {
    return report(
        Error(ErrorKind::kCorrupt, str_format("model '{}' differs from the reference in '{}'",
                                              manifest->name, flags.reference)));
  }
  return code;
}

}  // namespace

Command add_model(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* model = app.add_subcommand("model", "Prepare models");
  model->require_subcommand(1);
  CLI::App* fetch_command = model->add_subcommand(
      "fetch", "Download, check and convert a model by its recipe; prints its licence");
  fetch_command->add_option("name", flags->name, "The recipe, e.g. nanodet")->required();
  fetch_command->add_option("--models", flags->models, "Folder for prepared models");
  fetch_command->add_option("--cache", flags->cache, "Folder for downloads");
  auto compared = std::make_shared<CompareFlags>();
  CLI::App* compare_command = model->add_subcommand(
      "compare", "Run a prepared model on stored inputs and compare its outputs with stored ones");
  compare_command->add_option("model", compared->model, "Name, folder or manifest")->required();
  compare_command->add_option("--models", compared->models, "Folder of prepared models");
  compare_command
      ->add_option("--reference", compared->reference,
                   "Folder with in.NAME.npy and out.NAME.npy, float32, for every input and output")
      ->required();
  compare_command
      ->add_option("--tolerance", compared->tolerance,
                   "Allowed difference, times an output's largest value where that is above 1")
      ->check(finite_number(0))
      ->capture_default_str();
  add_engine_flags(*compare_command, compared->engine);
  std::vector<std::pair<CLI::App*, Command>> others;
  const auto add = [&](const char* name, const Command& command) {
    others.emplace_back(model->get_subcommand(name), command);
  };
  add("list", add_model_list(*model));
  add("remove", add_model_remove(*model));
  add("prepare", add_model_prepare(*model));
  add("inspect", add_model_inspect(*model));
  add("try", add_model_try(*model));
  add("bench", add_model_bench(*model));
  return [flags, compared, compare_command, others] {
    for (const auto& [subcommand, command] : others) {
      if (subcommand->parsed()) return command();
    }
    return compare_command->parsed() ? compare(*compared) : fetch(*flags);
  };
}

}  // namespace penstock
