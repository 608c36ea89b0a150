// SPDX-License-Identifier: Apache-2.0
//
// report.html: one page that needs nothing else, with inline SVG charts and pictures as data.
#pragma once

#include <string>

#include "penstock/pipeline/run_summary.h"

namespace penstock {

/// Counts over time, latency histogram, stage bars, memory ledger and annotated frames of a run.
std::string to_html(const RunSummary& summary);

/// Text for HTML content and attributes.
std::string html_escape(std::string_view text);

}  // namespace penstock
