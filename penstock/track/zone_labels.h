// SPDX-License-Identifier: Apache-2.0
//
// Whether the labels that zones and lines count are some that the model has: one that is misspelt
// would count nothing, and nobody would know.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "penstock/base/error.h"

namespace penstock {

/// `zones` and `lines` are as parse_zones() and parse_lines() read them, whose errors it has.
/// kInvalidArgument names the place, the label and the nearest of `labels`, or else the first ten.
/// Without `labels` nothing is known of them, and every label may be.
Result<void> check_place_labels(std::string_view zones, std::string_view lines,
                                std::span<const std::string> labels);

}  // namespace penstock
