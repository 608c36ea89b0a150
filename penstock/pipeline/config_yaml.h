// SPDX-License-Identifier: Apache-2.0
//
// YAML as ConfigNodes. What a configuration does not need, and what makes a small text a large one,
// is refused: anchors and aliases, tags, several documents, keys that are no text, keys told twice.
//
// The bytes are of others: kMaxConfigBytes, kMaxConfigDepth and kMaxConfigNodes bound the work
// (fuzz_pipeline).
#pragma once

#include <optional>
#include <string_view>

#include "penstock/pipeline/config_node.h"

namespace penstock {

inline constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;
inline constexpr int kMaxConfigDepth = 16;
inline constexpr std::size_t kMaxConfigNodes = 20'000;

/// Nothing, and at least one problem, when `text` is not such YAML. Any thread; throws only
/// std::bad_alloc.
std::optional<ConfigNode> parse_yaml(std::string_view text, ConfigProblems& problems);

}  // namespace penstock
