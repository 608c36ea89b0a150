// SPDX-License-Identifier: Apache-2.0
//
// Schema 1: one YOLO detector an artefact. Our reading of it is provisional and fixed by
// docs/manifest.md and the golden files; nothing of Penstock writes it.
#pragma once

#include "penstock/model/json_object.h"
#include "penstock/model/manifest_parser.h"

namespace penstock {

/// Fills `document` from a root whose "schema" was read; problems go to root.errors().
void read_schema1(JsonObject& root, ManifestDocument& document);

/// Shared with schema 2.
void check_unit_interval(JsonObject& object, std::string_view key, float value);
void check_sha256(JsonErrors& errors, const std::string& field, const std::string& value);
/// A model's name has no control character: it goes to terminals.
void check_name(JsonErrors& errors, const std::string& name);
void check_labels(JsonErrors& errors, const std::vector<std::string>& labels);

}  // namespace penstock
