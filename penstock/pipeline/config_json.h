// SPDX-License-Identifier: Apache-2.0
//
// JSON as ConfigNodes, without places: for what comes through the control socket, which the schema
// of pipelines then reads.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "penstock/pipeline/config_node.h"

namespace penstock {

/// Nothing, and one problem, when `text` is no JSON, is nested deeper than kMaxConfigDepth, has
/// more than kMaxConfigNodes values, or tells a key twice. Any thread; throws only std::bad_alloc.
std::optional<ConfigNode> parse_json(std::string_view text, ConfigProblems& problems);

}  // namespace penstock
