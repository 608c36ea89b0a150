// SPDX-License-Identifier: Apache-2.0
//
// Manifest: a prepared model is a folder with manifest.json beside its artefacts. load() checks
// schema, hash and paths before anything is parsed further (contract M01); docs/manifest.md has the
// format.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/media/preprocessor.h"
#include "penstock/memory/tensor.h"

namespace penstock {

struct Manifest {
  int schema = 2;
  std::string name;
  std::filesystem::path folder;    ///< Where manifest.json lies.
  std::filesystem::path artefact;  ///< Absolute, inside `folder`, hash already checked.
  std::string artefact_sha256;     ///< The engine checks the bytes that it loads once more.
  std::vector<std::string> data;   ///< Other hashed files, relative to `folder` (external data).
  std::string engine;              ///< "onnxruntime".
  std::string provider = "CPUExecutionProvider";
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::string task;    ///< "detection".
  std::string family;  ///< Output decoder, e.g. "nanodet".
  std::vector<std::string> labels;
  PreprocessSpec preprocess;
  float threshold = 0.4f;
  float iou_threshold = 0.5f;
  std::string licence;                  ///< Licence and confidence in it, for the user.
  std::vector<std::string> weaknesses;  ///< Known ones of the model, for the user.
};

/// `path` is a manifest.json or a folder holding one; names go through find_model first. Messages
/// name the file and the field ("preprocess.mean[1]").
Result<Manifest> load_manifest(const std::filesystem::path& path);

/// Folder of prepared models: `explicit_folder` when not empty, else
/// $XDG_DATA_HOME/penstock/models or ~/.local/share/penstock/models.
std::filesystem::path models_folder(const std::filesystem::path& explicit_folder = {});
/// Turns --model's NAME|MANIFEST into a manifest path; kNotFound names `penstock model fetch`.
Result<std::filesystem::path> find_model(const std::string& name_or_path,
                                         const std::filesystem::path& models);

/// Lower-case hex SHA-256 of a file.
Result<std::string> sha256_file(const std::filesystem::path& path);

}  // namespace penstock
