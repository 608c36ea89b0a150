// SPDX-License-Identifier: Apache-2.0
//
// The models that there are: prepared ones, and recipes that `penstock model fetch` knows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "penstock/base/error.h"

namespace penstock {

/// models/ of the installation, else of the source tree this program was built from; empty when
/// neither has recipes.
std::filesystem::path recipes_folder();
/// Names in alphabetical order.
std::vector<std::string> recipe_names();
std::vector<std::string> prepared_names(const std::filesystem::path& models);

/// find_model, with messages for who typed the name: what an .onnx file needs, and the names that
/// there are.
Result<std::filesystem::path> find_named_model(const std::string& name_or_path,
                                               const std::filesystem::path& models);

/// "Apache-2.0 (medium)" of a manifest's licence: without the reasons, which `model inspect` tells.
std::string short_licence(const std::string& licence);

}  // namespace penstock
