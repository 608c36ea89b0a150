// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/onnxruntime/ort_external_data.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/model/protobuf_wire.h"
#include "penstock/model/sha256.h"

namespace penstock {
namespace {

std::string normal(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

Result<std::vector<std::byte>> read_data(const Manifest& manifest, const ManifestData& data,
                                         std::size_t limit) {
  const std::filesystem::path path = manifest.folder / data.path;
  auto bytes = read_model_file(path, limit);
  if (!bytes || data.sha256.empty()) return bytes;
  const auto hash = sha256_hex(*bytes);
  if (!hash) return std::unexpected(hash.error());
  if (*hash != data.sha256) {
    return fail(ErrorKind::kCorrupt,
                str_format("'{}' changed since its manifest was read", path.string()));
  }
  return bytes;
}

/// The locations of initialisers of the top graph; field numbers are onnx.proto's.
std::vector<std::string_view> locations_in(std::span<const std::byte> model) {
  std::vector<std::string_view> locations;
  const auto each = [](std::span<const std::byte> message, std::uint64_t field, auto&& visit) {
    WireReader reader(message);
    while (reader.next()) {
      if (reader.is_bytes(field)) visit(reader.bytes());
    }
  };
  const auto entry = [&](std::span<const std::byte> message) {
    std::string_view key, value;
    WireReader reader(message);
    while (reader.next()) {
      if (reader.is_bytes(1)) key = reader.text();
      if (reader.is_bytes(2)) value = reader.text();
    }
    if (key == "location") locations.push_back(value);
  };
  each(model, 7,
       [&](auto graph) { each(graph, 5, [&](auto tensor) { each(tensor, 13, entry); }); });
  return locations;
}

/// As long as `location`, in its normal form, and none of `taken`; a spelling that is not normal
/// has three characters or more.
std::string stand_in(const std::string& location, const std::map<std::string, std::string>& taken) {
  for (int number = 0;; ++number) {
    std::string digits = std::to_string(number);
    if (digits.size() > location.size()) return location;
    std::string name = std::string(location.size() - digits.size(), 'x') + digits;
    if (!taken.contains(name)) return name;
  }
}

}  // namespace

Result<OrtExternalData> OrtExternalData::read(const OnnxSummary& summary, const Manifest& manifest,
                                              std::span<std::byte> model) {
  // ONNX Runtime takes bytes for initialisers of the top graph only; it would open the rest itself.
  if (summary.external_elsewhere) {
    return fail(ErrorKind::kUnsupported,
                str_format("tensor '{}' has external data, but is no initialiser of the top graph; "
                           "save the model with such data inside it",
                           *summary.external_elsewhere));
  }
  OrtExternalData external;
  std::size_t left = kMaxExternalBytes;
  for (const std::string& location : summary.external_files) {
    const std::string path = normal(location);
    const auto data = std::ranges::find(
        manifest.data, path, [](const ManifestData& known) { return normal(known.path); });
    if (data == manifest.data.end()) {
      return fail(
          ErrorKind::kCorrupt,
          str_format("it wants to read external data from '{}', which is no artefact of role "
                     "'data' in its manifest",
                     location));
    }
    external.names_.emplace(path, path);
    if (external.files_.contains(path)) continue;
    auto bytes = read_data(manifest, *data, left);
    if (!bytes) return std::unexpected(std::move(bytes).error());
    left -= bytes->size();
    external.files_.emplace(path, *std::move(bytes));
  }
  std::map<std::string, std::string> renamed;
  for (const std::string& location : summary.external_files) {
    if (location == normal(location)) continue;
    const std::string name = stand_in(location, external.names_);
    external.names_.emplace(name, normal(location));
    renamed.emplace(location, name);
  }
  for (const std::string_view location : locations_in(model)) {
    const auto name = renamed.find(std::string(location));
    if (name == renamed.end()) continue;
    const auto at = std::as_bytes(std::span(location)).data() - model.data();
    std::ranges::copy(std::as_bytes(std::span(name->second)), model.begin() + at);
  }
  return external;
}

Result<void> OrtExternalData::add_to(const OrtRuntime& runtime, OrtSessionOptions* target) {
  if (names_.empty()) return {};
  std::vector<const char*> names;
  std::vector<char*> buffers;
  std::vector<std::size_t> sizes;
  for (const auto& [name, path] : names_) {
    std::vector<std::byte>& bytes = files_.at(path);
    names.push_back(name.c_str());
    buffers.push_back(reinterpret_cast<char*>(bytes.data()));
    sizes.push_back(bytes.size());
  }
  return runtime.check(runtime.api().AddExternalInitializersFromFilesInMemory(
                           target, names.data(), buffers.data(), sizes.data(), names.size()),
                       "giving it its external data");
}

}  // namespace penstock
