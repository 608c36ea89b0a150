// SPDX-License-Identifier: Apache-2.0
//
// A bounded look into an ONNX file before an engine gets it: what it takes and gives, and which
// other files it wants to read. It walks the protobuf wire format in one pass, in memory and time
// linear in the file's size, and refuses what no exporter writes: broken framing, deep nesting,
// tensors that claim more elements than the file has bytes. It does not validate the graph; engines
// do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/memory/tensor.h"

namespace penstock {

struct OnnxValueInfo {
  std::string name;
  std::optional<DataType> type;  ///< Nothing: a type that Penstock has no word for.
  bool has_shape = false;
  /// Fixed sizes; a symbol (or nothing known) has the full symbolic range. Empty for a scalar.
  std::vector<Dimension> dims;
  /// Of an output: the operation that its values come from ("Softmax"), past those that only move
  /// or recode them. Empty when no node of the top graph makes it.
  std::string made_by{};
};

struct OnnxSummary {
  std::int64_t ir_version = 0;
  std::int64_t opset = 0;                   ///< Of the default domain; 0: not stated.
  std::string producer;                     ///< Name, and version where it is stated.
  std::vector<OnnxValueInfo> inputs;        ///< Graph inputs, without those that are initialisers.
  std::vector<OnnxValueInfo> outputs;       ///< Of the top graph.
  std::vector<std::string> external_files;  ///< Locations as written, sorted, each once.
  /// Name of the first tensor with external data that is no initialiser of the top graph: in a
  /// branch, an attribute, a function, or sparse.
  std::optional<std::string> external_elsewhere{};
  /// What exporters write beside the graph, e.g. Ultralytics' "names"; the first 256 entries.
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// kCorrupt when this is no plausible ONNX model.
Result<OnnxSummary> read_onnx_summary(std::span<const std::byte> model);

/// The same for a file of at most 2 GiB (protobuf's own limit).
Result<OnnxSummary> inspect_model(const std::filesystem::path& path);

/// Protobuf's own limit.
inline constexpr std::size_t kMaxModelBytes = (std::size_t{1} << 31) - 1;

/// All bytes of a file. kUnsupported: no regular file of at most `limit` bytes; kExhausted: no
/// memory for them.
Result<std::vector<std::byte>> read_model_file(const std::filesystem::path& path,
                                               std::size_t limit = kMaxModelBytes);

}  // namespace penstock
