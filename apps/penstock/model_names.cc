// SPDX-License-Identifier: Apache-2.0
#include "apps/penstock/model_names.h"

#include <algorithm>
#include <system_error>

#include "penstock/base/str_format.h"
#include "penstock/model/manifest.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> folders_with(const fs::path& folder, const char* file) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const std::string name = it->path().filename().string();
    if (!name.starts_with('.') && fs::exists(it->path() / file, ignored)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

/// "a, b and 3 more", or "none".
std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    text += str_format("{}{}", i == 0 ? "" : ", ", names[i]);
  }
  if (names.size() > kMost) text += str_format(" and {} more", names.size() - kMost);
  return names.empty() ? "none" : text;
}

}  // namespace

fs::path recipes_folder() {
  std::error_code error;
  // An installation may have been moved, or made with another prefix than the build knows.
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& folder :
       {program.parent_path() / "../share/penstock/models", fs::path(PENSTOCK_RECIPES_INSTALLED),
        fs::path(PENSTOCK_RECIPES_SOURCE)}) {
    if (fs::exists(folder / "fetch.py", error)) return folder.lexically_normal();
  }
  return {};
}

std::vector<std::string> recipe_names() {
  const fs::path folder = recipes_folder();
  return folder.empty() ? std::vector<std::string>() : folders_with(folder, "recipe.json");
}

std::vector<std::string> prepared_names(const fs::path& models) {
  return folders_with(models, "manifest.json");
}

std::string short_licence(const std::string& licence) {
  constexpr std::size_t kLongest = 60;
  const std::size_t confidence = licence.find(" (");
  const std::size_t reasons =
      confidence == licence.npos ? licence.npos : licence.find(": ", confidence);
  if (reasons != licence.npos) return short_licence(licence.substr(0, reasons) + ")");
  if (licence.size() <= kLongest) return licence;
  std::size_t cut = kLongest;
  while (cut > 0 && (static_cast<unsigned char>(licence[cut]) & 0xC0) == 0x80) --cut;
  return licence.substr(0, cut) + "...";
}

Result<fs::path> find_named_model(const std::string& name_or_path, const fs::path& models) {
  const fs::path given(name_or_path);
  auto found = find_model(name_or_path, models);
  if (given.extension() == ".onnx" && (!found || *found == given)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("'{0}' is an ONNX file, not a prepared model: prepare it first with "
                           "`penstock model prepare {0}`",
                           name_or_path));
  }
  if (found || found.error().kind() != ErrorKind::kNotFound || name_or_path.contains('/')) {
    return found;
  }
  const auto recipes = recipe_names();
  const bool is_recipe = std::ranges::contains(recipes, name_or_path);
  return fail(
      ErrorKind::kNotFound,
      str_format("no model '{}' in '{}' (prepared: {}); {}", name_or_path, models.string(),
                 list_of(prepared_names(models)),
                 is_recipe ? str_format("get it with `penstock model fetch {}`", name_or_path)
                           : str_format("`penstock model fetch` knows: {}", list_of(recipes))));
}

}  // namespace penstock
