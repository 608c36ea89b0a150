// SPDX-License-Identifier: Apache-2.0
//
// The text of a manifest, read strictly and without touching any other file. docs/manifest.md has
// the format; load_manifest (manifest.h) adds paths and hashes. Never throws, whatever the bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/model/manifest.h"

namespace penstock {

/// A file of a prepared model as the manifest names it; nothing is checked against the disk yet.
struct ManifestArtefact {
  std::string path{};     ///< Relative to the manifest's folder.
  std::string sha256{};   ///< 64 lower-case hex digits.
  std::string field{};    ///< Where the manifest says so, e.g. "artefacts[0]", for messages.
  bool is_model = false;  ///< The one that the engine loads; the others are its data.
};

struct ManifestDocument {
  Manifest manifest;  ///< Without folder and artefact.
  std::vector<ManifestArtefact> artefacts;
};

inline constexpr std::size_t kMaxManifestBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxManifestNesting = 16;
inline constexpr std::size_t kMaxManifestArtefacts = 64;
inline constexpr std::size_t kMaxManifestTensors = 256;
inline constexpr std::size_t kMaxManifestRank = 8;
inline constexpr std::size_t kMaxManifestOptions = 64;
inline constexpr std::size_t kMaxConstantValues = 4096;
inline constexpr std::size_t kMaxManifestLabels = 65536;
/// Upper end of a symbolic dimension without its own.
inline constexpr std::int64_t kMaxSymbolicDimension = std::int64_t{1} << 20;

/// kCorrupt and kUnsupported errors name the field ("preprocess.mean[1]").
Result<ManifestDocument> parse_manifest(std::string_view json);

}  // namespace penstock
