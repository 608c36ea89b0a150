// SPDX-License-Identifier: Apache-2.0
//
// penstock model list: the prepared models, and the recipes that can be fetched. Says of a broken
// model what is wrong with it, a wrong hash too.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "apps/penstock/commands.h"
#include "apps/penstock/messages.h"
#include "apps/penstock/model_names.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/str_format.h"
#include "penstock/model/manifest.h"

namespace penstock {
namespace {

int list(const std::string& explicit_folder) {
  const auto folder = models_folder(explicit_folder);
  const auto prepared = prepared_names(folder);
  say(str_format("prepared, in {}:{}", folder.string(), prepared.empty() ? " none" : ""));
  for (const std::string& name : prepared) {
    const auto manifest = load_manifest(folder / name);
    say(manifest ? str_format("  {:<24} {:<22} {:<20} {}", name, manifest->task, manifest->family,
                              short_licence(manifest->licence))
                 : str_format("  {:<24} broken: {}", name, manifest.error().message()));
  }
  auto recipes = recipe_names();
  std::erase_if(recipes,
                [&](const std::string& name) { return std::ranges::contains(prepared, name); });
  say(str_format("penstock model fetch NAME knows{}:{}", prepared.empty() ? "" : ", beside these",
                 recipes.empty() ? " none" : ""));
  for (const std::string& name : recipes) say("  " + name);
  return kExitOk;
}

}  // namespace

Command add_model_list(CLI::App& model) {
  auto folder = std::make_shared<std::string>();
  CLI::App* command = model.add_subcommand(
      "list", "Say which models are prepared (name, task, family, licence) or can be fetched");
  command->add_option("--models", *folder, "Folder of prepared models");
  return [folder] { return list(*folder); };
}

}  // namespace penstock
