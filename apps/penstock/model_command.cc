// SPDX-License-Identifier: Apache-2.0
//
// penstock model fetch NAME: hands over to the recipes in models/, which are Python because they
// convert models.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <format>
#include <memory>
#include <string>
#include <vector>

#include "apps/penstock/commands.h"
#include "penstock/base/exit_code.h"
#include "penstock/model/manifest.h"

namespace penstock {
namespace {

struct Flags {
  std::string name;
  std::string models;
  std::string cache;
};

/// models/fetch.py of the installation, else of the source tree this program was built from.
std::filesystem::path fetch_script() {
  std::error_code ec;
  for (const char* folder : {PENSTOCK_RECIPES_INSTALLED, PENSTOCK_RECIPES_SOURCE}) {
    std::filesystem::path script = std::filesystem::path(folder) / "fetch.py";
    if (std::filesystem::exists(script, ec)) return script;
  }
  return {};
}

int fetch(const Flags& flags) {
  const std::filesystem::path script = fetch_script();
  if (script.empty()) {
    std::fprintf(stderr, "penstock: the model recipes (models/fetch.py) are not installed in %s\n",
                 PENSTOCK_RECIPES_INSTALLED);
    return kExitUnavailable;
  }
  std::vector<std::string> words{"python3", script.string(), flags.name, "--models",
                                 models_folder(flags.models).string()};
  if (!flags.cache.empty()) words.insert(words.end(), {"--cache", flags.cache});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  // The recipe's output and exit code are this command's own.
  ::execvp(argv[0], argv.data());
  std::fprintf(stderr, "penstock: cannot start python3, which the model recipes need: %s\n",
               std::strerror(errno));
  return kExitUnavailable;
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
  return [flags] { return fetch(*flags); };
}

}  // namespace penstock
