// SPDX-License-Identifier: Apache-2.0
//
// Manifest: a prepared model is a folder with manifest.json beside its artefacts. load() checks
// schema, hash and paths before anything is parsed further (contract M01); docs/manifest.md has the
// format.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/media/preprocessor.h"
#include "penstock/memory/tensor.h"

namespace penstock {

/// ONNX Runtime's name of the execution provider that it always has.
inline constexpr std::string_view kCpuProvider = "CPUExecutionProvider";

inline constexpr std::array<std::string_view, 9> kTasks{
    "detection",       "instance-segmentation", "pose",      "oriented-detection",
    "classification",  "semantic-segmentation", "embedding", "raw",
    "text-recognition"};

inline constexpr int kMaxTopK = 100;
inline constexpr float kMaxUnclipRatio = 10;
inline constexpr std::size_t kMaxCpuNodes = 4096;
/// So that 300 objects' keypoints stay a compact record (contract A01: 256 KiB).
inline constexpr std::size_t kMaxKeypoints = 72;

/// What a model's class scores are: softmax makes probabilities of logits, once.
enum class ScoreKind { kProbabilities, kLogits };

/// An input that gets the same numbers in every run, such as the picture's size that some exports
/// of RT-DETR ask for.
struct InputConstant {
  std::string input;
  /// In the input's order; of one batch item when its first dimension is open.
  std::vector<double> values;
};

/// A file of weights beside the model or below.
struct ManifestData {
  std::string path;      ///< Relative to the manifest's folder, lexically normal.
  std::string sha256{};  ///< Of the bytes that the engine gets; empty: not checked.
};

struct Manifest {
  int schema = 2;
  std::string name;
  std::filesystem::path folder;    ///< Where manifest.json lies.
  std::filesystem::path artefact;  ///< Absolute, inside `folder`, hash already checked.
  std::string artefact_sha256;     ///< The engine checks the bytes that it loads once more.
  std::vector<ManifestData> data;  ///< Other files, hash already checked (external data).
  std::string engine;              ///< "onnxruntime".
  std::string provider{kCpuProvider};
  std::vector<std::pair<std::string, std::string>> provider_options;  ///< As it documents them.
  /// Nodes that may run on the CPU where the provider is another, as ONNX Runtime names them; at
  /// most kMaxCpuNodes.
  std::vector<std::string> cpu_nodes;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::vector<InputConstant> constants;  ///< Of inputs that are not the picture.
  std::string task;                      ///< One of kTasks.
  std::string family;                    ///< Output decoder, e.g. "nanodet".
  std::vector<std::string> labels;
  PreprocessSpec preprocess;
  float threshold = 0.4f;
  float iou_threshold = 0.5f;
  bool class_agnostic = false;                   ///< NMS over all classes at once.
  ScoreKind scores = ScoreKind::kProbabilities;  ///< Of classes and of characters.
  int top_k = 5;                                 ///< Classes that are told, 1..100.
  std::vector<std::string> keypoints;            ///< Their names in order; pose only.
  /// Of the family db-text: what makes a pixel one of a text's, 0..1, and how far a text's box
  /// grows beyond such pixels, as a multiple of its area over its perimeter, 0..kMaxUnclipRatio.
  float pixel_threshold = 0.3f;
  float unclip_ratio = 1.5f;
  bool normalise = false;               ///< Embeddings are divided by their length.
  std::string licence;                  ///< Licence and confidence in it, for the user.
  std::vector<std::string> weaknesses;  ///< Known ones of the model, for the user.
};

/// `path` is a manifest.json or a folder holding one; names go through find_model first. Messages
/// name the file and the field ("preprocess.mean[1]").
Result<Manifest> load_manifest(const std::filesystem::path& path);

/// Folder of prepared models: `explicit_folder` when not empty, else
/// $XDG_DATA_HOME/penstock/models or ~/.local/share/penstock/models.
std::filesystem::path models_folder(const std::filesystem::path& explicit_folder = {});
/// Turns --model's NAME|MANIFEST into a manifest path; kNotFound names `penstock model list`.
Result<std::filesystem::path> find_model(const std::string& name_or_path,
                                         const std::filesystem::path& models);

/// Lower-case hex SHA-256 of a file.
Result<std::string> sha256_file(const std::filesystem::path& path);

}  // namespace penstock
