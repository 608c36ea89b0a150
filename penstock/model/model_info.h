// SPDX-License-Identifier: Apache-2.0
//
// ModelInfo: what other tools write about a model, beside it or into its metadata, as far as
// preparing it can use it: OpenVINO's and DL Streamer's `model_info`, as JSON or as entries of the
// ONNX metadata, and GStreamer's `.modelinfo` key file. Both are input from outside: at most 1 MiB,
// every error names the key or the line.
//
//   auto said = find_model_info("yolo11n.onnx", summary.metadata);
//   for (const ModelInfo& info : *said) say(info.source);   // "yolo11n.onnx.modelinfo"
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/media/geometry.h"
#include "penstock/media/preprocessor.h"
#include "penstock/memory/tensor.h"
#include "penstock/model/manifest.h"

namespace penstock {

inline constexpr std::size_t kMaxModelInfoBytes = std::size_t{1} << 20;

/// One tensor of a `.modelinfo` file.
struct ModelInfoTensor {
  std::string name{};
  std::optional<bool> is_input{};    ///< Nothing: the file does not say.
  std::string id{};                  ///< Of the tensor-id registry, e.g. "yolo-v8-out".
  std::optional<DataType> type{};    ///< Nothing: not said, or a type without a word here.
  std::vector<std::int64_t> dims{};  ///< -1: any size. Empty: not said.
  std::string dims_order{};          ///< "row-major", "col-major" or "".
  std::vector<std::array<float, 2>> ranges{};  ///< Least and most of each channel; 1 or 3.
};

struct ModelInfo {
  std::string source{};      ///< Who says so, for notes and messages.
  std::string model_kind{};  ///< In its own words: model_type or group-id.
  std::string family{};      ///< What these mean here; empty when nothing here decodes them.
  std::vector<std::string> labels{};
  std::optional<float> threshold{}, iou_threshold{};  ///< 0..1.
  std::optional<ChannelOrder> order{};
  std::optional<Fit> fit{};
  std::optional<float> pad{};  ///< 0..255.
  /// value = (level - mean) / std, in the order of the model's channels.
  std::optional<std::array<float, 3>> mean{}, std{};
  std::optional<ScoreKind> scores{};
  std::vector<ModelInfoTensor> tensors{};
  std::vector<std::string> unused{};  ///< Keys that mean nothing here, to be told to the user.
};

/// A JSON document with an object `model_info` at the top or in `rt_info`, whose values are texts,
/// numbers, booleans, lists of them, or {"value": ...}. kNotFound: valid JSON without such an
/// object. kCorrupt names the key.
Result<ModelInfo> parse_openvino_info(std::string_view json);

/// The entries "model_info KEY" of an ONNX file's metadata (also with '.' or '/' for the space).
/// kNotFound: there are none.
Result<ModelInfo> parse_openvino_metadata(
    const std::vector<std::pair<std::string, std::string>>& metadata);

/// A GStreamer key file: group [modelinfo] with version=1.x, and a group a tensor. kCorrupt names
/// the line, kUnsupported the version.
Result<ModelInfo> parse_gstreamer_info(std::string_view text);

/// All that is said of the model, the first to be believed first: FILE.onnx.modelinfo, or else
/// FILE.modelinfo; FILE.onnx.json, or else FILE.json; the metadata. A JSON file without model_info
/// is about something else and left out. Errors name the file.
Result<std::vector<ModelInfo>> find_model_info(
    const std::filesystem::path& onnx,
    const std::vector<std::pair<std::string, std::string>>& metadata);

/// A finite decimal number and nothing else.
std::optional<float> float_of_text(std::string_view text);

}  // namespace penstock
