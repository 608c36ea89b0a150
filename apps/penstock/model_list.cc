// SPDX-License-Identifier: Apache-2.0
//
// penstock model list: the prepared models, and the recipes that can be fetched. Says of a broken
// model what is wrong with it, a wrong hash too. penstock model remove: away with one.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/penstock/commands.h"
#include "apps/penstock/messages.h"
#include "apps/penstock/model_names.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/json_writer.h"
#include "penstock/base/str_format.h"
#include "penstock/model/manifest.h"
#include "penstock/model/preparation.h"

namespace penstock {
namespace {

struct Flags {
  std::string models;
  std::string name;  ///< To be removed.
  bool json = false;
};

int list_as_json(const std::filesystem::path& folder, const std::vector<std::string>& prepared) {
  JsonWriter out;
  out.open('{');
  out.key("folder").string(folder.string());
  out.key("prepared").open('[');
  for (const std::string& name : prepared) {
    const auto manifest = load_manifest(folder / name);
    out.open('{');
    out.key("name").string(name);
    if (manifest) {
      out.key("task").string(manifest->task);
      out.key("family").string(manifest->family);
      out.key("licence").string(manifest->licence);
    } else {
      out.key("broken").string(manifest.error().message());
    }
    out.close('}');
  }
  out.close(']');
  out.key("recipes").open('[');
  for (const std::string& name : recipe_names()) out.string(name);
  out.close(']');
  out.close('}');
  std::printf("%s", out.take().c_str());
  return kExitOk;
}

int list(const Flags& flags) {
  const auto folder = models_folder(flags.models);
  const auto prepared = prepared_names(folder);
  if (flags.json) return list_as_json(folder, prepared);
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

int remove(const Flags& flags) {
  const auto folder = models_folder(flags.models);
  if (auto removed = remove_prepared(flags.name, folder); !removed) return report(removed.error());
  say(str_format("removed {}", (folder / flags.name).string()));
  return kExitOk;
}

}  // namespace

Command add_model_list(CLI::App& model) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = model.add_subcommand(
      "list", "Say which models are prepared (name, task, family, licence) or can be fetched");
  command->add_option("--models", flags->models, "Folder of prepared models");
  command->add_flag("--json", flags->json, "As JSON");
  return [flags] { return list(*flags); };
}

Command add_model_remove(CLI::App& model) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = model.add_subcommand("remove", "Remove a prepared model");
  command->add_option("name", flags->name, "Its name, as `list` says it")->required();
  command->add_option("--models", flags->models, "Folder of prepared models");
  return [flags] { return remove(*flags); };
}

}  // namespace penstock
