// SPDX-License-Identifier: Apache-2.0
//
// From an ONNX file to a prepared model (contract M02): what can be told from shapes, names and the
// metadata that exporters write is told, with the reason; what can't is asked for by the flag that
// gives it. Nothing is guessed in silence.
//
//   auto plan = plan_preparation("yolo11n.onnx", {});
//   for (const std::string& note : plan->notes) say(note);   // "family yolov8: output 'output0'
//   [1,84,8400] ..." auto manifest = write_prepared(*plan, models_folder());
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/output_error.h"
#include "penstock/model/manifest.h"

namespace penstock {

/// What the user states; it wins over anything that a file says. Each member is a flag of `penstock
/// model prepare` of the same name.
struct PrepareOptions {
  std::string name{};  ///< Empty: the file's name without extension.
  std::optional<std::string> task{};
  std::optional<std::string> family{};
  std::vector<std::string> outputs{};  ///< Only these of the model's; empty: all.
  std::vector<std::string> labels{};
  std::vector<std::string> keypoints{};
  std::optional<int> width{}, height{};  ///< Pixels, for models that leave them open.
  std::optional<ChannelOrder> order{};
  std::optional<float> scale{};
  std::optional<std::array<float, 3>> mean{}, std{};
  std::optional<Fit> fit{};
  std::optional<float> pad{};
  std::optional<float> threshold{}, iou_threshold{};  ///< 0..1.
  std::optional<ScoreKind> scores{};
  std::optional<int> top_k{};  ///< 1..100.
  bool normalise = false;
  bool class_agnostic = false;
  std::vector<InputConstant> constants{};  ///< For inputs that are not the picture.
  std::string provider{};                  ///< Empty: the CPU's.
  std::vector<std::pair<std::string, std::string>> provider_options{};
  std::vector<std::string> cpu_nodes{};  ///< May run on the CPU with another provider.
  std::string licence{};                 ///< SPDX; empty: the file's own word, else "NOASSERTION".
};

struct Preparation {
  std::filesystem::path file;
  Manifest manifest{};  ///< Without folder, artefact and hashes.
  /// Other files that the model wants, relative to its folder, lexically normal, each once.
  std::vector<std::string> data{};
  /// SHA-256 of the model's bytes that all this was told from, and of `data` by name.
  std::string model_sha256{};
  std::map<std::string, std::string> data_sha256{};
  std::string spdx{}, confidence{};
  std::vector<std::string> notes{};  ///< What was taken from where, one line each.
};

/// What is believed first: an option, a file beside the model (model_info.h), metadata in the
/// model, shapes and what is usual for the family. kUnsupported: no family fits.
/// kInvalidArgument: something only the user knows is missing, and the message names the flags; or
/// two of these contradict each other, and it names both. kCorrupt: the model, or a file beside it.
Result<Preparation> plan_preparation(const std::filesystem::path& onnx,
                                     const PrepareOptions& options);

/// "BGR, (level x 1 - 104) / 57, stretch": what becomes of a picture, for a user to read.
std::string describe_preprocessing(const PreprocessSpec& pre);

/// kInvalidArgument when a model of that name is in `models` already and `replace` is false: to be
/// known before the model is tried.
Result<void> check_place(const Preparation& plan, const std::filesystem::path& models,
                         bool replace);

/// Copies the model and its data into `models`/NAME with their hashes and the manifest; the folder
/// appears, or takes the place of the old one, at once or not at all, also when others prepare the
/// same name. kInvalidArgument when it is there already and `replace` is false; kCorrupt when a
/// file is not the one that was planned; kUnsupported when the file system can't exchange folders.
/// Answers the manifest.
Result<std::filesystem::path, OutputError> write_prepared(const Preparation& plan,
                                                          const std::filesystem::path& models,
                                                          bool replace);

/// Removes the prepared model `name` of `models`, of whatever is left of it; a symbolic link goes,
/// not what it leads to. Who has it open keeps it. kNotFound when there is none of that name, with
/// a manifest or as the name of a broken link; kInvalidArgument when `name` is a path.
Result<void> remove_prepared(const std::string& name, const std::filesystem::path& models);

}  // namespace penstock
