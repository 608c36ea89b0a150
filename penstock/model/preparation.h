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
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/error.h"
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
  std::string licence{};  ///< SPDX; empty: the file's own word, else "NOASSERTION".
};

struct Preparation {
  std::filesystem::path file;
  Manifest manifest{};              ///< Without folder, artefact and hashes.
  std::vector<std::string> data{};  ///< Other files that the model wants, relative to its folder.
  std::string spdx{}, confidence{};
  std::vector<std::string> notes{};  ///< What was taken from where, one line each.
};

/// What is believed first: an option, a file beside the model (model_info.h), metadata in the
/// model, shapes and what is usual for the family. kUnsupported: no family fits, or one fits but
/// something only the user knows is missing; the message names the flag. kInvalidArgument: two of
/// these contradict each other; the message names both. kCorrupt: the model, or a file beside it.
Result<Preparation> plan_preparation(const std::filesystem::path& onnx,
                                     const PrepareOptions& options);

/// Copies the model and its data into `models`/NAME with their hashes and the manifest; the folder
/// appears at once or not at all. kInvalidArgument when it is there already and `replace` is false.
/// Answers the manifest.
Result<std::filesystem::path> write_prepared(const Preparation& plan,
                                             const std::filesystem::path& models, bool replace);

}  // namespace penstock
