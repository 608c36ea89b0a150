// SPDX-License-Identifier: Apache-2.0
//
// The reports of runs. As HTML: one page that needs nothing else, with inline SVG charts and
// pictures as data. As JSON: the page's figures, without pictures and series (docs/run.md has the
// keys).
#pragma once

#include <filesystem>
#include <string>

#include "penstock/pipeline/run_summary.h"

namespace penstock {

/// Counts over time, zones, latency histogram, stage bars, memory ledger and annotated frames of a
/// run.
std::string to_html(const RunSummary& summary);

/// One JSON object with a final newline.
std::string to_json(const RunSummary& summary);

/// Whether the name of a report asks for JSON: it ends in .json.
bool is_json_report(const std::filesystem::path& path);

}  // namespace penstock
