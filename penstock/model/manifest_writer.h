// SPDX-License-Identifier: Apache-2.0
//
// Manifest schema 2 as text (docs/manifest.md).
#pragma once

#include <span>
#include <string>

#include "penstock/model/manifest.h"
#include "penstock/model/manifest_parser.h"

namespace penstock {

/// `artefacts` are the manifest's files by their paths in the model's folder. What parse_manifest
/// reads back is equal. Licence and confidence are "SPDX" and what stands in brackets behind it.
std::string to_manifest_json(const Manifest& manifest, std::span<const ManifestArtefact> artefacts,
                             const std::string& spdx, const std::string& confidence);

}  // namespace penstock
