// SPDX-License-Identifier: Apache-2.0
//
// What the report pages have in common. A page needs no network and has no script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "penstock/observe/latency_book.h"

namespace penstock {

/// Text between tags or in an attribute's quotes.
std::string html_escape(std::string_view text);

/// From the document type to the opened body; `title` is any text.
std::string page_head(std::string_view title);
inline constexpr std::string_view kPageTail = "</body></html>\n";

/// "Latency by stage and stream": a table; empty for no rows.
std::string stages_section(const std::vector<LatencyFigures>& stages);

}  // namespace penstock
